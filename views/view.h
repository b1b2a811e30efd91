#pragma once

#include "core/capture/capture.h"
#include "core/capture/cut.h"
#include "views/pane_name.h"
#include "views/scene/scene.h"
#include "views/scene/text_service.h"
#include "views/scene/theme.h"
#include "views/view_answers.h"
#include "views/view_card.h"
#include "views/view_data.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace kvscope {

class ColourScale; // views/common/colour_scale.h
struct RunResult;  // core/run/run.h
struct ValueRange; // views/common/value_range.h

/// One policy pane as a view sees it.
struct PaneData : PaneName {
    std::shared_ptr<const RunResult> result = {};   ///< null until the first result arrives
    std::shared_ptr<const RunResult> measured = {}; ///< in a window: the newest measured result, which may be older
    bool computing = false;                         ///< the result is older than the request, or not measured yet
    bool outdated = false;                          ///< the result is older than the request
    std::string error = {};                         ///< why there is no result
};

/// The selected and hovered tokens, shared by all views.
struct TokenFocus {
    std::vector<TokenIndex> selected; ///< ascending
    std::string selectionName;        ///< "needle", or empty
    TokenIndex hovered = -1;
    bool brushing = false; ///< while a brush or lasso selects: all other tokens fade
};

/// Heads that were opened while the list of the worst heads was shown, as layer and head.
struct OpenedHeads {
    std::set<std::pair<int, int>> queryHeads, kvHeads;
    std::set<std::pair<int, int>>& of(bool perQueryHead) { return perQueryHead ? queryHeads : kvHeads; }
    const std::set<std::pair<int, int>>& of(bool perQueryHead) const { return perQueryHead ? queryHeads : kvHeads; }
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
    OpenedHeads opened;
    std::optional<TokenIndex> cursor; ///< tokens of the stream that have been read, for step sequences; empty: all
    DataState data;                   ///< of the view that the input is for
};

/// The data as the view's own type; null while there are none.
template <class Data> std::shared_ptr<const Data> dataAs(const ViewInput& input) {
    return std::dynamic_pointer_cast<const Data>(input.data.value);
}

/// Size and range of a drawing. Range and top come from the canvas (pan, zoom, scroll); no range means "fit".
struct Viewport {
    double width = 600, height = 400; ///< logical pixels
    double pixelScale = 1;            ///< device pixels per logical pixel, for images
    ThemeId theme = ThemeId::Light;
    const TextService* text = nullptr;
    bool forExport = false; ///< without chips and hints
    using Range = ShownRange;
    std::optional<Range> range;
    TokenIndex top = 0;        ///< a text begins with the line of this token
    bool besideOthers = false; ///< in the window's row of panes, where what all panes have in common is said once
};

/// A pure function from results to a scene. An optional function that a view does not override does nothing.
class View {
public:
    /// The card gets the options, and as its help the view's ID_view.md.
    explicit View(ViewCard card, ParameterTable options = {});
    virtual ~View() = default;

    const ViewCard& card() const { return m_card; }
    /// Why there is nothing to draw, in one sentence; empty: there is a picture.
    virtual std::string whyNoPicture(const ViewInput& input, const ParameterValues& options) const;
    /// The picture, or the sentence why there is none.
    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const;
    /// One computed sentence: "14 of 16 needle tokens evicted at 10 %". Never empty.
    std::string finding(const ViewInput& input, const ParameterValues& options) const;
    /// What is under a point of a scene that this view built, colour columns included.
    PointFacts factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const;
    virtual ViewTable table(const ViewInput& input, const ParameterValues& options) const = 0;
    /// The events among which the step player moves `ViewInput::cursor`.
    virtual StepSequence stepSequence(const ViewInput&, const ParameterValues&) const { return {}; }
    /// What happened at the last event at or before the cursor, in at most two lines with its numbers.
    virtual std::string caption(const ViewInput&, const ParameterValues&) const { return {}; }
    /// Whether the picture of one pane shows what the other panes keep.
    virtual bool showsOtherPanes(const ParameterValues&) const { return !m_card.perPane; }
    /// What would help where there is no picture. Nothing while the view has one, waits for one, or nothing helps.
    virtual std::optional<PaneOffer> offer(const ViewInput&, const ParameterValues&) const { return {}; }
    /// Tokens that the mark under a point stands for, which a click selects; ascending.
    virtual std::vector<TokenIndex> tokensAt(const ViewInput&, const ParameterValues&, const Scene&, Point) const {
        return {};
    }
    /// The setting change of dragging a mark of kind Handle to a point.
    virtual std::optional<SettingChange> draggedTo(const ViewInput&, const ParameterValues&, const Scene&, PickId,
                                                   Point) const {
        return {};
    }
    /// The `Viewport::top` that brings a token to the middle; nothing for a view that does not scroll.
    virtual std::optional<TokenIndex> scrollTo(const ViewInput&, const Viewport&, TokenIndex) const { return {}; }
    /// The `Viewport::top` so many logical pixels further down, in whole lines; nothing for a view that does not
    /// scroll.
    virtual std::optional<TokenIndex> scrollBy(const ViewInput&, const Viewport&, double) const { return {}; }
    /// The scale of the colour column whose ends can be chosen; null where nothing is shown that has one.
    virtual std::unique_ptr<const ColourScale> colourScale(const ViewInput&, const ParameterValues&) const;
    /// The lowest and the highest value of its colours or of its vertical axis, which pictures side by side share;
    /// nothing where the view has no such range, or no values yet.
    virtual std::optional<ValueRange> valueRange(const ViewInput&, const ParameterValues&) const;
    /// The locked cell moved by so many cells; nothing where none is locked or its place is not known yet.
    virtual std::optional<SettingChange> lockMoved(const ViewInput&, const ParameterValues&, int /*across*/,
                                                   int /*down*/) const {
        return {};
    }
    /// The key of the locked cell, which the text shows; nothing where none is locked or its place is not known yet.
    virtual std::optional<TokenIndex> lockedToken(const ViewInput&, const ParameterValues&) const { return {}; }
    /// What releases the cell that the options lock; nothing: none is locked.
    virtual std::optional<SettingChange> lockReleased(const ParameterValues&) const { return {}; }

protected:
    // Called only where there is a picture.
    virtual Scene draw(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const = 0;
    virtual std::string conclude(const ViewInput& input, const ParameterValues& options) const = 0;
    virtual PointFacts inspect(const ViewInput&, const ParameterValues&, const Scene&, Point) const { return {}; }

private:
    ViewCard m_card;
};

/// The one object of a view's class.
template <class OwnView> const View& onlyOne() {
    static const OwnView view;
    return view;
}

const std::vector<const View*>& allViews();
const View& viewById(std::string_view id); ///< throws Error with the nearest name
const View& viewAt(ViewPlace place);       ///< the one view of that place

} // namespace kvscope
