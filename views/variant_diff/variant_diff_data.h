#pragma once

#include "core/base/index.h"
#include "views/pane_name.h"
#include "views/view_data.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// A parameter in which a variant differs from the reference, and its effect alone.
struct VariantCause {
    std::string id, label;
    std::string from, to;           ///< values in the reference and in the variant
    std::vector<std::string> traps; ///< IDs that the parameter's help names ("C2")
    /// Tokens that change sides when this parameter alone is moved from the reference to the variant; -1: cannot be
    /// moved alone, or not computed yet.
    std::int64_t alone = -1;
    std::string fromLabel = {}, toLabel = {}; ///< the same values as the parameter's row shows them

    /// "Anchor: mean → mean of unit keys".
    std::string change() const;
};

/// One variant of the policy, or the pane as it is set, in one KV head.
struct VariantList {
    std::string id, label, summary;
    std::vector<TokenIndex> kept; ///< ascending
    double outputError = NAN;     ///< mean over the KV head's query heads, where measured
    std::vector<VariantCause> causes;
    std::vector<std::string> traps; ///< of all causes and of the variant's own words, sorted
    std::string error;              ///< why there is no list
    bool balancedNothing = false;   ///< see core/run/head_means.h
};

/// Paper against authors' code against libraries: all variants of the active pane's policy at the pane's budget. The
/// first list is the reference.
struct VariantDiffData : ViewData, PaneName {
    std::string budget;
    std::int64_t visible = 0; ///< tokens before the cut
    std::size_t variants = 0; ///< number of lists when complete
    std::vector<VariantList> lists;
};

} // namespace kvscope
