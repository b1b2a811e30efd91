// Self-contained HTML: no script, no font file, no style sheet, so that a page opens without a network.
#include "app/report/html.h"

#include <fmt/format.h>
#include <md4c-html.h>

#include <cassert>

namespace kvscope {

namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 940px; padding: 16px 20px 64px; background: #ffffff; color: #14181f;
  font: 15px/1.5 Inter, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 26px; line-height: 1.25; margin: 24px 0 4px; }
h2 { font-size: 20px; margin: 40px 0 8px; border-bottom: 1px solid #d3d7dc; padding-bottom: 4px; }
h3 { font-size: 16px; margin: 28px 0 4px; }
p, figcaption, summary, dd { max-width: 72ch; }
figure { margin: 8px 0 28px; }
figure svg { max-width: 100%; height: auto; border: 1px solid #d3d7dc; }
figcaption { margin: 8px 0; font-weight: 600; }
code, pre, td, dd { font-family: "Noto Sans Mono", "DejaVu Sans Mono", Consolas, monospace; font-size: 13px; }
pre { background: #eceef1; padding: 8px 10px; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; }
dt { color: #464e59; }
dd { margin: 0; overflow-wrap: anywhere; }
.table { overflow-x: auto; max-height: 480px; border: 1px solid #d3d7dc; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: 6px 8px; color: #464e59; }
th, td { padding: 3px 8px; text-align: right; border-top: 1px solid #e8eaed; }
thead th, th[scope=row] { text-align: left; font-weight: 600; font-size: 13px; }
summary { cursor: pointer; color: #464e59; min-height: 24px; }
a { color: #0b57a4; }
a.skip { position: absolute; left: -9999px; }
a.skip:focus { position: static; }
:focus-visible { outline: 2px solid #14181f; outline-offset: 2px; }
@media print { .table { max-height: none; overflow: visible; } figure, table { break-inside: avoid; } }
)";

void append(const MD_CHAR* text, MD_SIZE size, void* out) { static_cast<std::string*>(out)->append(text, size); }

} // namespace

std::string escapeHtml(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\'': out += "&#39;"; break;
        default:
            if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
                out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
            else
                out += c;
        }
    }
    return out;
}

std::string markdownToHtml(std::string_view markdown) {
    std::string out;
    [[maybe_unused]] const int failed = md_html(markdown.data(), static_cast<MD_SIZE>(markdown.size()), append, &out,
                                                MD_DIALECT_GITHUB | MD_FLAG_NOHTML, MD_HTML_FLAG_XHTML);
    assert(failed == 0); // it fails where `append` does
    return out;
}

std::string htmlTable(const std::string& caption, const std::vector<std::string>& columns, std::int64_t rows,
                      const std::function<std::string(std::int64_t, int)>& cell) {
    std::string out = "<div class=\"table\" role=\"region\" tabindex=\"0\" aria-label=\"" + escapeHtml(caption) +
                      "\"><table><caption>" + escapeHtml(caption) + "</caption>\n<thead><tr>";
    for (const std::string& column : columns) out += "<th scope=\"col\">" + escapeHtml(column) + "</th>";
    out += "</tr></thead>\n<tbody>\n";
    for (std::int64_t row = 0; row < rows; ++row) {
        out += "<tr><th scope=\"row\">" + escapeHtml(cell(row, 0)) + "</th>";
        for (int column = 1; column < static_cast<int>(columns.size()); ++column)
            out += "<td>" + escapeHtml(cell(row, column)) + "</td>";
        out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n";
}

std::string htmlPage(const std::string& title, const std::string& body) {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
           escapeHtml(title) + "</title>\n<style>" + kStyle +
           "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>\n" +
           "<main id=\"content\">\n" + body + "</main>\n</body>\n</html>\n";
}

} // namespace kvscope
