// The capture and the cut decide whether anything can be computed at all, so requests are made in one place.
#include "app/workbench/open_session.h"

#include "app/live/live_client.h"
#include "app/study/session_requests.h"
#include "core/base/error.h"

namespace kvscope {

void OpenSession::resolveCut() {
    cut.reset();
    cutError.clear();
    if (!capture) return;
    try {
        cut = Cut::resolve(session().cut, *capture);
    } catch (const Error& error) {
        cutError = error.what();
    }
}

std::optional<PaneRequest> OpenSession::paneRequest(int pane) const {
    const auto index = static_cast<std::size_t>(pane);
    if (!cut || index >= session().panes.size()) return std::nullopt;
    return paneRequestOf(session(), index, capture, *cut);
}

std::optional<ViewDataRequest> OpenSession::dataRequest() const {
    if (!cut) return std::nullopt;
    ViewDataRequest request = dataRequestOf(session(), capture, *cut);
    request.compared = compared;
    return request;
}

bool isLostWorker(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const live::WorkerLost&) {
        return true;
    } catch (...) {
        return false;
    }
}

std::string messageOf(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "Something failed that has no description.";
    }
}

} // namespace kvscope
