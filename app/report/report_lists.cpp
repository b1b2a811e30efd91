// The lists of all heads for use in a program, and the list of the shown head with texts for reading.
#include "app/report/report_lists.h"

#include "app/report/html.h"
#include "app/study/regenerating_command.h"
#include "core/run/head_means.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::int64_t kMostTokens = 500;

std::string number(double value, int decimals) { return std::isnan(value) ? "–" : formatFixed(value, decimals); }

std::string percent(double share) { return std::isnan(share) ? "–" : formatFixed(100 * share, 1) + " %"; }

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
        case 5: return fmt::format("{:.1f} KiB", static_cast<double>(storedBytes(result)) / 1024);
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

} // namespace

std::string measureTables(const ViewInput& input) {
    if (input.panes.empty()) return "<p>The session has no panes.</p>\n";
    std::string notes;
    for (const PaneData& pane : input.panes)
        for (const std::string& note : pane.result->notes)
            notes += "<li>" + escapeHtml(paneName(pane) + ": " + note) + "</li>\n";
    return paneTable(input) + (notes.empty() ? "" : "<ul>\n" + notes + "</ul>\n") +
           "<details><summary>Every query head of the layer</summary>\n" + headTable(input) + "</details>\n";
}

std::string keptLists(const ViewInput& input, const Session& session) {
    std::string out;
    for (std::size_t index = 0; index < input.panes.size(); ++index) {
        const PaneData& pane = input.panes[index];
        out += "<h3>" + escapeHtml(paneName(pane)) + "</h3>\n<dl>\n";
        for (std::size_t head = 0; head < pane.result->selection.heads.size(); ++head) {
            const HeadSelection& chosen = pane.result->selection.heads[head];
            const std::string name =
                fmt::format("KV head {}{}", head, chosen.queryHeads.empty() ? "" : ", union of its query heads");
            out += keptList(name, chosen.kept);
            for (const QueryHeadSet& own : chosen.queryHeads)
                out += keptList(fmt::format("query head {}", own.queryHead), own.kept);
        }
        out +=
            "</dl>\n<details><summary>With text, rank and score</summary>\n" + tokenTable(input, pane) + "</details>\n";
        if (session.panes[index].recordedPath.empty())
            out += "<pre><code>" + escapeHtml(evictCommand(session, index, fmt::format("kept-{}.json", pane.letter))) +
                   "</code></pre>\n";
        else
            out += "<p>Recorded in <code>" + escapeHtml(session.panes[index].recordedPath) + "</code>.</p>\n";
    }
    return out;
}

} // namespace kvscope
