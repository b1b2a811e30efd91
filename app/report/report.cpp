// A report for readers without the program and the capture: every picture has its finding, and the commands that
// regenerate it.
#include "app/report/report.h"

#include "app/export/scene_export.h"
#include "app/export/svg_scene.h"
#include "app/report/headless.h"
#include "app/report/html.h"
#include "app/study/compared_capture.h"
#include "app/study/makers/view_data_maker.h"
#include "app/study/session.h"
#include "app/text/qt_text_service.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/metrics/fidelity.h"
#include "core/run/head_means.h"
#include "core/run/record_results.h"
#include "core/run/token_decision.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace kvscope {

namespace {

constexpr double kFigureWidth = 900, kFigureHeight = 520, kPaneHeight = 420, kStripHeight = 360;
constexpr std::int64_t kLongestTable = 64;

constexpr std::int64_t kMostTokens = 500;

std::string number(double value, int decimals) { return std::isnan(value) ? "–" : formatFixed(value, decimals); }

std::string percent(double share) { return std::isnan(share) ? "–" : formatPercent(share); }

std::string paneName(const PaneData& pane) { return std::string(1, pane.letter) + " " + paneTitle(pane); }

const HeadSelection& shownHead(const ViewInput& input, const PaneData& pane) {
    return pane.result->selection.heads[input.kvHead.value];
}

std::string paneTable(const ViewInput& input) {
    const auto cell = [&](std::int64_t row, int column) -> std::string {
        const PaneData& pane = input.panes[row];
        const RunResult& result = *pane.result;
        switch (column) {
        case 0: return paneName(pane);
        case 1: return formatCount(std::llround(shownHead(input, pane).attendedTokens()));
        case 2: return keptShare(result, input.kvHead);
        case 3: return result.fidelity ? number(meanErrorOf(result, *input.capture, input.kvHead), 4) : "–";
        case 4: return result.fidelity ? percent(meanMassOf(result, *input.capture, input.kvHead)) : "–";
        case 5: return formatBytes(static_cast<double>(storedBytes(result)));
        default: {
            const auto [hit, of] = keptAmong(input, pane, input.focus.selected);
            return fmt::format("{} of {}", hit, of);
        }
        }
    };
    std::vector<std::string> columns = {"pane", "kept", "of seen", "output error", "retained mass", "layer stores"};
    if (!beforeCut(input, input.focus.selected).empty()) columns.push_back(selectionWord(input.focus) + " kept");
    return htmlTable("Means over the query heads of the KV head shown", columns, std::ssize(input.panes), cell);
}

std::string headTable(const ViewInput& input) {
    std::vector<std::string> columns = {"query head", "KV head"};
    for (const PaneData& pane : input.panes) {
        columns.push_back(std::string(1, pane.letter) + " error");
        columns.push_back(std::string(1, pane.letter) + " mass");
    }
    const auto& gqaGroupOf = input.capture->info().layerInfo(input.layer).gqaGroupOf;
    const auto cell = [&](std::int64_t row, int column) -> std::string {
        if (column < 2) return std::to_string(column == 0 ? row : gqaGroupOf[row]);
        const auto& fidelity = input.panes[column / 2 - 1].result->fidelity;
        if (!fidelity) return "–";
        return column % 2 == 0 ? number(fidelity->meanOutputError[row], 4) : percent(fidelity->meanRetainedMass[row]);
    };
    return htmlTable(fmt::format("All query heads of layer {}", input.layer.value), columns, std::ssize(gqaGroupOf),
                     cell);
}

std::string tokenTable(const ViewInput& input, const PaneData& pane) {
    const auto& kept = shownHead(input, pane).kept;
    const auto shown = std::min<std::int64_t>(std::ssize(kept), kMostTokens);
    const auto cell = [&](std::int64_t row, int column) -> std::string {
        const TokenIndex token = kept[row];
        if (column == 0) return std::to_string(token);
        if (column == 1) return displayText(input.capture->tokens().textOf(token));
        const TokenDecision decision = tokenDecisionOf(*pane.result, input.kvHead, token);
        if (!decision.scored) return "–";
        return column == 2 ? formatCount(decision.rank) : formatShort(decision.score);
    };
    const std::string caption = fmt::format("{}: {} of {} kept tokens of KV head {}", paneName(pane),
                                            formatCount(shown), formatCount(std::ssize(kept)), input.kvHead.value);
    return htmlTable(caption, {"position", "token", "rank", "score"}, shown, cell);
}

std::string keptList(const std::string& name, const std::vector<TokenIndex>& kept) {
    return fmt::format("<dt>{} ({})</dt><dd>{}</dd>\n", name, formatCount(std::ssize(kept)),
                       escapeHtml(rangeText(kept)));
}

/// One table with a row per pane (means over the query heads of the KV head shown), one with a row per query head of
/// the layer, as HTML.
std::string measureTables(const ViewInput& input) {
    if (input.panes.empty()) return "<p>The session has no panes.</p>\n";
    std::string notes;
    for (const PaneData& pane : input.panes) {
        if (pane.result->simulated)
            notes += "<li>" + escapeHtml(paneName(pane) + ": simulated on full-attention tensors") + "</li>\n";
        for (const std::string& note : pane.result->notes)
            notes += "<li>" + escapeHtml(paneName(pane) + ": " + note) + "</li>\n";
    }
    return paneTable(input) + (notes.empty() ? "" : "<ul>\n" + notes + "</ul>\n") +
           "<details><summary>Every query head of the layer</summary>\n" + headTable(input) + "</details>\n";
}

/// Per pane: the kept positions of every KV head of the layer as ranges, the kept tokens of the shown head with text,
/// rank and score, and the command that writes the list. `session`, `saved`: source of the commands.
std::string keptLists(const ViewInput& input, const Session& session, const SavedLive& saved) {
    std::string out;
    for (std::size_t index = 0; index < input.panes.size(); ++index) {
        const PaneData& pane = input.panes[index];
        out += "<h3>" + escapeHtml(paneName(pane)) + "</h3>\n<dl>\n";
        for (std::size_t head = 0; head < pane.result->selection.heads.size(); ++head) {
            const HeadSelection& chosen = pane.result->selection.heads[head];
            if (leavesOut(*pane.result, static_cast<std::int32_t>(head))) {
                out += fmt::format("<dt>KV head {}</dt><dd>left out by the list</dd>\n", head);
                continue;
            }
            const std::string name =
                fmt::format("KV head {}{}", head, chosen.queryHeads.empty() ? "" : ", union of its query heads");
            out += keptList(name, chosen.kept);
            for (const QueryHeadSet& own : chosen.queryHeads)
                out += keptList(fmt::format("query head {}", own.queryHead), own.kept);
        }
        out +=
            "</dl>\n<details><summary>With text, rank and score</summary>\n" + tokenTable(input, pane) + "</details>\n";
        if (session.panes[index].recordedPath.empty())
            out += "<pre><code>" +
                   escapeHtml(evictCommand(session, index, fmt::format("kept-{}.json", pane.letter), saved)) +
                   "</code></pre>\n";
        else
            out += "<p>Recorded in <code>" + escapeHtml(session.panes[index].recordedPath) + "</code>.</p>\n";
    }
    return out;
}

/// The inputs of all sections about one capture.
struct Writer {
    Session session; ///< with paths from the folder of the capture
    ViewInput input;
    const LayerRunner& runner;
    Session original;
    const QtTextService& text;
    SavedLive saved;          ///< names of the files
    std::string suffix = {};  ///< of ids: the page may show two captures
    std::string failure = {}; ///< why the input has no data of the view
    EmbeddedFonts fonts = {};
    std::string figures = {}, contents = {}, missing = {};
};

bool isOnlyWords(const Scene& scene) {
    return std::ranges::all_of(scene.items,
                               [](const Drawable& item) { return std::holds_alternative<TextItem>(item); });
}

FigureRequest figureOf(const View& view) {
    FigureRequest figure;
    figure.viewId = view.card().id;
    figure.width = kFigureWidth;
    figure.height = view.card().perPane                    ? kPaneHeight
                    : view.card().place == ViewPlace::Text ? kStripHeight
                                                           : kFigureHeight;
    figure.scale = 2; // of images inside the figure
    figure.outPath = view.card().id + ".svg";
    return figure;
}

std::string tableOf(const ViewTable& table, const std::string& name) {
    if (table.rowCount == 0) return {};
    if (table.rowCount > kLongestTable)
        return fmt::format(
            "<p class=\"hint\">The table behind this figure has {} rows: \"Show the data\" in the program.</p>\n",
            formatCount(table.rowCount));
    return "<details><summary>The numbers behind this figure</summary>\n" +
           htmlTable(name, table.columns, table.rowCount, table.cell) + "</details>\n";
}

bool showsBoth(const View& view) {
    const ViewDataMaker* maker = makerFor(view);
    return maker && maker->dependsOn(DataScope::Compared);
}

/// The view's name, with the capture's name where the page shows two captures.
std::string nameOf(const Writer& writer, const View& view) {
    const bool one = showsBoth(view) || (writer.suffix.empty() && writer.original.compared.path.empty());
    return escapeHtml(one ? view.card().name
                          : fmt::format("{}, {}", view.card().name, writer.input.capture->info().fileName));
}

void compute(Writer& writer, const View& view, const Checkpoint& checkpoint) {
    writer.input.data = {};
    writer.failure.clear();
    try {
        writer.input.data = headlessData(writer.original, figureOf(view), writer.input, writer.runner, checkpoint);
    } catch (const Error& error) {
        writer.failure = error.what();
    }
}

/// Adds the figure of the data that `compute` made, or the reason why there is none.
void addFigure(Writer& writer, const View& view) {
    const FigureRequest figure = figureOf(view);
    const std::string name = nameOf(writer, view), id = view.card().id + writer.suffix;
    const ViewInput& input = writer.input;
    const auto miss = [&](const std::string& why) {
        writer.missing += "<li><strong>" + name + "</strong>: " + escapeHtml(why) + "</li>\n";
    };
    if (!writer.failure.empty()) return miss(writer.failure);
    SessionFigure drawn, dark;
    try {
        drawn = drawFigure(writer.original, figure, input, writer.text);
        FigureRequest atNight = figure;
        atNight.theme = "dark";
        dark = drawFigure(writer.original, atNight, input, writer.text);
    } catch (const Error& error) {
        return miss(error.what());
    }
    if (isOnlyWords(drawn.scene)) return miss(drawn.finding);
    writer.contents += fmt::format("<li><a href=\"#h-{}\">{}</a></li>\n", id, name);
    writer.figures += fmt::format("<section aria-labelledby=\"h-{0}\">\n<h3 id=\"h-{0}\">{1}</h3>\n<figure "
                                  "id=\"{0}\">\n<figcaption>{2}</figcaption>\n",
                                  id, name, escapeHtml(drawn.finding));
    for (const auto& [scene, theme] : {std::pair{&drawn.scene, "light"}, {&dark.scene, "dark"}})
        writer.figures += fmt::format("<div class=\"{}\">\n{}</div>\n", theme,
                                      sceneAsSvg(*scene,
                                                 {.title = {},
                                                  .description = {},
                                                  .label = drawn.title,
                                                  .name = id + "-" + theme + "-",
                                                  .rasteriseAbove = ExportOptions().rasteriseAbove},
                                                 &writer.fonts));
    writer.figures += "</figure>\n";
    writer.figures +=
        "<details><summary>How to read it</summary>\n" + markdownToHtml(view.card().help) + "</details>\n";
    writer.figures +=
        tableOf(withCheckWarning(view.table(input, viewOptions(writer.original, view)), input), view.card().name);
    writer.figures +=
        "<pre><code>" + escapeHtml(plotCommand(writer.session, figure, writer.saved)) + "</code></pre>\n</section>\n";
}

std::string factsOf(const Writer& writer) {
    const CaptureInfo& info = writer.input.capture->info();
    const Session& session = writer.session;
    std::vector<std::pair<std::string, std::string>> facts = {
        {"capture", info.fileName},
        {"hash", info.hash},
        {"model", info.modelId + " " + info.modelRevision},
        {"tokens", formatCount(info.numTokens)},
        {"shown", fmt::format("layer {}, KV head {}, query head {} (0-based)", session.layer.value,
                              session.kvHead.value, session.queryHead.value)},
        {"cut", fmt::format("{}: policies see {} tokens, {} evaluate", writer.input.cut.label,
                            formatCount(writer.input.cut.token),
                            writer.input.cut.evaluatedOnSeen ? "the last queries, which they see too,"
                                                             : "the queries after them")},
        {"seed", std::to_string(session.seed)}};
    if (const PaneData* first = writer.input.panes.empty() ? nullptr : &writer.input.panes.front();
        first && first->result)
        facts.push_back({"engine", first->result->engine + ", " + first->result->arithmetic});
    if (!session.compared.path.empty()) facts.push_back({"compared with", session.compared.path});
    if (!session.selected.empty()) facts.push_back({selectionWord(writer.input.focus), rangeText(session.selected)});
    std::string out = "<dl>\n";
    for (const auto& [name, value] : facts)
        out += "<dt>" + escapeHtml(name) + "</dt><dd>" + escapeHtml(value) + "</dd>\n";
    return out + "</dl>\n";
}

std::vector<const View*> chosenViews(const std::vector<std::string>& ids) {
    if (ids.empty()) return allViews();
    std::vector<const View*> views;
    for (const std::string& id : ids) views.push_back(&viewById(id));
    return views;
}

/// Empty for a live context.
std::filesystem::path folderOf(const Session& session) {
    return session.capturePath.empty() ? "" : std::filesystem::absolute(session.capturePath).parent_path();
}

/// `folder`: where the commands of the page run.
Writer writerOf(const Session& session, const std::filesystem::path& folder,
                const std::shared_ptr<const CaptureReader>& capture, const LayerRunner& runner,
                const QtTextService& text, const SavedLive& saved, const Checkpoint& checkpoint) {
    const auto fileName = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
    return {.session = withPathsFrom(folder, session),
            .input = headlessInput(session, capture, {}, runner, checkpoint),
            .runner = runner,
            .original = session,
            .text = text,
            .saved = {fileName(saved.session), fileName(saved.capture)}};
}

std::string headingOf(const Writer& writer) {
    return "<h3>" + escapeHtml(writer.input.capture->info().fileName) + "</h3>\n";
}

/// Adds the figure of the second capture after that of the first; the page embeds the fonts of both.
void addSecond(Writer& writer, Writer& second, const View& view) {
    for (std::string Writer::*text : {&Writer::figures, &Writer::contents, &Writer::missing}) second.*text = {};
    std::swap(writer.fonts, second.fonts);
    addFigure(second, view);
    std::swap(writer.fonts, second.fonts);
    for (std::string Writer::*text : {&Writer::figures, &Writer::contents, &Writer::missing})
        writer.*text += second.*text;
}

} // namespace

std::string reportPage(const Session& session, const std::shared_ptr<const CaptureReader>& capture,
                       const LayerRunner& runner, const ReportOptions& options, const Checkpoint& checkpoint) {
    const std::vector<const View*> views = chosenViews(options.views);
    const QtTextService text;
    Writer writer = writerOf(session, folderOf(session), capture, runner, text, options.saved, checkpoint.part(0, 0.1));
    std::optional<Writer> second;
    if (const auto other = openCompared(session, *capture)) {
        Session there = comparedSession(session);
        fitToCapture(there, *other);
        second.emplace(
            writerOf(there, folderOf(session), other, runner, text, options.saved, checkpoint.part(0.1, 0.2)));
        second->suffix = "-2";
    }
    for (std::size_t i = 0; i < views.size(); ++i) {
        const Checkpoint part = checkpoint.part(0.2, 1).step(i, views.size());
        const bool both = second && !showsBoth(*views[i]);
        compute(writer, *views[i], both ? part.part(0, 0.5) : part);
        if (both) {
            compute(*second, *views[i], part.part(0.5, 1));
            shareRange(*views[i], {&writer.original, &writer.session, &second->original, &second->session},
                       {&writer.input, &second->input});
        }
        addFigure(writer, *views[i]);
        if (both) addSecond(writer, *second, *views[i]);
    }
    const std::string title =
        fmt::format("{}, layer {}, KV head {}", capture->info().fileName, session.layer.value, session.kvHead.value);
    std::string body =
        "<header>\n<h1>" + escapeHtml(title) +
        "</h1>\n<p>What KV-cache compression keeps, what it evicts and what that costs. Written by KVScope.</p>\n" +
        factsOf(writer) + "</header>\n<h2 id=\"measures\">Measures</h2>\n<section>\n" + measureTables(writer.input);
    if (second) body += headingOf(*second) + factsOf(*second) + measureTables(second->input);
    body += "</section>\n<h2 id=\"figures\">Figures</h2>\n" + writer.figures;
    if (!writer.missing.empty())
        body += "<section>\n<h3>Not shown</h3>\n<ul>\n" + writer.missing + "</ul>\n</section>\n";
    body += "<h2 id=\"lists\">Kept tokens</h2>\n<section>\n" + keptLists(writer.input, writer.session, writer.saved);
    if (second) body += headingOf(*second) + keptLists(second->input, second->session, second->saved);
    body +=
        fmt::format("</section>\n<h2 id=\"commands\">Making it again</h2>\n<section>\n<p>The commands of figures and "
                    "lists run in the folder of the {}.</p>\n",
                    session.live.text().empty() ? "capture" : "saved session and capture");
    if (!options.command.empty())
        body += "<p>This one wrote the page:</p>\n"
                "<pre><code>" +
                escapeHtml(options.command) + "</code></pre>\n";
    body += "</section>\n";
    const std::string contents =
        "<li><a href=\"#measures\">Measures</a></li>\n<li><a href=\"#figures\">Figures</a>\n<ul>\n" + writer.contents +
        "</ul></li>\n<li><a href=\"#lists\">Kept tokens</a></li>\n" +
        "<li><a href=\"#commands\">Making it again</a></li>\n";
    for (const TextStyle& style :
         {TextStyle{}, TextStyle{.weight = FontWeight::SemiBold}, TextStyle{FontFace::Monospace}})
        writer.fonts.add(style, title + body);
    return htmlPage(title, contents, body, writer.fonts.css());
}

std::string reportPathOf(const std::string& out) {
    namespace fs = std::filesystem;
    const std::string extension = fs::path(out).extension().string();
    if (extension == ".html" || extension == ".htm") return out;
    std::error_code failed;
    fs::create_directories(out, failed);
    if (!fs::is_directory(out, failed))
        throw Error(
            {"the report cannot be written there", "--out", "Give FILE.html or a folder that may be written", out});
    return (fs::path(out) / "index.html").string();
}

std::string writeReport(const std::string& out, const std::string& page) {
    const std::string path = reportPathOf(out);
    writeFileAtomically(path, page);
    return path;
}

} // namespace kvscope
