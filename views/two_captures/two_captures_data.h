#pragma once

#include "core/run/run.h"
#include "views/pane_name.h"
#include "views/view_data.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

inline constexpr const char* kTwoCaptures = "two_captures"; ///< id of the view and of its data

/// The panes of a session run on its two captures, with one measure. "first" is the session's own capture.
struct TwoCapturesData : ViewData {
    struct Side {
        std::string name;         ///< file name
        std::int64_t visible = 0; ///< tokens before the cut
    };
    struct Head {
        std::int32_t layer = 0, head = 0; ///< `head`: query head or KV head, by `perQueryHead`
        double first = 0, second = 0;     ///< NaN: no number there
    };
    struct Pane : PaneName {
        std::string refusal;                  ///< why there are no numbers; empty: there are
        double keptFirst = 0, keptSecond = 0; ///< tokens a query head attends to before the cut, of the shown KV head
        double first = 0, second = 0;         ///< the measure of the shown KV head
        bool nothingFirst = false, nothingSecond = false;            ///< balanced nothing, see core/run/head_means.h
        std::shared_ptr<const CalibratedBudget> tauFirst, tauSecond; ///< null unless the budget is a quality
        std::vector<Head> heads;                                     ///< of the shown layer, or of all
    };
    Side first, second;
    std::string what, unit; ///< "Attention-output error", "nat"
    bool ofPane = true;     ///< false: the measure is the layer's, whatever a policy keeps
    bool perQueryHead = true, higherIsBetter = false, takesNoSide = false;
    std::vector<Pane> panes;
};

} // namespace kvscope
