// Facts that several views read off the same input: states of tokens, counts, the words of captions.
#include "views/common/view_facts.h"

#include "core/policies/policy.h"
#include "core/run/stored_rows.h"
#include "views/scene/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

const HeadSelection& headOf(const RunResult& result, KvHeadIndex head) { return result.selection.heads[head.value]; }

} // namespace

const PaneData* activePane(const ViewInput& input) {
    const auto index = static_cast<std::size_t>(std::max(0, input.activePane));
    return index < input.panes.size() ? &input.panes[index] : nullptr;
}

std::vector<const PaneData*> readyPanes(const ViewInput& input) {
    std::vector<const PaneData*> panes;
    for (const PaneData& pane : input.panes)
        if (pane.result) panes.push_back(&pane);
    return panes;
}

std::vector<TokenState> tokenStates(const ViewInput& input, const PaneData& pane) {
    const auto n = static_cast<std::size_t>(input.capture->info().numTokens);
    const RunResult& result = *pane.result;
    std::vector<TokenState> states(n, TokenState::AfterCut);
    std::fill_n(states.begin(), std::min<std::size_t>(n, static_cast<std::size_t>(result.visible)),
                TokenState::Evicted);
    const HeadSelection& head = headOf(result, input.kvHead);
    for (const TokenIndex token : head.kept) states[token] = TokenState::Kept;
    for (const TokenIndex token : head.protectedTokens) states[token] = TokenState::Protected;
    return states;
}

const char* stateName(TokenState state) {
    static const char* const names[] = {"kept", "protected", "evicted", "after the cut"};
    return names[static_cast<int>(state)];
}

const std::vector<TokenIndex>& keptTokens(const ViewInput& input, const PaneData& pane) {
    return headOf(*pane.result, input.kvHead).kept;
}

KeptCount keptAmong(const ViewInput& input, const PaneData& pane, const std::vector<TokenIndex>& tokens) {
    const auto& kept = keptTokens(input, pane);
    const auto end = std::lower_bound(tokens.begin(), tokens.end(), static_cast<TokenIndex>(pane.result->visible));
    return {std::count_if(tokens.begin(), end, [&](TokenIndex t) { return std::ranges::binary_search(kept, t); }),
            end - tokens.begin()};
}

std::vector<TokenIndex> beforeCut(const ViewInput& input, const std::vector<TokenIndex>& tokens) {
    std::vector<TokenIndex> seen;
    std::ranges::copy_if(tokens, std::back_inserter(seen), [&](TokenIndex t) { return t < input.cut.token; });
    return seen;
}

ViewTable withCheckWarning(ViewTable table, const ViewInput& input) {
    const std::string warning = input.capture ? input.capture->info().checkWarning() : "";
    if (warning.empty()) return table;
    const int last = static_cast<int>(table.columns.size());
    table.columns.emplace_back("capture_warning");
    table.cell = [cell = std::move(table.cell), last, warning](std::int64_t row, int column) {
        return column == last ? warning : cell(row, column);
    };
    return table;
}

std::vector<TokenIndex> tokensOfKind(const CaptureReader& capture, SegmentKind kind) {
    std::vector<TokenIndex> tokens;
    for (const Segment& segment : capture.tokens().segments)
        for (TokenIndex t = segment.begin; segment.kind == kind && t < segment.end; ++t) tokens.push_back(t);
    std::ranges::sort(tokens);
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    return tokens;
}

std::string segmentOf(const CaptureReader& capture, TokenIndex token) {
    const Segment* innermost = nullptr;
    for (const Segment& segment : capture.tokens().segments)
        if (segment.begin <= token && token < segment.end &&
            (!innermost || segment.end - segment.begin < innermost->end - innermost->begin))
            innermost = &segment;
    return innermost ? std::string(segmentName(innermost->kind)) : std::string();
}

std::string tokenText(const ViewInput& input, TokenIndex token) {
    return displayText(input.capture->tokens().textOf(token));
}

std::string quotedToken(const ViewInput& input, TokenIndex token) {
    return fmt::format("{} “{}”", formatCount(token), tokenText(input, token));
}

std::string selectionWord(const TokenFocus& focus) {
    return focus.selectionName.empty() ? "selected" : focus.selectionName;
}

std::string keptShare(const RunResult& result, KvHeadIndex head) {
    const HeadSelection& chosen = headOf(result, head);
    const auto percent = [&](double tokens) { return formatPercent(tokens / static_cast<double>(result.visible)); };
    const std::string own = percent(chosen.attendedTokens());
    if (const auto stored = storedOtherwise(result, head)) return fmt::format("{}, stores {}", own, percent(*stored));
    return chosen.queryHeads.empty()
               ? own
               : fmt::format("{} per query head, {} in union", own, percent(static_cast<double>(chosen.kept.size())));
}

std::string keptBudget(const RunResult& result, KvHeadIndex head) {
    const HeadSelection& chosen = headOf(result, head);
    const std::string own = formatBudget(std::llround(chosen.attendedTokens()), result.visible);
    return chosen.queryHeads.empty() ? own
                                     : fmt::format("{} per query head, {} in union", own,
                                                   formatBudget(std::ssize(chosen.kept), result.visible));
}

std::string scoreTitle(const PaneData& pane) {
    const RunRequest& run = pane.result->request;
    return run.recorded ? "recorded score" : policyById(pane.policyId).scoreLabel(run.policy.values);
}

std::string paneTitle(const PaneName& pane) {
    return pane.variant.empty() ? pane.policyName : pane.policyName + ", " + pane.variant;
}

std::string letteredName(const PaneName& pane) { return std::string(1, pane.letter) + " " + pane.policyName; }

std::string nameAmong(const std::vector<const PaneData*>& panes, const PaneData& pane) {
    return std::ranges::count(panes, pane.policyId, &PaneData::policyId) > 1 ? letteredName(pane) : pane.policyName;
}

std::string budgetWords(const Budget& budget) {
    switch (budget.unit) {
    case Budget::Unit::Fraction: return formatPercent(budget.value);
    case Budget::Unit::Tokens: return formatCount(std::llround(budget.value)) + " tokens";
    case Budget::Unit::Quality: break;
    }
    return fmt::format("tau = {}", budget.value);
}

std::string asSentence(std::string words) {
    const bool isFormula = words.substr(0, words.find(' ')).find('(') != std::string::npos; // cos(k̄, q̄)
    if (!words.empty() && words.front() >= 'a' && words.front() <= 'z' && !isFormula)
        words.front() = static_cast<char>(words.front() - 'a' + 'A');
    return words;
}

std::string withFullStop(std::string sentence) {
    const std::string last = sentence.substr(sentence.rfind(' ') + 1);
    const bool ends = last.ends_with('.') || last.ends_with('?') || last.ends_with('!') || last.ends_with("…");
    return last.empty() || ends || last.find('/') != std::string::npos ? sentence : sentence + ".";
}

ViewTable tableOf(std::vector<std::string> columns, std::vector<std::vector<std::string>> rows) {
    const auto rowCount = std::ssize(rows);
    return tableOf(std::move(columns), rowCount, [rows = std::move(rows)](std::int64_t row) { return rows[row]; });
}

ViewTable tableOf(std::vector<std::string> columns, std::int64_t rowCount,
                  std::function<std::vector<std::string>(std::int64_t row)> rowAt) {
    struct LastRow { // tables are read row by row
        std::int64_t row = -1;
        std::vector<std::string> cells = {};
    };
    const auto cell = [rowAt = std::move(rowAt), last = std::make_shared<LastRow>()](std::int64_t row, int column) {
        if (last->row != row) *last = {row, rowAt(row)};
        return last->cells[column];
    };
    return {std::move(columns), rowCount, cell};
}

std::string tableNumber(double value) { return std::isnan(value) ? "" : fmt::format("{:.9g}", value); }

Scene blankScene(const Viewport& viewport) {
    Scene scene;
    scene.width = viewport.width;
    scene.height = viewport.height;
    scene.background = themeOf(viewport.theme).canvas;
    return scene;
}

Scene emptyScene(const std::string& sentence, const Viewport& viewport) {
    Scene scene = blankScene(viewport);
    SceneBuilder builder(scene, *viewport.text);
    const Theme& theme = themeOf(viewport.theme);
    const TextStyle style{FontFace::Interface, 12};
    const auto lines = builder.wrap(sentence, style, viewport.width - 32);
    double y = viewport.height / 2 - 9 * (static_cast<double>(lines.size()) - 1);
    for (const std::string& line : lines) {
        builder.label({viewport.width / 2, y}, line, style, theme.text2, HorizontalAlign::Centre);
        y += 18;
    }
    return scene;
}

std::string whyNoData(const ViewInput& input, const std::string& waiting) {
    if (!input.capture) return kNoCapture;
    if (!input.data.error.empty()) return input.data.error;
    return input.data.value ? "" : waiting;
}

std::string whyEmpty(const ViewInput& input, const PaneData* pane) {
    if (!input.capture) return kNoCapture;
    if (!pane) return kNoPane;
    if (!pane->error.empty()) return withFullStop(asSentence(pane->error));
    if (!pane->result) return "Computing the first selection…";
    return {};
}

} // namespace kvscope
