// The session is a plain value: every change makes a new value, undo is a list of values, and a session file lists the
// members. The functions here keep the members consistent.
#include "app/study/session.h"

#include "app/study/prompt_text.h"

#include "core/base/error.h"
#include "core/policies/policy_needs.h"
#include "views/attention_map/map_cell.h"
#include "views/common/view_options.h"

#include <algorithm>
#include <cassert>

namespace kvscope {

namespace {

/// A data set's file stands before ":/", as in FILE.h5:/path.
std::string fileOf(const std::string& named) { return named.substr(0, named.rfind(":/")); }

/// The calibration curve of a budget and the files of a policy's parameters. Other texts name no file that exists, and
/// so are harmless.
void addFilesOf(const PolicySpec& policy, const Budget& budget, std::vector<std::string>& files) {
    files.push_back(budget.curve);
    if (policy.policy.empty()) return;
    for (const ParameterSpec& parameter : policy.values.table())
        if (parameter.kind == ParameterKind::Text) files.push_back(fileOf(policy.values.text(parameter.id)));
}

/// "2 recorded lists belong to the previous capture and are not shown."
std::string goneSentence(std::size_t count, const std::string& one, const std::string& more) {
    return std::to_string(count) + " " + (count == 1 ? one + " belongs" : more + " belong") +
           " to the previous capture and " + (count == 1 ? "is" : "are") + " not shown.";
}

const std::vector<std::int32_t>& groupsOf(const Session& session, const CaptureReader& capture) {
    return capture.info().layerInfo(session.layer).gqaGroupOf;
}

/// Retrieval heads are mostly in middle layers; the first layers mostly attend to neighbours.
LayerIndex middleLayer(const CaptureInfo& info) {
    assert(!info.layers.empty());
    return info.layers[info.layers.size() / 2].layer;
}

/// Whether a query of the shown layer was captured that a policy may see.
bool hasQueriesBeforeCut(const Session& session, const CaptureReader& capture) {
    const CaptureInfo& info = capture.info();
    return info.numTokens - info.layerInfo(session.layer).queryCount < Cut::resolve(session.cut, capture).token;
}

void selectNeedle(Session& session, const TokenTable& tokens) {
    const std::optional<TokenRun> asked = askedNeedle(tokens);
    if (!asked) return;
    session.selected = tokensOf({*asked});
    session.selectionName = segmentName(SegmentKind::Needle);
}

/// Clears the name "needle" unless all selected tokens are of needles: a file that was written anew may have them
/// elsewhere, or none.
void releaseLostName(Session& session, const TokenTable& tokens) {
    if (session.selectionName != segmentName(SegmentKind::Needle)) return;
    const auto isOfNeedle = [&](TokenIndex token) {
        return std::ranges::any_of(tokens.segments, [token](const Segment& segment) {
            return segment.kind == SegmentKind::Needle && segment.begin <= token && token < segment.end;
        });
    };
    if (!std::ranges::all_of(session.selected, isOfNeedle)) session.selectionName.clear();
}

/// Layer, heads and cut of another capture's session, as far as this capture has them.
void keepPlace(CarriedSession& carried, const CaptureReader& capture, const Session& before) {
    const CaptureInfo& info = capture.info();
    Session& session = carried.session;
    const bool known = before.kvHead.value < info.numKvHeads &&
                       std::any_of(info.layers.begin(), info.layers.end(),
                                   [&](const LayerInfo& l) { return l.layer == before.layer; });
    if (known) {
        session.layer = before.layer;
        session.kvHead = before.kvHead;
        session.queryHead = before.queryHead;
    } else {
        carried.adapted.push_back("There is no layer " + std::to_string(before.layer.value) + " with KV head " +
                                  std::to_string(before.kvHead.value) + ": layer " +
                                  std::to_string(session.layer.value) + ", KV head " +
                                  std::to_string(session.kvHead.value) + " is shown.");
    }
    try {
        Cut::resolve(before.cut, capture);
        session.cut = before.cut;
    } catch (const Error&) {
        carried.adapted.push_back("The cut " + before.cut + " does not fit: the default cut is taken.");
    }
    fitToCapture(session, capture);
}

/// Releases a locked cell that lies behind the end of the text.
void releaseLostCells(CarriedSession& carried, const CaptureReader& capture) {
    for (const View* view : allViews()) {
        const ParameterValues options = viewOptions(carried.session, *view);
        const std::optional<SettingChange> release = view->lockReleased(options);
        const std::optional<MapCell> cell = release ? MapCell::parse(options.text(kMapCellOption)) : std::nullopt;
        const std::int64_t n = capture.info().numTokens;
        if (!cell || (cell->lastQuery < n && cell->lastKey < n)) continue;
        for (const auto& [id, text] : release->options) setViewOption(carried.session, view->card().id, id, text);
        carried.adapted.push_back("The locked cell lies behind the end of this text and is released.");
    }
}

} // namespace

std::vector<std::string> filesReadBy(const Session& session) {
    std::vector<std::string> files = {session.capturePath, session.compared.path};
    for (std::size_t pane = 0; pane < session.panes.size(); ++pane) {
        files.push_back(session.panes[pane].recordedPath);
        addFilesOf(session.panes[pane].policy, effectiveBudget(session, pane), files);
    }
    for (const auto& [view, options] : session.viewOptions)
        for (const auto& [option, text] : options) // options that name no file are harmless here
            for (std::string& file : filesOf(text)) files.push_back(std::move(file));
    return files;
}

Budget effectiveBudget(const Session& session, std::size_t pane) {
    assert(pane < session.panes.size());
    return session.panes[pane].policy.budget.value_or(session.budget);
}

void setBudget(Session& session, const Budget& budget) {
    if (session.panesLinked || session.panes.empty()) {
        session.budget = budget;
        for (SessionPane& pane : session.panes) pane.policy.budget.reset();
        return;
    }
    session.panes[session.activePane].policy.budget = budget;
}

void linkPanes(Session& session, bool linked) {
    if (linked && !session.panes.empty())
        session.budget = effectiveBudget(session, static_cast<std::size_t>(session.activePane));
    for (std::size_t pane = 0; pane < session.panes.size(); ++pane) {
        auto& own = session.panes[pane].policy.budget;
        own = linked ? std::nullopt : std::optional<Budget>(effectiveBudget(session, pane));
    }
    session.panesLinked = linked;
}

bool addPane(Session& session, SessionPane pane) {
    if (session.panes.size() >= static_cast<std::size_t>(kMaxPanes)) return false;
    if (!session.panesLinked && !pane.policy.budget)
        pane.policy.budget = session.panes.empty()
                                 ? session.budget
                                 : effectiveBudget(session, static_cast<std::size_t>(session.activePane));
    session.panes.push_back(std::move(pane));
    session.activePane = static_cast<int>(session.panes.size()) - 1;
    return true;
}

void removePane(Session& session, std::size_t index) {
    assert(index < session.panes.size());
    session.panes.erase(session.panes.begin() + static_cast<std::ptrdiff_t>(index));
    if (session.activePane > static_cast<int>(index) || session.activePane >= static_cast<int>(session.panes.size()))
        session.activePane = std::max(0, session.activePane - 1);
}

ParameterValues viewOptions(const Session& session, const View& view) {
    ParameterValues values(view.card().options);
    const auto stored = session.viewOptions.find(view.card().id);
    if (stored == session.viewOptions.end()) return values;
    for (const auto& [id, text] : stored->second) {
        try {
            values.setText(id, text);
        } catch (const Error&) {
            // From a version with other options: the default is better than an error.
        }
    }
    return values;
}

std::optional<Viewport::Range> shownRange(const Session& session, const View& view) {
    const auto range = session.look.ranges.find(view.card().id);
    return range == session.look.ranges.end() ? std::nullopt : std::optional(range->second);
}

void setViewOption(Session& session, const std::string& viewId, const std::string& option, const std::string& text) {
    session.viewOptions[viewId][option] = text;
}

void select(Session& session, std::vector<TokenIndex> tokens, std::string name) {
    session.selected = std::move(tokens);
    session.selectionName = std::move(name);
}

void fitToCapture(Session& session, const CaptureReader& capture) {
    const CaptureInfo& info = capture.info();
    const auto known =
        std::ranges::find_if(info.layers, [&](const LayerInfo& layer) { return layer.layer == session.layer; });
    if (known == info.layers.end()) session.layer = middleLayer(info);
    session.kvHead = KvHeadIndex(std::clamp(session.kvHead.value, 0, std::max(0, info.numKvHeads - 1)));
    const auto& groups = groupsOf(session, capture);
    const auto query = static_cast<std::size_t>(std::max(0, session.queryHead.value));
    if (query >= groups.size() || groups[query] != session.kvHead.value) chooseKvHead(session, session.kvHead, capture);
    const auto last = static_cast<TokenIndex>(info.numTokens) - 1;
    session.look.stripTop = std::clamp<TokenIndex>(session.look.stripTop, 0, last);
    if (session.look.cursor)
        session.look.cursor = std::clamp<TokenIndex>(*session.look.cursor, 0, static_cast<TokenIndex>(info.numTokens));
    std::erase_if(session.selected, [&](TokenIndex t) { return t < 0 || t >= info.numTokens; });
    if (session.selected.empty()) session.selectionName.clear();
    releaseLostName(session, capture.tokens());
    session.activePane = std::clamp(session.activePane, 0, std::max(0, static_cast<int>(session.panes.size()) - 1));
}

void keepInterface(Session& session, const Session& of) {
    session.look.theme = of.look.theme;
    session.look.scale = of.look.scale;
    session.look.compact = of.look.compact;
    session.look.reducedMotion = of.look.reducedMotion;
    session.look.docks = of.look.docks;
}

CarriedSession carriedTo(const CaptureReader& capture, const Session& before) {
    CarriedSession carried{firstSession(capture), {}};
    Session& session = carried.session;
    keepInterface(session, before);
    session.look.headMeasure = before.look.headMeasure;
    session.arithmetic = before.arithmetic;
    session.layout = before.layout;
    if (before.panes.empty()) return carried;
    Session rest = before;
    const auto drop = [&](auto belongsToCapture) {
        const std::size_t count = rest.panes.size();
        for (std::size_t i = count; i-- > 0;)
            if (belongsToCapture(rest.panes[i])) removePane(rest, i);
        return count - rest.panes.size();
    };
    const auto lists = drop([](const SessionPane& pane) { return !pane.recordedPath.empty(); });
    if (lists > 0) carried.adapted.push_back(goneSentence(lists, "recorded list", "recorded lists"));
    const auto scores = drop([](const SessionPane& pane) { return readsImportedScores(pane.policy); });
    if (scores > 0)
        carried.adapted.push_back(goneSentence(scores, "pane of imported scores", "panes of imported scores"));
    if (!before.compared.path.empty()) carried.adapted.push_back("The comparison of two captures is closed.");
    if (!rest.panes.empty()) {
        session.panes = std::move(rest.panes);
        session.activePane = rest.activePane;
    }
    session.budget = before.budget;
    session.panesLinked = before.panesLinked;
    session.seed = before.seed;
    session.viewOptions = before.viewOptions;
    releaseLostCells(carried, capture);
    keepPlace(carried, capture, before);
    return carried;
}

void chooseKvHead(Session& session, KvHeadIndex head, const CaptureReader& capture) {
    session.kvHead = head;
    const auto& groups = groupsOf(session, capture);
    const auto first = std::ranges::find(groups, head.value);
    if (first != groups.end()) session.queryHead = QueryHeadIndex(first - groups.begin());
}

void chooseQueryHead(Session& session, QueryHeadIndex head, const CaptureReader& capture) {
    const auto& groups = groupsOf(session, capture);
    assert(head.value >= 0 && static_cast<std::size_t>(head.value) < groups.size());
    session.queryHead = head;
    session.kvHead = KvHeadIndex(groups[head.value]);
}

Session firstSession(const CaptureReader& capture) {
    Session session;
    session.capturePath = capture.info().path;
    session.layer = middleLayer(capture.info());
    session.kvHead = KvHeadIndex(capture.info().numKvHeads / 2);
    for (const char* spec :
         {"keydiff:kvpress", hasQueriesBeforeCut(session, capture) ? "snapkv" : "key_norm", "streaming_llm"})
        session.panes.push_back({PolicySpec::parse(spec), {}, {}});
    selectNeedle(session, capture.tokens());
    fitToCapture(session, capture);
    return session;
}

} // namespace kvscope
