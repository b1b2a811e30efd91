#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope::live {

/// A command line as words, split like a shell splits it, but without a shell: spaces separate, '...' and "..." keep
/// spaces, a backslash keeps the next character (inside of "..." before " and \ only), ~/ at the beginning of a word is
/// the home folder. No variables, no patterns, no pipes: characters that would mean them stand for themselves.
/// Throws Error for an open quote and for a line without words.
std::vector<std::string> commandWords(std::string_view line);

} // namespace kvscope::live
