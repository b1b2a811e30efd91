#pragma once

#include "app/study/pane_request.h"
#include "core/parameters/parameters.h"
#include "views/view.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// What the data of a view are computed from. A maker reads only what its scopes name, besides the capture and those
/// options of the view that stand in stage Features, but for what its `detail` adds.
struct ViewDataRequest {
    std::shared_ptr<const CaptureReader> capture;
    LayerIndex layer;
    KvHeadIndex kvHead;
    QueryHeadIndex queryHead;
    Cut cut;
    std::vector<PaneRequest> panes;
    int activePane = 0;
    std::vector<TokenIndex> selected; ///< ascending
    std::uint64_t seed = 0;
    ParameterValues options; ///< of the view
    /// The part of the picture that is looked at, and its size in device pixels; for data at screen resolution.
    std::optional<Viewport::Range> range;
    std::int64_t width = 600, height = 400;

    const PaneRequest& shownPane() const; ///< the active one; throws Error where no pane is shown
};

/// What a kind of data depends on, besides capture and options. Panes: with their budgets; Policies: without, for data
/// that run through budgets themselves or of policies that have none. Active...: of the active pane.
enum class DataScope {
    Layer,
    KvHead,
    QueryHead,
    Cut,
    Panes,
    Policies,
    ActivePane,
    ActivePolicy,
    Selection,
    Seed,
    Frame
};

/// Computes one kind of data. `partial` delivers a first, coarser or incomplete version that is good enough to show.
struct ViewDataMaker {
    using Value = std::shared_ptr<const ViewData>;
    using Partial = std::function<void(Value)>;
    /// Runs on a worker, for windows and headless figures alike. Throws Error or Cancelled.
    using Make = Value (*)(const LayerRunner& runner, const ViewDataRequest& request, const Checkpoint& checkpoint,
                           const Partial& partial);

    std::string id; ///< as in ViewCard::data
    std::vector<DataScope> scopes;
    Make make = nullptr;
    /// What else the data depend on, as a text that goes into key() but not into identity(): the present data stay on
    /// the screen until those with another detail are made. Null: nothing.
    std::string (*detail)(const ViewDataRequest& request) = nullptr;

    /// Equal identities: data of the same thing, though perhaps of another part of it (the frame, options of stage
    /// Combine).
    std::string identity(const ViewDataRequest& request) const;
    /// Equal keys: the same data.
    std::string key(const ViewDataRequest& request) const;
};

} // namespace kvscope
