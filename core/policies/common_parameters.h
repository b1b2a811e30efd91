#pragma once

#include "core/parameters/parameters.h"
#include "core/policies/policy_card.h"
#include "core/policies/selection.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvscope {

/// Groups of parameters that many policies share. A card takes the groups that apply to it.
enum class CommonParameters {
    None = 0,
    Rounding = 1,        ///< rounding
    Protection = 2,      ///< protect_first, protect_last
    BlockProcessing = 4, ///< prompt_block, prompt_alignment, decode_tokens, decode_block
    All = 7,
};

constexpr CommonParameters operator|(CommonParameters a, CommonParameters b) {
    return static_cast<CommonParameters>(static_cast<int>(a) | static_cast<int>(b));
}

/// `own` followed by the rows of the named groups (a sum of CommonParameters) and by whole_layers, which every policy
/// with parameters has. `first`: ids of the few that the paper is about, in the order in which they are shown.
std::shared_ptr<const ParameterTable> withCommonParameters(ParameterTable own, CommonParameters groups,
                                                           std::initializer_list<std::string_view> first);

/// Whether the id is one of the parameters of block processing.
bool isBlockParameter(std::string_view id);

/// The row of `positions`: whether kept keys keep their RoPE rotation or are rotated to positions in the cache.
ParameterSpec positionsRow();

/// The variant "kvpress": what the library kvpress does with every policy, and what it does with this one (`values`).
/// It keeps int(n (1 - ratio)) tokens, rounded down (trap X2), and its BlockPress cuts the prompt into blocks after the
/// cache is full, not from token 0 (trap K3).
PolicyVariant kvpressVariant(std::string summary, std::vector<std::pair<std::string, std::string>> values = {});

/// Whether kept keys get positions in the cache (L6). False where the policy has no such parameter.
bool reassignsPositions(const ParameterValues& values);

/// Whether `whole_layers` leaves a layer with this sliding window (0: none) whole: every KV head keeps all its tokens.
bool leavesWhole(const ParameterValues& values, std::int64_t slidingWindow);

/// The value of `rounding`, Ceil where the policy has no such parameter.
Rounding roundingOf(const ParameterValues& values);

/// The value of a whole-number parameter, 0 where the policy has no such parameter.
std::int64_t integerOrZero(const ParameterValues& values, std::string_view id);

} // namespace kvscope
