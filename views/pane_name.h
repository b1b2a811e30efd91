#pragma once

#include <string>

namespace kvscope {

/// A pane's letter and policy identity, or those of what was computed for a pane. The identity is "SnapKV" with the
/// variant "kvpress", or "kvpress, edited" once a parameter differs from the variant's; for a recorded list "SnapKV
/// (recorded)" with the file's variant and the list's own cut and budget, "kvpress, cut 995, budget 10.0 %".
struct PaneName {
    char letter = 'A';
    std::string policyId = {}; ///< decides the colour; of a recorded list the policy that made the list
    std::string policyName = {}, variant = {};
};

} // namespace kvscope
