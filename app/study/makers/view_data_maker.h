#pragma once

#include "app/study/pane_request.h"
#include "core/engine/tensor.h"
#include "core/parameters/parameters.h"
#include "views/view.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// The input of a maker. A maker reads only what its scopes name, besides the capture, the view's options of stage
/// Features, and what its `detail` adds.
struct ViewDataRequest {
    std::shared_ptr<const CaptureReader> capture;
    std::shared_ptr<const CaptureReader> compared; ///< the second capture; null: there is none
    LayerIndex layer;
    KvHeadIndex kvHead;
    QueryHeadIndex queryHead;
    Cut cut;
    std::vector<PaneRequest> panes;
    int activePane = 0;
    std::vector<TokenIndex> selected; ///< ascending
    std::uint64_t seed = 0;
    ParameterValues options; ///< of the view
    /// The shown part of the picture and its size in device pixels, for data at screen resolution.
    std::optional<Viewport::Range> range;
    std::int64_t width = 600, height = 400;

    const PaneRequest& shownPane() const; ///< the active one; throws Error where no pane is shown
    /// The policy on what is shown, without measures and with its step log.
    RunRequest loggedRun(const PolicySpec& policy) const;
};

std::string panesKey(const ViewDataRequest& request); ///< of all panes, with their budgets

/// What a kind of data depends on, besides capture and options. Panes: with their budgets; Policies: without budgets,
/// for data over budgets or policies that have none. Active...: of the active pane. Compared: the second capture.
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
    Compared,
    Frame
};

/// One call of a maker: what it computes from, and who takes an earlier, coarser or incomplete version.
struct ViewDataWork {
    const LayerRunner& runner;
    const ViewDataRequest& request;
    const Checkpoint& checkpoint;
    const std::function<void(std::shared_ptr<const ViewData>)>& partial;

    Tensor tensor(TensorRole role, const Checkpoint& part) const {
        return runner.tensor(request.capture, request.layer, role, part);
    }
    template <class Data> void deliver(const Data& data) const { partial(std::make_shared<const Data>(data)); }
};

/// Computes one kind of data.
struct ViewDataMaker {
    using Value = std::shared_ptr<const ViewData>;
    using Partial = std::function<void(Value)>;

    std::string id; ///< as in ViewCard::data
    std::vector<DataScope> scopes;
    /// Runs on a worker, for windows and headless figures alike. Throws Error or Cancelled.
    Value (*compute)(const ViewDataWork& work) = nullptr;
    /// Further dependencies as a text in key() but not in identity(): the old data stay visible until data with the new
    /// detail are ready. Null: none.
    std::string (*detail)(const ViewDataRequest& request) = nullptr;

    Value make(const LayerRunner& runner, const ViewDataRequest& request, const Checkpoint& checkpoint,
               const Partial& partial) const {
        return compute({runner, request, checkpoint, partial});
    }
    bool dependsOn(DataScope scope) const;
    /// Equal identities: data of the same thing, possibly of another part of it (the range, options of stage Combine).
    std::string identity(const ViewDataRequest& request) const;
    /// Equal keys: the same data.
    std::string key(const ViewDataRequest& request) const;
};

/// ViewDataMaker::compute of a maker that is a class.
template <class Maker> ViewDataMaker::Value runMaker(const ViewDataWork& work) { return Maker(work).run(); }

/// One head of a tensor on the engine: [H, n, d] -> [n, d]. Downloads all heads, but only 4096 rows of them at a time.
HostTensor downloadHead(const Engine& engine, const Tensor& tensor, std::int64_t head);

/// The maker of a view's data; null for a view that shows results only.
const ViewDataMaker* makerFor(const View& view);

} // namespace kvscope
