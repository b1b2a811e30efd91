// Code that waits does not know the pools, and a pool does not know what its threads wait for.
#include "core/base/thread_wait.h"

#include <utility>

namespace kvscope {

namespace {
thread_local ThreadWait::Pool t_pool;
thread_local int t_depth = 0; // waits may be nested
} // namespace

ThreadWait::ThreadWait(After after) : m_after(after) {
    if (t_depth++ == 0 && t_pool.begin) t_pool.begin();
}

ThreadWait::~ThreadWait() {
    if (--t_depth == 0 && t_pool.end) t_pool.end(m_after);
}

void ThreadWait::setPool(Pool pool) { t_pool = std::move(pool); }

} // namespace kvscope
