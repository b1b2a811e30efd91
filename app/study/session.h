#pragma once

#include "core/base/index.h"
#include "core/engine/arithmetic.h"
#include "core/policies/policy_spec.h"
#include "views/view.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// One pane: a policy with its values, or a recorded list.
struct SessionPane {
    PolicySpec policy;        ///< unused when `recordedPath` is set
    std::string recordedPath; ///< absolute; empty: the policy chooses
    std::string unknownKeys;  ///< JSON object of keys that a newer version wrote, kept on save
    friend bool operator==(const SessionPane&, const SessionPane&) = default;
};

/// A text that copies share, since sessions are copied often and this one may be long.
class SharedText {
public:
    SharedText() = default;
    explicit SharedText(std::string text)
        : m_text(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}
    const std::string& text() const {
        static const std::string none;
        return m_text ? *m_text : none;
    }
    friend bool operator==(const SharedText& a, const SharedText& b) {
        return a.m_text == b.m_text || a.text() == b.text();
    }

private:
    std::shared_ptr<const std::string> m_text;
};

/// A second capture beside the session's: another prompt of the same model. It has tokens of its own, and so a
/// selection of its own; everything else is the session's.
struct ComparedCapture {
    std::string path; ///< absolute; empty: none
    std::vector<TokenIndex> selected;
    std::string selectionName;
    std::string unknownKeys = {}; ///< JSON object, as in SessionPane
    friend bool operator==(const ComparedCapture&, const ComparedCapture&) = default;
};

/// In the order in which they are offered.
enum class WindowLayout { ExploreHead, ComparePolicies, Teach, WholeModel };
enum class ThemeChoice { System, Light, Dark };

/// Where the window's docks are, in one layout and window size.
struct DockPlaces {
    std::string arrangement; ///< names layout and window size; empty: as the window has them
    std::string state;       ///< Qt's, in Base64
    bool byHand = false;     ///< separators were moved
    friend bool operator==(const DockPlaces&, const DockPlaces&) = default;
};

/// How the session is displayed. Saved with it, but not undone, because undoing a parameter must not move the picture.
struct LookState {
    std::map<std::string, Viewport::Range> ranges;         ///< view id -> pan and zoom; absent: fit
    TokenIndex stripTop = 0;                               ///< as Viewport::top
    std::map<std::string, Viewport::Range> comparedRanges; ///< the same of the compared capture
    TokenIndex comparedTop = 0;
    std::optional<TokenIndex> cursor; ///< as ViewInput::cursor: step cursor, in tokens read; empty: the end
    ThemeChoice theme = ThemeChoice::System;
    double scale = 1;                         ///< of the interface: 1, 1.25, 1.5, 2
    bool compact = false;                     ///< density
    std::string headMeasure = "output_error"; ///< in the head picker: a measure with a number per head
    bool reducedMotion = false;               ///< steps change at once instead of gliding
    DockPlaces docks;                         ///< of the file that was opened last
    std::string unknownKeys;                  ///< JSON object, as in SessionPane
    friend bool operator==(const LookState&, const LookState&) = default;
};

/// Everything visible as one value, except hover.
struct Session {
    std::string capturePath; ///< absolute; empty: a live context is shown
    SharedText live;         ///< what it was opened with (live::textOf); empty: a capture's file is shown
    LayerIndex layer;
    KvHeadIndex kvHead;
    QueryHeadIndex queryHead;
    std::string cut = "default"; ///< as typed, see Cut
    std::vector<SessionPane> panes;
    int activePane = 0;
    Budget budget{Budget::Unit::Fraction, 0.25};
    bool panesLinked = true; ///< the budget bar moves all panes, else the active one
    std::uint64_t seed = 0;
    Arithmetic arithmetic = Arithmetic::Exact; ///< fast results differ; the engine belongs to the window
    std::vector<TokenIndex> selected;          ///< ascending
    std::string selectionName;
    ComparedCapture compared;
    bool isSecond = false; ///< this session shows the compared capture of another one (comparedSession)
    WindowLayout layout = WindowLayout::ComparePolicies;
    std::map<std::string, std::map<std::string, std::string>> viewOptions; ///< view id -> option id -> text
    LookState look;
    std::string lesson;      ///< JSON object, read by app/lessons; empty: the session is no lesson
    std::string unknownKeys; ///< JSON object, as in SessionPane

    friend bool operator==(const Session&, const Session&) = default;
};

constexpr int kMaxPanes = 4;

/// Both captures, recorded lists, calibration curves, and files named by parameters and view options: files that no
/// output may overwrite.
std::vector<std::string> filesReadBy(const Session& session);

/// The pane's own budget, or the common one.
Budget effectiveBudget(const Session& session, std::size_t pane);
/// Sets the budget of all panes when linked, else of the active one.
void setBudget(Session& session, const Budget& budget);
/// Linking gives every pane the active pane's budget; unlinking gives every pane the common one as its own.
void linkPanes(Session& session, bool linked);
/// False when there are kMaxPanes already. The new pane becomes active.
bool addPane(Session& session, SessionPane pane);
void removePane(Session& session, std::size_t index);
/// A view's options from the session, checked against its table. Invalid values fall back to the defaults.
ParameterValues viewOptions(const Session& session, const View& view);
/// The shown part of a view; nothing: all of it.
std::optional<Viewport::Range> shownRange(const Session& session, const View& view);
void setViewOption(Session& session, const std::string& viewId, const std::string& option, const std::string& text);

/// Selects ascending tokens under a name, which may be empty.
void select(Session& session, std::vector<TokenIndex> tokens, std::string name = {});

/// Fits layer, heads, cursor and selection to what the capture holds; keeps KV head and query head in one group.
void fitToCapture(Session& session, const CaptureReader& capture);
/// Chooses a KV head and, with it, the first query head that reads it.
void chooseKvHead(Session& session, KvHeadIndex head, const CaptureReader& capture);
void chooseQueryHead(Session& session, QueryHeadIndex head, const CaptureReader& capture);

/// Gives a session the theme, scale, density, motion and docks of another one.
void keepInterface(Session& session, const Session& of);

/// A session on another capture, and a sentence for each thing that could not be kept.
struct CarriedSession {
    Session session;
    std::vector<std::string> adapted;
};
/// Policies, parameters, budget, seed, layout and options of views stay; layer, heads and cut stay where the capture
/// has them. Recorded lists and imported scores belong to their capture and go, as do selection, zoom and lesson. A
/// session without panes gives the capture's first session in its layout.
CarriedSession carriedTo(const CaptureReader& capture, const Session& before);

/// The first session of a capture: three policies side by side, the needle selected if there is one, and a budget at
/// which the policies differ.
Session firstSession(const CaptureReader& capture);

} // namespace kvscope
