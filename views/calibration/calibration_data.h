#pragma once

#include "core/base/index.h"
#include "core/metrics/calibration.h"
#include "views/pane_name.h"
#include "views/view_data.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// One policy on one context.
struct CalibrationSeries : PaneName {
    int pane = 0;
    std::string context = {};
    bool own = false;   ///< the context is the capture that is open
    bool proxy = false; ///< measured on attention outputs, not on a model's losses
    bool live = false;  ///< measured by the model of the open context; no budget can name such a curve
    bool given = false; ///< k comes from the view's option, nothing was measured
    std::vector<CalibrationTriple> triples = {};
    double k = 0;
    std::vector<double> resampledK = {}; ///< of the bootstrap
    bool atEdge = false;
    std::string origin = {};
    std::string curve = {};                     ///< text after the colon in a budget that uses this curve
    bool foreign = false;                       ///< `own`, but measured on a context of another name than the open one
    std::optional<TokenIndex> measuredCut = {}; ///< cut of the context's rows, where they state it
    std::vector<std::string> notes = {};        ///< what the points or the fit warn of
};

/// Why a pane has no curve.
struct CalibrationFailure {
    char letter = 'A';
    std::string sentence;
};

struct CalibrationViewData : ViewData {
    std::vector<CalibrationSeries> series; ///< by pane; within a pane the own context first
    std::vector<CalibrationFailure> failures;
    double weight = 1; ///< w of the fits

    bool anyLive() const { return std::ranges::any_of(series, &CalibrationSeries::live); }
    bool anyProxy() const { return std::ranges::any_of(series, &CalibrationSeries::proxy); }
};

} // namespace kvscope
