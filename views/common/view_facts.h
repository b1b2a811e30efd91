#pragma once

#include "views/view.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

inline constexpr const char* kNoCapture = "No capture is open. Open one or drop it on the window.";
inline constexpr const char* kNoPane = "No policy is shown: add a pane.";

/// The pane that the input points at; null when there is none.
const PaneData* activePane(const ViewInput& input);
/// Panes that have a result.
std::vector<const PaneData*> readyPanes(const ViewInput& input);

/// What became of one token in one pane.
enum class TokenState { Kept, Protected, Evicted, AfterCut };

/// States of all n tokens of the input's KV head. The pane must have a result.
std::vector<TokenState> tokenStates(const ViewInput& input, const PaneData& pane);

/// What the pane keeps in the input's KV head, ascending. The pane must have a result.
const std::vector<TokenIndex>& keptTokens(const ViewInput& input, const PaneData& pane);

/// Kept tokens among an ascending list, by the pane's selection.
std::int64_t keptAmong(const ViewInput& input, const PaneData& pane, const std::vector<TokenIndex>& tokens);

/// Tokens of `tokens` that lie before the cut: the only ones that a policy decides about.
std::vector<TokenIndex> beforeCut(const ViewInput& input, const std::vector<TokenIndex>& tokens);

/// All tokens of segments of this kind, ascending.
std::vector<TokenIndex> tokensOfKind(const CaptureReader& capture, SegmentKind kind);

/// "needle", "context" ...: the innermost segment of a token, or empty.
std::string segmentOf(const CaptureReader& capture, TokenIndex token);

/// The words after "selected": the selection's name, or "selected".
std::string selectionWord(const TokenFocus& focus);

/// "25.0 %": kept share of the tokens before the cut.
std::string keptShare(const RunResult& result, KvHeadIndex head);

/// "A  KeyDiff, kvpress".
std::string paneTitle(const PaneData& pane);

/// "layer 3, KV head 1 (0-based) · cut: end of context, 995", with "simulated ..." and "fast arithmetic" where that is
/// so. `wholeModel`: a picture of all heads names none.
std::string provenance(const ViewInput& input, const std::vector<const PaneData*>& panes, bool wholeModel = false);

/// With a capital first letter, unless a formula stands there: a picture begins with words that go on elsewhere, an
/// error behind "kvscope:", say.
std::string asSentence(std::string words);

/// With a full stop at the end, unless the sentence has an end or is one of a path: errors bring none along.
std::string withFullStop(std::string sentence);

/// A table of ready cells, each row as long as `columns`.
ViewTable tableOf(std::vector<std::string> columns, std::vector<std::vector<std::string>> rows);

/// A scene that says in one sentence why there is nothing to see.
Scene emptyScene(const std::string& sentence, const Viewport& viewport);

/// Why a view of Data has nothing to show: no capture, the reason why there are no data, or that they are on their way
/// (`waiting`); empty when it has some.
template <class Data> std::string whyNoData(const ViewInput& input, const char* waiting) {
    if (!input.capture)
        return kNoCapture;
    if (!input.data.error.empty())
        return input.data.error;
    return dataAs<Data>(input) ? "" : waiting;
}

/// Why this pane has nothing to show; empty when it has a result.
std::string whyEmpty(const ViewInput& input, const PaneData& pane);

} // namespace kvscope
