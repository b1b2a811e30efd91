// Places panes side by side while each has a readable width, four of them only where that leaves their pictures more
// room, otherwise in two columns. The layout Explore head shows only the active pane.
#include "app/window/canvas_area.h"

#include "app/window/canvas/capture_caption.h"
#include "app/window/canvas/pane_header.h"
#include "app/window/canvas/policy_menu.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/small_widgets.h"
#include "app/workbench/second_workbench.h"

#include <QGridLayout>
#include <QMenu>
#include <QResizeEvent>
#include <QVBoxLayout>

#include <algorithm>
#include <string>

namespace kvscope {

constexpr int kReadablePane = 272; // design pixels: header, numbers and axes still fit
constexpr int kGutter = 6;
// What a pane has around its plot. Where both axes have one scale, the largest square in the plot is what counts.
constexpr QSize kAround{40, 110};

CanvasArea::CanvasArea(Workbench& workbench, const TextService& text, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_text(text), m_empty(buildEmpty()), m_grid(new QGridLayout(this)) {
    setObjectName("canvasArea");
    setAttribute(Qt::WA_StyledBackground);
    m_grid->setContentsMargins(0, px(kGutter), 0, 0); // on the other sides the dock separators serve as the gutter
    m_grid->setSpacing(px(kGutter));
    buildDocks();
    m_caption = new CaptureCaption(m_workbench, 1, this);
    m_secondCaption = new CaptureCaption(m_workbench.second(), 2, this);
    for (Workbench* workbench : {&m_workbench, static_cast<Workbench*>(&m_workbench.second())})
        workbench->tell(this, &CanvasArea::follow, &Workbench::sessionChanged, &Workbench::captureChanged);
    connect(&m_workbench, &Workbench::openingChanged, this, &CanvasArea::follow);
    follow();
}

QWidget* CanvasArea::buildEmpty() {
    auto* box = new QWidget(this);
    auto* column = new QVBoxLayout(box);
    column->addStretch();
    auto* sentence = added(column, named("emptySentence", roleLabel({}, "title", box)));
    sentence->setAlignment(Qt::AlignCenter);
    auto* button = named("emptyButton", wordButton({}, box));
    column->addSpacing(px(8));
    column->addWidget(button, 0, Qt::AlignHCenter);
    column->addStretch();
    auto* menu = new QMenu(button);
    fillPolicyMenu(menu, m_workbench);
    connect(button, &QPushButton::clicked, this, [this, button, menu] {
        if (!m_workbench.capture())
            emit openWanted();
        else
            menu->exec(button->mapToGlobal(QPoint(0, button->height())));
    });
    box->hide();
    return box;
}

void CanvasArea::buildDocks() {
    for (const View* view : allViews()) {
        if (view->card().perPane) continue;
        auto* dock = new ViewDock(m_workbench, *view, m_text, this);
        dock->setMinimumHeight(px(view->card().leastHeight));
        for (ViewCanvas* canvas : dock->canvases()) connectCanvas(canvas);
        connect(dock, &ViewDock::secondMade, this, &CanvasArea::connectCanvas);
        m_docks.push_back(dock);
    }
}

void CanvasArea::connectCanvas(ViewCanvas* canvas) {
    connect(canvas, &ViewCanvas::dataWanted, this, [this, canvas] { emit dataWanted(canvas); });
    connect(canvas, &ViewCanvas::exportWanted, this, [this, canvas] { emit exportWanted(canvas); });
    connect(canvas, &ViewCanvas::headsWanted, this, [this, canvas] { emit headsWanted(canvas); });
    connect(canvas, &ViewCanvas::parametersWanted, this, &CanvasArea::parametersWanted);
    connect(canvas->canvas(), &CanvasWidget::focused, this, [this, canvas] { emit turnedTo(canvas->view()); });
}

void CanvasArea::followPanes(Workbench& workbench, std::vector<PaneFrame*>& panes) {
    const std::size_t wanted = workbench.capture() ? workbench.session().panes.size() : 0;
    while (panes.size() > wanted) {
        const QWidget* focused = window()->focusWidget();
        if (focused && panes.back()->isAncestorOf(focused)) setFocus(); // goes to the active pane
        discard(panes.back());
        panes.pop_back();
    }
    while (panes.size() < wanted) {
        auto* frame = new PaneFrame(workbench, paneView(), static_cast<int>(panes.size()), m_text, this);
        frame->setMinimumSize(px(240), px(150));
        connectCanvas(frame->canvas());
        connect(frame->canvas()->canvas(), &CanvasWidget::focused, this,
                [this, isSecond = &panes == &m_secondPanes] { turnTo(isSecond); });
        connect(frame->header(), &PaneHeader::maximiseWanted, this, [this, frame] {
            m_workbench.change([frame](Session& s) { s.activePane = frame->pane(); }, tr("Active pane"));
            emit maximiseWanted();
        });
        panes.push_back(frame);
    }
}

void CanvasArea::turnTo(bool second) {
    m_isSecondInTurn = second;
    for (PaneFrame* pane : m_panes) pane->setInTurn(!second);
    for (PaneFrame* pane : m_secondPanes) pane->setInTurn(second);
}

void CanvasArea::follow() {
    followPanes(m_workbench, m_panes);
    followPanes(m_workbench.second(), m_secondPanes);
    turnTo(m_isSecondInTurn && !m_secondPanes.empty());
    arrange();
    hideOrShow();
    if (hasFocus()) passFocusOn(Qt::OtherFocusReason); // there may be a pane now
}

void CanvasArea::setRoom(bool alone, bool covered) {
    m_alone = alone;
    m_covered = covered;
    arrange();
    hideOrShow();
}

/// The layouts Teach and Whole model show no panes; an empty window always shows how to start.
void CanvasArea::hideOrShow() {
    const WindowLayout layout = m_workbench.session().layout;
    const bool isEmpty = !m_workbench.capture() && m_workbench.opening().name.empty();
    const bool hide = m_covered || (!isEmpty && (layout == WindowLayout::Teach || layout == WindowLayout::WholeModel));
    // Shows the area only if it was hidden here: Qt hides an area that another one replaced, and showing the replaced
    // area would corrupt the dock layout.
    if (hide == m_hidden) return;
    m_hidden = hide;
    const QWidget* focused = window()->focusWidget();
    if (hide && (focused == this || isAncestorOf(focused))) window()->setFocus(); // else Qt focuses the next tab stop
    setHidden(hide);
}

int CanvasArea::columnsFor(int shown) const {
    const int fitting = std::max(1, (width() - px(kGutter)) / px(kReadablePane + kGutter));
    const int below = m_secondPanes.empty() ? 1 : 2; // captures, one below the other
    const auto square = [&](int columns, int rows) {
        return std::min(width() / columns - px(kAround.width()), height() / (rows * below) - px(kAround.height()));
    };
    const bool fits = shown <= fitting && (shown <= 3 || square(shown, 1) > square(2, 2));
    return fits || shown <= 1 ? std::max(1, shown) : 2;
}

int CanvasArea::placeRow(const std::vector<PaneFrame*>& panes, int row, int columns) {
    const bool alone = isAlone();
    const int shown = alone ? 1 : static_cast<int>(panes.size());
    int place = 0;
    for (PaneFrame* pane : panes) {
        const bool visible = !alone || pane->pane() == m_workbench.session().activePane;
        pane->setVisible(visible);
        pane->canvas()->setBesideOthers(shown > 1);
        if (!visible) continue;
        // Three panes in two columns: two above, one below over the whole width.
        const int span = place == shown - 1 && shown % columns != 0 ? columns : 1;
        m_grid->addWidget(pane, row + place / columns, place % columns, 1, span);
        m_grid->setRowStretch(row + place / columns, 1);
        ++place;
    }
    return row + (place + columns - 1) / columns;
}

void CanvasArea::arrange() {
    const Session& session = m_workbench.session();
    const int count = static_cast<int>(m_panes.size());
    const bool alone = isAlone();
    const int shown = alone ? std::min(1, count) : count;
    const int columns = columnsFor(shown);
    const bool two = !m_secondPanes.empty();
    const std::string& opening = m_workbench.opening().name;
    const std::string arrangement = std::to_string(count) + (two ? "+2/" : "/") + std::to_string(columns) + "/" +
                                    (alone ? std::to_string(session.activePane) : "all") +
                                    (m_workbench.capture() ? "c" : opening);
    if (arrangement == m_arranged) return;
    m_arranged = arrangement;
    while (QLayoutItem* item = m_grid->takeAt(0)) delete item;
    for (int column = 0; column < std::max(columns, m_grid->columnCount()); ++column)
        m_grid->setColumnStretch(column, column < columns ? 1 : 0);
    for (int row = 0; row < m_grid->rowCount(); ++row) m_grid->setRowStretch(row, 0);
    int row = 0;
    for (CaptureCaption* caption : {m_caption, m_secondCaption}) {
        caption->setVisible(two);
        if (two) m_grid->addWidget(caption, row, 0, 1, columns);
        row = placeRow(caption == m_caption ? m_panes : m_secondPanes, row + (two ? 1 : 0), columns);
    }
    m_empty->setVisible(count == 0);
    if (count == 0) {
        const bool open = m_workbench.capture() != nullptr;
        m_empty->findChild<QLabel*>("emptySentence")
            ->setText(open              ? tr("No policy is shown.")
                      : opening.empty() ? tr("No capture is open.")
                                        : tr("Opening a capture…"));
        auto* button = m_empty->findChild<QPushButton*>("emptyButton");
        button->setText(open ? tr("Add a policy") : tr("Open a capture…"));
        button->setVisible(open || opening.empty());
        m_grid->addWidget(m_empty, 0, 0);
    }
}

void CanvasArea::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    arrange();
}

/// No focus proxy: with one, Tab would treat the whole area as one stop and skip the widgets inside.
void CanvasArea::focusInEvent(QFocusEvent* event) {
    QWidget::focusInEvent(event);
    passFocusOn(event->reason());
}

void CanvasArea::passFocusOn(Qt::FocusReason reason) {
    const auto active = static_cast<std::size_t>(m_workbench.session().activePane);
    if (active < m_panes.size())
        m_panes[active]->canvas()->setFocus(reason);
    else if (reason == Qt::TabFocusReason)
        focusNextChild(); // the button that an empty window shows
}

std::vector<ViewCanvas*> CanvasArea::canvases() const {
    std::vector<ViewCanvas*> all;
    for (PaneFrame* pane : m_panes) all.push_back(pane->canvas());
    for (PaneFrame* pane : m_secondPanes) all.push_back(pane->canvas());
    for (ViewDock* dock : m_docks)
        for (ViewCanvas* canvas : dock->canvases()) all.push_back(canvas);
    return all;
}

ViewCanvas* CanvasArea::currentCanvas() const {
    for (ViewCanvas* canvas : canvases())
        if (canvas->canvas()->hasFocus()) return canvas;
    const auto active = static_cast<std::size_t>(m_workbench.session().activePane);
    return active < m_panes.size() ? m_panes[active]->canvas() : nullptr;
}

} // namespace kvscope
