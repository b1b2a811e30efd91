#pragma once

#include "views/view_data.h"

#include <cmath>
#include <string>
#include <vector>

namespace kvscope {

/// What the numbers of a head grid are.
struct HeadQuantity {
    std::string what;         ///< "relative output error of KeyDiff at 25 %"
    std::string unit = {};    ///< of the values: "nat"; empty: a plain number
    bool perQueryHead = true; ///< columns are query heads, grouped by KV head; else KV heads
    bool isSigned = false;    ///< a diverging map centred at 0
    bool neverIsNan = false;  ///< NaN means "at no budget"
    bool higherIsBetter = false;
    bool takesNoSide = false; ///< neither more nor less is better
};

/// One number per layer and head. Rows that are not computed yet hold NaN and computed = false.
struct HeadGridData : ViewData, HeadQuantity {
    std::string quantity;      ///< id of the option
    bool ofPane = false;       ///< the values are those of one pane
    std::string first, second; ///< panes of a difference: "A KeyDiff"; else empty
    int columns = 0;
    struct Row {
        int layer = 0;
        bool computed = false;
        std::vector<double> values;                      ///< [columns]
        std::vector<double> ofFirst = {}, ofSecond = {}; ///< [columns] of a difference: its two sides; else empty
        /// Tokens that the active pane keeps, mean of the layer's KV heads; NaN for quantities that are not the active
        /// pane's.
        double kept = NAN;
    };
    std::vector<Row> rows;
};

} // namespace kvscope
