#pragma once

#include "core/capture/capture.h"

#include <string>

namespace kvscope {

/// Tokens for tensors that have none: a JSON object with `ids` (whole numbers), and optionally `texts` (strings),
/// `position_ids` and `segments` (lists of begin, end and kind: system, context, needle, question or answer). The first
/// three lists have one entry per token of the tensors. Positions that the file leaves out are those of `known`, a
/// table of as many tokens. Throws Error naming the list.
TokenTable readTokenList(const std::string& path, const TokenTable& known);

/// Ids and positions 0 .. n - 1; a token's text is its number.
TokenTable numberedTokens(std::int64_t tokens);
/// Sets each token's text to its id.
void nameByIds(TokenTable& tokens);

} // namespace kvscope
