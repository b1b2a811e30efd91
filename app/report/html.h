#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// &, <, >, " and ' as entities; control characters, which HTML cannot hold, as \x1F.
std::string escapeHtml(std::string_view text);

/// Markdown in GitHub's dialect, as the window shows it (md4c, as in Qt): lists, listings, tables, formulas set. HTML
/// inside it is escaped.
std::string markdownToHtml(std::string_view markdown);

/// HTML whose formulas are set: k_i, Σ_{j<i} and e^{r²/√d} get subscripts and superscripts. Identifiers (same_weights)
/// and what stands in <code> outside a listing stay as they are.
std::string withScripts(std::string_view html);

/// A table with a caption, column heads and row heads in the first column; it scrolls by itself and by keyboard.
std::string htmlTable(const std::string& caption, const std::vector<std::string>& columns, std::int64_t rows,
                      const std::function<std::string(std::int64_t, int)>& cell);

/// A whole page in the program's look, light or dark as the reader's system is: one language, one title, a skip link,
/// inline styles, nothing to load. `contents`: list items that lead into the body; `fonts`: @font-face rules. Of two
/// pictures in a figure the one of class "dark" is shown in dark mode only, that of "light" otherwise and on paper.
std::string htmlPage(const std::string& title, const std::string& contents, const std::string& body,
                     const std::string& fonts);

} // namespace kvscope
