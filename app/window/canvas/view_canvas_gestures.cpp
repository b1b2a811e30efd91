// Effects of gestures on the session, which are the same in every view.
#include "app/report/html.h"
#include "app/window/canvas/range_dialog.h"
#include "app/window/canvas/range_math.h"
#include "app/window/canvas/view_canvas.h"
#include "app/window/canvas/view_options.h"
#include "app/window/canvas/view_table_model.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/style/trap_links.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QMenu>
#include <QMetaMethod>
#include <QMimeData>
#include <QTextBrowser>
#include <QVBoxLayout>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvscope {

namespace {

void addRun(std::vector<TokenIndex>& tokens, TokenIndex from, TokenIndex to) {
    for (TokenIndex token = std::min(from, to); token <= std::max(from, to); ++token) tokens.push_back(token);
}

void makeSet(std::vector<TokenIndex>& tokens) {
    std::ranges::sort(tokens);
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
}

void select(Workbench& workbench, std::vector<TokenIndex> tokens, const QString& mergeKey = {}) {
    makeSet(tokens);
    workbench.change(
        [&](Session& s) {
            if (s.selected != tokens) kvscope::select(s, tokens);
        },
        QObject::tr("Selection"), mergeKey);
}

/// What the view shows and how to read it. Not modal, so that the page can be read beside the view.
void showHelp(const View& view, QWidget* window) {
    auto* dialog = new QDialog(window);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(fromUtf8(view.card().name));
    dialog->resize(px(520), px(420));
    auto* page = new QTextBrowser(dialog);
    page->setOpenExternalLinks(true);
    page->setMarkdown(withTrapLinks(fromUtf8(view.card().help)));
    page->setHtml(fromUtf8(withScripts(page->toHtml().toStdString())));
    (new QVBoxLayout(dialog))->addWidget(page);
    dialog->show();
}

} // namespace

void ViewCanvas::connectGestures() {
    connect(m_canvas, &CanvasWidget::hovered, this, &ViewCanvas::hover);
    connect(m_canvas, &CanvasWidget::clicked, this, &ViewCanvas::click);
    connect(m_canvas, &CanvasWidget::brushed, this, &ViewCanvas::brush);
    connect(m_canvas, &CanvasWidget::lassoed, this, &ViewCanvas::lasso);
    connect(m_canvas, &CanvasWidget::lassoAbandoned, this, &ViewCanvas::takeLassoBack);
    connect(m_canvas, &CanvasWidget::scrollWanted, this, &ViewCanvas::scrollBy);
    connect(m_canvas, &CanvasWidget::readingBegun, this, &ViewCanvas::beginReading);
    connect(m_canvas, &CanvasWidget::readTo, this, &ViewCanvas::readTo);
    connect(m_canvas, &CanvasWidget::wordWanted, this, [this](const QPointF& at) {
        m_workbench.endMerge(); // a third click selects the sentence in the same step of undo
        selectRun(at, wordAround);
    });
    connect(m_canvas, &CanvasWidget::sentenceWanted, this,
            [this](const QPointF& at) { selectRun(at, sentenceAround); });
    connect(m_canvas, &CanvasWidget::handleDragged, this, &ViewCanvas::dragHandle);
    connect(m_canvas, &CanvasWidget::menuWanted, this, &ViewCanvas::showMenu);
    connect(m_canvas, &CanvasWidget::fitWanted, this, &ViewCanvas::fit);
    connect(m_canvas, &CanvasWidget::pointerLeft, this, [this] {
        if (m_readOut->isPinned()) return;
        m_readOut->dismiss();
        m_workbench.setHovered(-1);
    });
    connect(m_canvas, &CanvasWidget::rangeWanted, this, [this](const Viewport::Range& range) {
        m_workbench.setRange(m_view, range);
        movePinned();
    });
}

/// A read-out describes the picture that is drawn: after a new picture its facts are asked for again.
void ViewCanvas::refreshReadOut() {
    if (!m_readOut->isVisible()) return;
    if (!m_workbench.capture()) return m_readOut->dismiss();
    if (!m_readOut->isPinned()) return hover(m_canvas->pickUnder(m_readAt), m_readAt);
    if (m_readOut->token() < 0) return m_readOut->showFacts(factsAt(m_readAt), *m_canvas, m_readAt, true);
    const auto place = placeOf(m_readOut->token());
    m_readAt = place.value_or(m_readAt);
    m_readOut->showToken(m_readOut->token(), *m_canvas, m_readAt, true, place ? factsAt(*place) : PointFacts{});
}

std::optional<QPointF> ViewCanvas::placeOf(TokenIndex token) const {
    const auto at = positionOfToken(m_canvas->scene(), token);
    return at ? std::optional(QPointF(at->x, at->y) * appearance().scale) : std::nullopt;
}

void ViewCanvas::hover(const PickId& pick, const QPointF& at) {
    if (m_readOut->isPinned()) return;
    m_readAt = at;
    using enum PickId::Kind;
    const bool hasFacts = pick.kind == Cell || pick.kind == Node || pick.kind == Handle || pick.kind == Legend;
    if (hasFacts && m_workbench.capture()) {
        const PointFacts facts = factsAt(at);
        m_workbench.setHovered(facts.token);
        m_readOut->showFacts(facts, *m_canvas, at);
        return;
    }
    const auto token = pick.kind == PickId::Kind::Token ? static_cast<TokenIndex>(pick.index) : TokenIndex{-1};
    m_workbench.setHovered(token);
    m_readOut->showToken(token, *m_canvas, at, false, token >= 0 ? factsAt(at) : PointFacts{});
}

void ViewCanvas::fit() {
    if (std::exchange(m_lockedByClick, false)) m_workbench.undo();
    resetView();
}

void ViewCanvas::click(const PickId& pick, Qt::KeyboardModifiers modifiers, const QPointF& at) {
    m_lockedByClick = false;
    m_readAt = at;
    if (m_view.card().perPane && m_workbench.session().activePane != m_pane)
        m_workbench.change([this](Session& s) { s.activePane = m_pane; }, tr("Active pane"));
    if (pick.kind == PickId::Kind::Cell || pick.kind == PickId::Kind::Node) {
        const PointFacts facts = factsAt(at);
        if (follow(facts) || selectGroup(at)) return;
        if (!facts.rows.empty()) { // facts of other marks are pinned until Esc or another click
            m_workbench.setHovered(facts.token);
            m_readOut->showFacts(facts, *m_canvas, at, true);
            return;
        }
    }
    if (pick.kind == PickId::Kind::Handle) { // a scroll bar or a small map goes where it is clicked
        const auto change = m_view.draggedTo(input(), options(), m_canvas->scene(), pick, m_canvas->toScene(at));
        if (change && (change->top || change->range)) return applyChange(*change);
    }
    if (pick.kind != PickId::Kind::Token) {
        m_readOut->dismiss();
        m_workbench.setHovered(-1);
        if (pick.kind == PickId::Kind::None && modifiers == Qt::NoModifier) select(m_workbench, {});
        return;
    }
    const auto token = static_cast<TokenIndex>(pick.index);
    std::vector<TokenIndex> selected = m_workbench.session().selected;
    if (modifiers & Qt::ShiftModifier) {
        if (isText() && m_lastClicked >= 0) { // the anchor stays
            selected.clear();
            addRun(selected, m_lastClicked, token);
            return select(m_workbench, selected);
        }
        addRun(selected, m_lastClicked >= 0 ? m_lastClicked : selected.empty() ? token : selected.front(), token);
        select(m_workbench, selected);
    } else if (modifiers & Qt::ControlModifier) {
        const auto found = std::ranges::find(selected, token);
        if (found == selected.end())
            selected.push_back(token);
        else
            selected.erase(found);
        select(m_workbench, selected);
    } else {
        m_workbench.setHovered(token);
        m_readOut->showToken(token, *m_canvas, at, true, factsAt(at));
    }
    m_lastClicked = token;
}

bool ViewCanvas::selectGroup(const QPointF& at) {
    const auto tokens = m_view.tokensAt(input(), options(), m_canvas->scene(), m_canvas->toScene(at));
    if (!tokens.empty()) select(m_workbench, tokens);
    return !tokens.empty();
}

PointFacts ViewCanvas::factsAt(const QPointF& at) const {
    const DrawnView shown = drawn();
    return m_view.factsAt(shown.input, shown.options, m_canvas->scene(), m_canvas->toScene(at));
}

bool ViewCanvas::follow(const PointFacts& facts) {
    if (facts.settingChange) {
        const auto before = m_workbench.session().viewOptions;
        const bool locked = m_view.lockReleased(options()).has_value();
        applyChange(*facts.settingChange);
        m_lockedByClick = (locked || m_view.lockReleased(options())) && m_workbench.session().viewOptions != before;
        return true;
    }
    if (facts.layer < 0) return false;
    const auto capture = m_workbench.capture();
    m_workbench.change(
        [&](Session& s) {
            s.layer = LayerIndex(facts.layer);
            if (facts.queryHead >= 0)
                chooseQueryHead(s, QueryHeadIndex(facts.queryHead), *capture);
            else if (facts.kvHead >= 0)
                chooseKvHead(s, KvHeadIndex(facts.kvHead), *capture);
        },
        tr("Head"));
    return true;
}

void ViewCanvas::applyChange(const SettingChange& settingChange, const QString& mergeKey) {
    if (settingChange.range) m_workbench.setRange(m_view, settingChange.range);
    if (settingChange.top) scrollTo(*settingChange.top);
    m_workbench.change(
        [&](Session& s) {
            for (const auto& [id, text] : settingChange.options) setViewOption(s, m_view.card().id, id, text);
            if (settingChange.pane >= 0) s.activePane = settingChange.pane;
            if (settingChange.budget) {
                // A quality budget is for one policy: the other policies may lack the curve that it refers to.
                if (settingChange.budget->unit == Budget::Unit::Quality && s.panes.size() > 1) linkPanes(s, false);
                setBudget(s, *settingChange.budget);
            }
            if (!settingChange.cut.empty()) s.cut = settingChange.cut;
            if (settingChange.values.empty()) return;
            PolicySpec& policy = s.panes[s.activePane].policy;
            for (const auto& [id, text] : settingChange.values)
                if (policy.values.has(id)) policy.values.setText(id, text);
        },
        fromUtf8(settingChange.step), mergeKey);
}

void ViewCanvas::takeOffered() {
    const auto offer = m_offer->offer();
    if (!offer) return;
    if (offer->spec.empty())
        applyChange(offer->settingChange);
    else
        m_workbench.change([&](Session& s) { takeOffer(s, *offer); }, tr("Add pane"));
    if (m_offer->leadsToParameters()) emit parametersWanted();
}

void ViewCanvas::beginReading(const QPointF& at, Qt::KeyboardModifiers modifiers) {
    m_workbench.setHovered(-1);
    const auto token = readTokenAt(m_canvas->scene(), {at.x(), at.y()});
    if (token && !(modifiers & Qt::ShiftModifier && m_lastClicked >= 0)) m_lastClicked = *token;
}

void ViewCanvas::readTo(const QPointF& at, bool finished) {
    const Box text = m_canvas->scene().plot;
    if (!finished && at.y() >= text.bottom()) scrollBy(at.y() - text.bottom() + 1); // faster the farther outside
    if (!finished && at.y() < text.y) scrollBy(at.y() - text.y - 1);
    const auto token = readTokenAt(m_canvas->scene(), {at.x(), at.y()});
    if (!token || m_lastClicked < 0) return;
    std::vector<TokenIndex> run;
    addRun(run, m_lastClicked, *token);
    brush(run, finished);
}

void ViewCanvas::selectRun(const QPointF& at, TokenRun (*around)(const TokenTable&, TokenIndex)) {
    const auto token = readTokenAt(m_canvas->scene(), {at.x(), at.y()});
    if (!token) return;
    m_readOut->dismiss();
    m_workbench.setHovered(-1);
    m_lastClicked = *token;
    select(m_workbench, tokensOf({around(m_workbench.capture()->tokens(), *token)}), "clicks");
}

void ViewCanvas::brush(const std::vector<TokenIndex>& tokens, bool finished) {
    m_workbench.setBrushing(!finished);
    m_readOut->dismiss();
    select(m_workbench, tokens, "brush");
    if (finished) m_workbench.endMerge();
}

/// As with clicks, Shift adds to the selection and Ctrl removes from it. Both start from the selection before the
/// lasso, so tokens that leave the lasso while it is drawn get their old state back.
void ViewCanvas::lasso(const std::vector<TokenIndex>& tokens, Qt::KeyboardModifiers modifiers, bool finished) {
    if (!m_beforeLasso) m_beforeLasso = m_workbench.session().selected;
    const std::vector<TokenIndex>& before = *m_beforeLasso;
    std::vector<TokenIndex> chosen;
    if (modifiers & Qt::ShiftModifier)
        std::ranges::set_union(before, tokens, std::back_inserter(chosen));
    else if (modifiers & Qt::ControlModifier)
        std::ranges::set_difference(before, tokens, std::back_inserter(chosen));
    else
        chosen = tokens;
    brush(chosen, finished);
    if (finished) m_beforeLasso.reset();
}

void ViewCanvas::takeLassoBack() {
    if (m_beforeLasso) brush(*std::exchange(m_beforeLasso, std::nullopt), true);
}

void ViewCanvas::scrollBy(double delta) {
    if (!m_workbench.capture()) return;
    const auto seen = tokensInBoxes(m_canvas->scene());
    const std::int64_t last = m_workbench.capture()->info().numTokens - 1;
    if (!seen || (delta < 0 ? seen->first == 0 : seen->second == last)) return;
    // A touch pad sends parts of a line. They add up until something else moves the text, or the direction changes.
    if (seen->first != m_scrolledTo || m_scrolled * delta < 0)
        m_scrolledFrom = static_cast<TokenIndex>(seen->first), m_scrolled = 0;
    m_scrolled += delta;
    Viewport from = viewport();
    from.top = m_scrolledFrom;
    const auto top = m_view.scrollBy(input(), from, m_scrolled);
    if (!top) return;
    m_scrolledTo = *top;
    if (*top == seen->first) return;
    scrollTo(*top);
    movePinned();
}

void ViewCanvas::scrollTo(TokenIndex top) {
    const auto set = [this](TokenIndex to) {
        m_workbench.change([to](Session& s) { s.look.stripTop = to; }, tr("Scroll"));
    };
    m_peek.reset();
    set(top);
    if (const auto seen = tokensInBoxes(m_canvas->scene()); seen && seen->first < top) // the text's last line is seen
        set(static_cast<TokenIndex>(seen->first));
}

void ViewCanvas::movePinned() {
    const TokenIndex token = m_readOut->token();
    if (!m_readOut->isPinned() || token < 0) return;
    const auto mark = positionOfToken(m_canvas->scene(), token);
    const double scale = appearance().scale;
    if (!mark || !m_canvas->scene().plot.contains(*mark)) return m_readOut->dismiss();
    const QPointF at(mark->x * scale, mark->y * scale);
    m_readOut->showToken(token, *m_canvas, at, true, factsAt(at));
}

void ViewCanvas::dragHandle(const PickId& handle, const QPointF& at, bool finished) {
    if (!m_readOut->isPinned()) m_readOut->dismiss(); // the handle has a label of its own
    const auto settingChange = m_view.draggedTo(input(), options(), m_canvas->scene(), handle, {at.x(), at.y()});
    if (settingChange) applyChange(*settingChange, "drag " + QString::fromStdString(m_view.card().id));
    if (finished) m_workbench.endMerge();
    if (settingChange) movePinned();
}

void ViewCanvas::frameSelection() {
    const auto& selected = m_workbench.session().selected;
    if (selected.empty()) return;
    Viewport viewport = this->viewport();
    if (const auto top = m_view.scrollTo(input(), viewport, selected[selected.size() / 2]))
        return m_workbench.change([&](Session& s) { s.look.stripTop = *top; }, tr("Frame"));
    Scene scene = m_canvas->scene();
    if (!scene.yDown) { // tokens outside the present range have marks in the full range only
        viewport.range.reset();
        scene = m_view.buildScene(input(), options(), viewport);
    }
    if (const auto range = rangeAround(scene, selected)) m_workbench.setRange(m_view, range);
}

void ViewCanvas::copy() {
    const bool text = isText() && !m_workbench.session().selected.empty();
    text ? copySelectedText() : copyImage();
}

void ViewCanvas::copyMore() {
    const bool text = isText() && !m_workbench.session().selected.empty();
    text ? copySelectedPositions() : copyData();
}

void ViewCanvas::copySelectedText() {
    const std::string text = textOf(m_workbench.capture()->tokens(), m_workbench.session().selected);
    QGuiApplication::clipboard()->setText(fromUtf8(text));
}

void ViewCanvas::copySelectedPositions() {
    QStringList positions;
    for (const TokenIndex token : m_workbench.session().selected) positions += QString::number(token);
    QGuiApplication::clipboard()->setText(positions.join(", "));
}

void ViewCanvas::copyImage() {
    auto* content = new QMimeData;
    content->setText(finding());
    content->setImageData(m_canvas->picture());
    QGuiApplication::clipboard()->setMimeData(content);
}

void ViewCanvas::copyData() { QGuiApplication::clipboard()->setText(tableAsTsv(table())); }

void ViewCanvas::explain() { showHelp(m_view, window()); }

void ViewCanvas::showRange() {
    if (ShownPlot::of(m_canvas->scene()).valid) (new RangeDialog(m_workbench, *this, window()))->show();
}

void ViewCanvas::showMenu(const QPoint& at) {
    auto* menu = new QMenu(window()); // a source that opens meanwhile may remove this canvas
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addAction(tr("Copy image"), this, &ViewCanvas::copyImage);
    menu->addAction(tr("Copy data"), this, &ViewCanvas::copyData);
    const bool chosen = !m_workbench.session().selected.empty();
    menu->addAction(tr("Copy the selected text"), this, &ViewCanvas::copySelectedText)->setEnabled(chosen);
    menu->addAction(tr("Copy the selected positions"), this, &ViewCanvas::copySelectedPositions)->setEnabled(chosen);
    const bool isAnswered = isSignalConnected(QMetaMethod::fromSignal(&ViewCanvas::dataWanted)); // not in a Presenter
    if (isAnswered) {
        menu->addAction(tr("Show data…"), this, &ViewCanvas::dataWanted);
        menu->addAction(tr("Save as…"), this, &ViewCanvas::exportWanted);
    }
    menu->addSeparator();
    menu->addAction(tr("Reset view"), this, &ViewCanvas::resetView);
    menu->addAction(tr("Range…"), this, &ViewCanvas::showRange)->setEnabled(ShownPlot::of(m_canvas->scene()).valid);
    menu->addAction(tr("Select with a lasso"), m_canvas, &CanvasWidget::armLasso);
    if (isAnswered) menu->addAction(tr("All heads of this layer…"), this, &ViewCanvas::headsWanted);
    if (!m_view.card().options->empty()) {
        menu->addSeparator();
        addOptionEntries(menu, m_workbench, m_view);
    }
    menu->addSeparator();
    menu->addAction(tr("How to read this view…"), this, &ViewCanvas::explain);
    menu->popup(at);
}

} // namespace kvscope
