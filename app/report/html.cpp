// Self-contained HTML: no script and no file beside it, so that a page opens without a network.
#include "app/report/html.h"

#include "views/scene/theme.h"

#include <QRegularExpression>

#include <fmt/format.h>
#include <md4c-html.h>

#include <cassert>

namespace kvscope {

namespace {

constexpr const char* kStyle = R"(
* { box-sizing: border-box; }
html { scroll-padding-top: 16px; }
body { margin: 0; background: var(--window); color: var(--text1);
  font: 15px/1.5 Inter, "KVScope signs", Helvetica, Arial, sans-serif; }
.page { display: grid; grid-template-columns: 208px minmax(0, 980px); gap: 24px; justify-content: center;
  padding: 24px 20px 64px; }
nav { position: sticky; top: 24px; align-self: start; max-height: calc(100vh - 48px); overflow-y: auto;
  font-size: 13px; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav ul ul { margin: 2px 0 6px; border-left: 1px solid var(--border); }
nav a { display: block; padding: 3px 10px; border-radius: 4px; color: var(--text2); text-decoration: none; }
nav a:hover { background: var(--hover); color: var(--text1); }
header, section { background: var(--canvas); border: 1px solid var(--border); padding: 20px 24px; margin: 0 0 16px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 32px 0 10px; }
h3 { font-size: 15px; margin: 0 0 2px; }
h1, h2, h3, strong, b, th { font-weight: 600; }
p, figcaption, summary, dd, li { max-width: 74ch; }
header p { margin: 0 0 14px; color: var(--text2); }
figure { margin: 0 0 12px; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { margin: 0 0 14px; color: var(--text2); }
.dark { display: none !important; }
code, pre, td, dd { font-family: "Noto Sans Mono", "KVScope signs", Menlo, Consolas, monospace; font-size: 13px; }
pre { background: var(--sunken); border-radius: 4px; padding: 8px 12px; margin: 12px 0 0; overflow-x: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; }
li code, p code { background: var(--sunken); border-radius: 3px; padding: 0 3px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 20px; margin: 0; }
dt { color: var(--text2); }
dd { margin: 0; overflow-wrap: anywhere; }
.table { overflow: auto; max-height: 480px; margin: 8px 0; border: 1px solid var(--border); }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: 6px 10px; color: var(--text2); }
th, td { padding: 3px 10px; text-align: right; border-top: 1px solid var(--grid); }
thead th { position: sticky; top: 0; background: var(--panel); color: var(--text2); }
th[scope=row], thead th:first-child { text-align: left; }
th { font-size: 13px; }
details table:not(.table table) { width: auto; }
sub, sup { font-size: 75%; line-height: 0; }
summary { cursor: pointer; color: var(--text2); padding: 3px 0; }
summary:hover { color: var(--text1); }
a { color: inherit; }
a.skip { position: absolute; left: -9999px; }
a.skip:focus { position: static; }
:focus-visible { outline: 2px solid var(--ink); outline-offset: 2px; }
@media (max-width: 900px) { .page { display: block; } nav { position: static; max-height: none; margin: 0 0 16px; } }
@media print {
  @page { margin: 15mm; }
  body { background: none; font-size: 10pt; }
  .page { display: block; padding: 0; }
  nav, a.skip, .hint, details:not([open]) { display: none; }
  header, section { border: none; padding: 0; }
  h2, h3, figcaption { break-after: avoid; }
  section, figure, tr, pre { break-inside: avoid; }
  section { margin: 0 0 6mm; }
  figure svg { max-height: 76mm; }
  .table { max-height: none; overflow: visible; }
  thead th { position: static; }
  code, pre, td, dd, th { font-size: 8pt; }
  pre { margin-top: 2mm; }
}
)";

/// The colours of the program's chrome as CSS variables.
std::string variablesOf(const Theme& theme) {
    std::string out;
    for (const auto& [name, c] : {std::pair{"window", theme.window},
                                  {"panel", theme.panel},
                                  {"canvas", theme.canvas},
                                  {"sunken", theme.sunken},
                                  {"hover", theme.hover},
                                  {"border", theme.border},
                                  {"grid", theme.grid},
                                  {"text1", theme.text1},
                                  {"text2", theme.text2},
                                  {"ink", theme.ink}})
        out += fmt::format("--{}: #{:02x}{:02x}{:02x}; ", name, c.r, c.g, c.b);
    return out;
}

std::string styleOf(const std::string& fonts) {
    return fonts + ":root { color-scheme: light dark; " + variablesOf(themeOf(ThemeId::Light)) + "}\n" + kStyle +
           "@media screen and (prefers-color-scheme: dark) {\n:root { " + variablesOf(themeOf(ThemeId::Dark)) +
           "}\n.light { display: none !important; }\n.dark { display: block !important; }\n}\n";
}

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
    return withScripts(out);
}

std::string withScripts(std::string_view html) {
    static const QRegularExpression kRaised(
        R"((?<=[\p{L}\p{N})⟩‖])\^(?:\{([^{}<>]+)\}|\(([^()<>]+)\)|(⟨[^⟩<>]*⟩|[\p{L}\p{N}]+)))",
        QRegularExpression::UseUnicodePropertiesOption);
    static const QRegularExpression kLowered(
        R"(((?<![\w])(?:score|argmax|argmin|max|min|\p{L}\p{M}*)|‖)_(?:\{([^{}<>]+)\}|([\p{L}\p{N}*]{1,4})(?!\w)))",
        QRegularExpression::UseUnicodePropertiesOption);
    static const QRegularExpression kTag("<[^>]*>");
    const auto set = [](QString text) {
        return text.replace(kRaised, "<sup>\\1\\2\\3</sup>").replace(kLowered, "\\1<sub>\\2\\3</sub>");
    };
    const QString page = QString::fromUtf8(html.data(), static_cast<qsizetype>(html.size()));
    QString out;
    qsizetype end = 0;
    bool isListing = false, isLeft = false;
    for (auto found = kTag.globalMatch(page); found.hasNext();) {
        const auto match = found.next();
        const QString tag = match.captured(), text = page.mid(end, match.capturedStart() - end);
        out += (isLeft ? text : set(text)) + tag;
        end = match.capturedEnd();
        if (tag.startsWith("<pre") || tag == "</pre>") isListing = tag != "</pre>";
        if (tag.startsWith("<style") || (tag == "<code>" && !isListing)) isLeft = true;
        if (tag == "</style>" || tag == "</code>") isLeft = false;
    }
    return (out + set(page.mid(end))).toStdString();
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

std::string htmlPage(const std::string& title, const std::string& contents, const std::string& body,
                     const std::string& fonts) {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
           escapeHtml(title) + "</title>\n<style>" + styleOf(fonts) +
           "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>\n<div class=\"page\">\n" +
           "<nav aria-label=\"Contents\">\n<ul>\n" + contents + "</ul>\n</nav>\n<main id=\"content\">\n" + body +
           "</main>\n</div>\n</body>\n</html>\n";
}

} // namespace kvscope
