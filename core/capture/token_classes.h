#pragma once

#include "core/capture/capture.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// The tokens of a prompt sorted into classes.
struct TokenClasses {
    std::vector<std::string> names;    ///< in the order in which they are shown
    std::vector<std::uint8_t> classOf; ///< [n] index into `names`
};

enum class TextClass : std::uint8_t { WordStart, WordPart, Digits, Punctuation, Blank, LineBreak, Mixed, Broken };

/// What a token's text consists of, apart from blanks around it: letters that begin a word, letters that continue the
/// word of the token before (`afterLetter`: that token ends in a letter), digits, punctuation and symbols, nothing but
/// blanks, blanks with a line break, several of these, or a part of a character. Letters are all characters that are
/// none of the others; in scripts without blanks every token begins a word.
TextClass textClassOf(std::string_view bytes, bool afterLetter = false);
TokenClasses classesByText(const TokenTable& tokens);

/// Innermost segment of each token, in the order system, context, needle, question, answer, none.
TokenClasses classesBySegment(const TokenTable& tokens);

/// By token id: seen here for the first time; seen before; seen before after the same predecessor, as an induction head
/// would look for.
TokenClasses classesByRepeat(const TokenTable& tokens);

/// Tenths of the `visible` first tokens; later ones are in the last tenth.
TokenClasses classesByDecile(std::int64_t tokens, std::int64_t visible);

} // namespace kvscope
