#pragma once

#include "core/policies/balance/balance_walks.h"

#include <optional>
#include <span>

namespace kvscope {

/// How a round keeps half of its tokens, given their signs.
enum class Halving { Weighted, Unweighted, SmallerGroup };
enum class KeyShift { BlockMean, MiddleMean, None };
enum class PartialSubset { Random, Earliest, Latest };

/// Settings of blocked BalanceKV, as the parameters say.
struct RoundSettings {
    Halving halving = Halving::Weighted;
    KeyShift shift = KeyShift::BlockMean;
    PartialSubset subset = PartialSubset::Random;
    std::int64_t block = 256;
    double gamma = 4, temperature = 1, beta = 0, valueConstant = 0.025;
    bool failOnOverflow = false; ///< FAIL when p leaves [0, 1]
    bool sameWeights = false;    ///< the denominator uses the numerator's weights
};

/// A surviving token between sinks and recents; the list order is the layout of the next round.
struct Survivor {
    TokenIndex row = 0;
    double weight = 1;    ///< in the numerator: product of its rounds' weights
    double mass = 1;      ///< in the denominator: a factor 2 per round that halved it
    bool guarded = false; ///< protected by needle detection
};
using Survivors = std::vector<Survivor>;

/// The tokens that a round keeps, exactly floor(n/2): their places in `signs` in their new order, with weights.
struct Half {
    std::vector<std::size_t> places;
    std::vector<double> weights;
};
Half halve(std::span<const std::int8_t> signs, Halving halving);
/// The rule of BalanceKV's needle code, used for all heads once a token of any head is protected: protected tokens
/// first, then +, then -, with weights 1, 2, 0 (B18).
Half halveGuarded(std::span<const std::int8_t> signs);

/// The note of a choice whose budget leaves no room between the protected tokens: a prefix and a suffix are kept.
inline constexpr const char* kNothingBalanced =
    "the protected first and last tokens take the whole budget: nothing was balanced";

/// Halves the tokens [first, rows - last) of every head until `target` of them are left per head, with a partial last
/// round where needed, or `rounds` times. When the budget leaves no place for any of them, no walk runs, and the
/// selection's notes hold kNothingBalanced. `guarded` [Hkv][middle] may be empty.
std::vector<Survivors> balanceInRounds(const PolicyInput& input, const RoundSettings& settings,
                                       const Protection& protection, std::int64_t target,
                                       std::optional<std::int64_t> rounds,
                                       const std::vector<std::vector<char>>& guarded, BalanceLog* log,
                                       RowSelection& selection);

/// Assembles the selection: protected rows and survivors with their weights, margins, notes.
void finishSelection(const PolicyInput& input, const RoundSettings& settings, const Protection& protection,
                     const std::vector<Survivors>& survivors, RowSelection& selection);

} // namespace kvscope
