#pragma once

#include "app/live/live_client.h"

#include <memory>
#include <string>

namespace kvscope::live {

/// A worker that runs already, for the context that is opened next: starting one takes seconds. Any thread.
void leaveSpareWorker(std::shared_ptr<LiveClient> worker);
/// Null unless the spare worker runs this command. There is none afterwards.
std::shared_ptr<LiveClient> takeSpareWorker(const std::string& command);

} // namespace kvscope::live
