// What waits knows nothing of pools, and pools know nothing of what is waited for.
#include "core/base/thread_wait.h"

#include <utility>

namespace kvscope {

namespace {
thread_local ThreadWait::Pool t_pool;
thread_local int t_depth = 0; // one wait may hold another
} // namespace

ThreadWait::ThreadWait(After after) : m_after(after) {
    if (t_depth++ == 0 && t_pool.begin) t_pool.begin();
}

ThreadWait::~ThreadWait() {
    if (--t_depth == 0 && t_pool.end) t_pool.end(m_after);
}

void ThreadWait::setPool(Pool pool) { t_pool = std::move(pool); }

} // namespace kvscope
