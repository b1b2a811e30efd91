#pragma once

#include "core/capture/capture.h"
#include "core/parameters/parameters.h"
#include "core/run/run.h"
#include "views/scene/scene.h"
#include "views/scene/text_service.h"
#include "views/scene/theme.h"
#include "views/view_data.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// One policy pane as views see it.
struct PaneData {
    char letter = 'A';
    std::string policyId, policyName, variant;
    std::shared_ptr<const RunResult> result; ///< null until the first result arrives
    bool computing = false;                  ///< the result is older than the request
    std::string error;                       ///< why there is no result
};

/// The selected and hovered tokens, shared by all views.
struct TokenFocus {
    std::vector<TokenIndex> selected; ///< ascending
    std::string selectionName;        ///< "needle", or empty
    TokenIndex hovered = -1;
    bool brushing = false; ///< the rest fades
};

/// Everything that a view may read; it does not change while a scene is built.
struct ViewInput {
    std::shared_ptr<const CaptureReader> capture;
    LayerIndex layer;
    KvHeadIndex kvHead;
    QueryHeadIndex queryHead;
    Cut cut;
    std::vector<PaneData> panes;
    int activePane = 0;
    TokenFocus focus;
    std::optional<TokenIndex>
        cursor;     ///< tokens of the stream that have been read, for views with a step sequence; empty: all
    DataState data; ///< of the view that the input is for
};

/// The data as the view's own type; null while there are none.
template <class Data> std::shared_ptr<const Data> dataAs(const ViewInput& input) {
    return std::dynamic_pointer_cast<const Data>(input.data.value);
}

/// Size and range of a drawing. Range and scroll come from the canvas (pan, zoom); empty means "fit".
struct Viewport {
    double width = 600, height = 400; ///< logical pixels
    double pixelScale = 1;            ///< device pixels per logical pixel, for images
    ThemeId theme = ThemeId::Light;
    const TextService* text = nullptr;
    bool forExport = false; ///< without chips and hints
    struct Range {
        double xMin, xMax, yMin, yMax;
    };
    std::optional<Range> range;
    double scroll = 0;         ///< logical pixels from the top of scrollable content
    bool besideOthers = false; ///< per-pane view in the window: shared texts are drawn once for all panes
};

/// The table behind a canvas, for screen readers and "Copy data".
struct ViewTable {
    std::vector<std::string> columns;
    std::int64_t rowCount = 0;
    std::function<std::string(std::int64_t row, int column)> cell;
};

/// A setting change that a mark stands for: a click on it or a drag applies it to a pane or to the view.
struct SettingChange {
    int pane = -1; ///< index, which becomes the active pane; -1: the active one
    std::vector<std::pair<std::string, std::string>> values; ///< parameter id, text; taken where the policy has it
    std::optional<Budget> budget = {};
    std::vector<std::pair<std::string, std::string>> options = {}; ///< of the view: option id, text
    std::string step = "Set value";                                ///< what undo calls it
};

/// Facts about a point of a picture, as names and values; empty: none.
struct PointFacts {
    std::vector<std::pair<std::string, std::string>> rows; ///< of a token: what the view adds to the common read-out
    TokenIndex token = -1;                                 ///< token that the other views ring
    int layer = -1, kvHead = -1, queryHead = -1;           ///< target of a click; -1: none
    std::optional<SettingChange> settingChange;            ///< what a click sets
};

/// A step log as a sequence of events, each at a number of tokens read.
struct StepSequence {
    std::string title;
    std::vector<TokenIndex> events;     ///< tokens read, ascending; empty: the view has no steps
    std::vector<TokenIndex> milestones; ///< those among them that weigh more (merges)
};

struct ViewCard {
    std::string id, name, summary;
    std::string paper; ///< which figures it reproduces
    std::string help;  ///< Markdown from the view's .md
    /// Options of stage Features change the computed data, options of stage Combine choose another part of them (the
    /// old data stay until the new ones are ready); others change only the drawing, unless the data's maker names them.
    std::shared_ptr<const ParameterTable> options = std::make_shared<const ParameterTable>();
    bool perPane = false;  ///< drawn once per pane (pane index in the input) or once for all
    std::string data = {}; ///< kind of ViewData that it shows ("projection"); empty: none
};

/// A pure function from results to a scene.
class View {
public:
    explicit View(ViewCard card) : m_card(std::move(card)) {}
    virtual ~View() = default;

    const ViewCard& card() const { return m_card; }
    virtual Scene buildScene(const ViewInput& input, const ParameterValues& options,
                             const Viewport& viewport) const = 0;
    /// One computed sentence: "14 of 16 needle tokens evicted at 10 %". Never empty.
    virtual std::string finding(const ViewInput& input, const ParameterValues& options) const = 0;
    virtual ViewTable table(const ViewInput& input, const ParameterValues& options) const = 0;
    /// The facts about a point of a scene that this view built.
    virtual PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene,
                               Point at) const {
        return (void)input, (void)options, (void)scene, (void)at, PointFacts{};
    }
    /// The events for the step player, which moves `ViewInput::cursor`.
    virtual StepSequence stepSequence(const ViewInput& input, const ParameterValues& options) const {
        return (void)input, (void)options, StepSequence{};
    }
    /// Describes the last event at or before the cursor, in at most two lines with numbers.
    virtual std::string caption(const ViewInput& input, const ParameterValues& options) const {
        return (void)input, (void)options, std::string{};
    }

private:
    ViewCard m_card;
};

const std::vector<const View*>& allViews();
const View& viewById(std::string_view id); ///< throws Error with the nearest name

} // namespace kvscope
