// One worker is handed from the dialog that asked it to the context that is opened with it.
#include "app/live/spare_worker.h"

#include <mutex>
#include <utility>

namespace kvscope::live {

namespace {

struct Spare {
    std::mutex mutex;
    std::shared_ptr<LiveClient> worker; ///< guarded by mutex
};

Spare& spare() {
    static Spare only;
    return only;
}

} // namespace

void leaveSpareWorker(std::shared_ptr<LiveClient> worker) {
    const std::lock_guard lock(spare().mutex);
    spare().worker.swap(worker);
}

std::shared_ptr<LiveClient> takeSpareWorker(const std::string& command) {
    std::shared_ptr<LiveClient> worker;
    {
        const std::lock_guard lock(spare().mutex);
        worker.swap(spare().worker);
    }
    return worker && worker->options().command == command && worker->lost().empty() ? worker : nullptr;
}

} // namespace kvscope::live
