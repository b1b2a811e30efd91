#pragma once

#include "views/view.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace kvscope {

inline constexpr const char* kNoCapture = "No capture is open. Open one or drop it on the window.";
inline constexpr const char* kNoPane = "No policy is shown: add a pane.";

/// The active pane; null when there is none.
const PaneData* activePane(const ViewInput& input);
/// Panes that have a result.
std::vector<const PaneData*> readyPanes(const ViewInput& input);

/// State of a token in a pane; small, because a long capture has a million.
enum class TokenState : std::uint8_t { Kept, Protected, Evicted, AfterCut };

/// "kept", "protected", "evicted", "after the cut".
const char* stateName(TokenState state);
inline bool isKept(TokenState state) { return state == TokenState::Kept || state == TokenState::Protected; }

/// States of all n tokens of the input's KV head. The pane must have a result.
std::vector<TokenState> tokenStates(const ViewInput& input, const PaneData& pane);

/// The pane's kept list in the input's KV head, ascending. The pane must have a result.
const std::vector<TokenIndex>& keptTokens(const ViewInput& input, const PaneData& pane);

struct KeptCount {
    std::int64_t kept = 0, of = 0;
};
/// Looks at the tokens of an ascending list before the pane's own cut (a recorded list has the cut of its run, any
/// other the session's): how many of them the pane keeps, and how many there are. The pane must have a result.
KeptCount keptAmong(const ViewInput& input, const PaneData& pane, const std::vector<TokenIndex>& tokens);

/// Those of `tokens` that lie before the session's cut.
std::vector<TokenIndex> beforeCut(const ViewInput& input, const std::vector<TokenIndex>& tokens);

/// The table as it leaves the program: if the capture failed its self-check, a last column `capture_warning` says so in
/// every row.
ViewTable withCheckWarning(ViewTable table, const ViewInput& input);

/// All tokens of segments of this kind, ascending.
std::vector<TokenIndex> tokensOfKind(const CaptureReader& capture, SegmentKind kind);

/// "needle", "context" ...: the innermost segment of a token, or empty.
std::string segmentOf(const CaptureReader& capture, TokenIndex token);

/// The text of a token, with signs for spaces and line breaks.
std::string tokenText(const ViewInput& input, TokenIndex token);
/// "1,024 “needle”".
std::string quotedToken(const ViewInput& input, TokenIndex token);

/// The words after "selected": the selection's name, or "selected".
std::string selectionWord(const TokenFocus& focus);

/// Kept share of the tokens before the cut: "25.0 %", or "51.0 %, stores 67.0 %" where the stored share differs.
std::string keptShare(const RunResult& result, KvHeadIndex head);
/// "249 tokens (25.0 %)": what a head keeps of the tokens before the cut.
std::string keptBudget(const RunResult& result, KvHeadIndex head);

/// "25.0 %", "249 tokens", "tau = 0.95".
std::string budgetWords(const Budget& budget);

/// What the scores of a pane are: "−cos(μ, k)", "recorded score". The pane must have a result.
std::string scoreTitle(const PaneData& pane);

std::string paneTitle(const PaneName& pane);    ///< "KeyDiff, kvpress"
std::string letteredName(const PaneName& pane); ///< "A KeyDiff"

/// "KeyDiff", or "A KeyDiff" where several of the panes run this policy.
std::string nameAmong(const std::vector<const PaneData*>& panes, const PaneData& pane);

/// "layer 3, KV head 1 (0-based) · cut: end of context, 995", with "simulated ..." and "fast arithmetic" where that is
/// so, the budgets of recorded lists, and their cuts where they have another one. `wholeModel`: the picture
/// is of all heads and names none.
std::string provenance(const ViewInput& input, const std::vector<const PaneData*>& panes, bool wholeModel = false);
/// The same for a picture that names its own place, such as "layer 3, all its heads"; an empty place: none.
std::string provenanceOf(const std::string& place, const ViewInput& input, const std::vector<const PaneData*>& panes);

/// Capitalises the first letter unless a formula stands there: sentences in pictures begin with words that elsewhere
/// follow "kvscope:".
std::string asSentence(std::string words);

/// Adds a full stop unless the sentence ends with one or with a path, because error sentences have none.
std::string withFullStop(std::string sentence);

/// A table of ready cells, each row as long as `columns`.
ViewTable tableOf(std::vector<std::string> columns, std::vector<std::vector<std::string>> rows);

/// A table whose rows, each as long as `columns`, are written when they are asked for.
ViewTable tableOf(std::vector<std::string> columns, std::int64_t rowCount,
                  std::function<std::vector<std::string>(std::int64_t row)> rowAt);
/// A number in a table: nine digits; empty for NaN.
std::string tableNumber(double value);
/// A row of a table: texts as they are, whole numbers in digits, others as `tableNumber`.
template <class... Cells> std::vector<std::string> tableRow(const Cells&... cells) {
    const auto text = []<class Cell>(const Cell& cell) -> std::string {
        if constexpr (std::is_same_v<Cell, char>) return std::string(1, cell);
        if constexpr (std::is_floating_point_v<Cell>) return tableNumber(static_cast<double>(cell));
        if constexpr (std::is_integral_v<Cell>) return std::to_string(cell);
        if constexpr (!std::is_arithmetic_v<Cell>) return std::string(cell);
    };
    return {text(cells)...};
}

/// An empty scene of the viewport's size on its canvas.
Scene blankScene(const Viewport& viewport);

/// A scene that says in one sentence why there is nothing to see.
Scene emptyScene(const std::string& sentence, const Viewport& viewport);

/// Why a view of data is empty: no capture, the reason for missing data, or `waiting`; an empty text when there are
/// data.
std::string whyNoData(const ViewInput& input, const std::string& waiting);

/// Why this pane has no result, or null: why there is no pane; empty when it has one.
std::string whyEmpty(const ViewInput& input, const PaneData* pane);

} // namespace kvscope
