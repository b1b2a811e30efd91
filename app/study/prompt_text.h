#pragma once

#include "core/capture/capture.h"
#include "views/common/view_facts.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// Consecutive tokens, half-open.
struct TokenRun {
    TokenIndex begin = 0, end = 0;
};

/// The tokens of the word that a token belongs to; for punctuation or a blank the token alone.
TokenRun wordAround(const TokenTable& tokens, TokenIndex token);
/// The sentence around a token, with the full stop, exclamation mark, question mark or line break that ends it.
TokenRun sentenceAround(const TokenTable& tokens, TokenIndex token);

/// Where the joined text of all tokens holds `wanted` (case ignored), without overlap, each as the tokens that it
/// touches; ascending.
std::vector<TokenRun> hitsOf(const TokenTable& tokens, std::string_view wanted);
/// Of several needles the one that shares most tokens with the question; nothing without a needle.
std::optional<TokenRun> askedNeedle(const TokenTable& tokens);
/// Of the hits before the pane's own cut, how many it keeps with all their tokens. The pane must have a result.
KeptCount keptWhole(const ViewInput& input, const PaneData& pane, const std::vector<TokenRun>& hits);
/// The text of ascending tokens; a line break where tokens between them are left out.
std::string textOf(const TokenTable& tokens, const std::vector<TokenIndex>& chosen);
/// All tokens of the runs, ascending, each once.
std::vector<TokenIndex> tokensOf(const std::vector<TokenRun>& runs);

} // namespace kvscope
