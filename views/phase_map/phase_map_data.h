#pragma once

#include "views/pane_name.h"
#include "views/view_data.h"

#include <string>
#include <vector>

namespace kvscope {

/// One axis of a phase map: a parameter of the active pane's policy, or the budget, and the values that it takes.
struct PhaseAxis {
    std::string id;                 ///< of the parameter, or "budget"
    std::string title;              ///< "Window W, tokens"
    std::vector<std::string> texts; ///< as typed, ascending where they are numbers
    std::vector<double> numbers;    ///< the same as numbers; for choices and flags their places 0, 1 ...
    bool isNumeric = true;

    std::string label(std::size_t i) const; ///< as shown: of a budget "10 %" or "249 tokens", else as typed
};

/// One pair of values. NaN: the pane's policy refused it or is still to run.
struct PhaseCell {
    bool computed = false;
    std::vector<double> values;   ///< of the measure, per pane of `panes`
    std::vector<double> kept;     ///< realised share of tokens, per pane
    std::string error;            ///< why a pane has no value
    bool balancedNothing = false; ///< in a pane, see core/run/head_means.h
};

/// A measure over two parameters: for the active pane, or for all panes where the winner is shown.
struct PhaseMapData : ViewData {
    std::string measure = "output_error"; ///< id in the registry of measures
    std::string where;                    ///< "KV head 1", "all heads of the layer"
    bool higherIsBetter = false, winners = false;
    int activePane = 0;
    PhaseAxis x, y;
    std::vector<PaneName> panes;
    std::vector<PhaseCell> cells; ///< [y][x]

    static constexpr int kNoWinner = -1, kTie = -2;

    /// Index into `panes` of the best value; kTie where several panes have it, kNoWinner where none has a value.
    int winner(const PhaseCell& cell) const {
        int best = kNoWinner;
        bool tied = false;
        for (std::size_t i = 0; i < cell.values.size(); ++i) {
            const double value = cell.values[i], most = best < 0 ? value : cell.values[best];
            if (value != value) continue;
            if (best >= 0 && value == most) tied = true;
            if (best >= 0 && !(higherIsBetter ? value > most : value < most)) continue;
            best = static_cast<int>(i);
            tied = false;
        }
        return tied ? kTie : best;
    }
};

} // namespace kvscope
