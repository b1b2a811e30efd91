// A dock for a view, with the view's finding in its header.
#include "app/window/canvas/view_dock.h"

#include "app/study/makers/view_data_maker.h"
#include "app/window/canvas/capture_caption.h"
#include "app/window/canvas/view_options.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "app/workbench/second_workbench.h"

#include <QHBoxLayout>
#include <QVBoxLayout>

namespace kvscope {

namespace {
constexpr int kLeastAlone = 200, kLeastOfTwo = 120; ///< widths of a canvas
} // namespace

ViewDock::ViewDock(Workbench& workbench, const View& view, const TextService& text, QWidget* parent)
    : QFrame(parent), m_workbench(workbench), m_text(text), m_canvas(new ViewCanvas(workbench, view, 0, text, this)),
      m_caption(new CaptureCaption(workbench, 1, this)), m_pictures(new QBoxLayout(QBoxLayout::TopToBottom)),
      m_finding(named("viewFinding", new ElidedLabel("quiet", Qt::ElideRight, this))) {
    setObjectName("viewDock");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 0, 1, 1);
    column->setSpacing(0);
    auto* header = m_header = new QWidget(this);
    header->setObjectName("dockHeader");
    header->setAttribute(Qt::WA_StyledBackground);
    header->setFixedHeight(px(28));
    auto* row = makeLayout<QHBoxLayout>(header, {10, 0, 4, 0}, 4);
    QLabel* title = added(row, named("viewTitle", roleLabel(fromUtf8(view.card().name), "dockTitle", header)));
    title->setToolTip(fromUtf8(view.card().summary));
    addOptionChips(workbench, view, row, header);
    row->addWidget(m_finding, 1);
    auto* exportButton = added(row, named("exportView", iconButton("export", tr("Export this view"), header)));
    auto* more = added(row, named("viewMenu", iconButton("more", tr("Settings, data and help of this view"), header)));
    m_pictures->setSpacing(0);
    column->addLayout(m_pictures, 1);
    addPicture(m_canvas, m_caption);
    connect(more, &QToolButton::clicked, m_canvas,
            [this, more] { m_canvas->showMenu(more->mapToGlobal(QPoint(0, more->height()))); });
    connect(exportButton, &QToolButton::clicked, m_canvas, &ViewCanvas::exportWanted);
    connect(m_canvas, &ViewCanvas::drawnChanged, this, &ViewDock::refresh);
    connect(&m_workbench.second(), &Workbench::captureChanged, this, &ViewDock::followCaptures);
    followCaptures();
}

bool ViewDock::hasSecond() const {
    const ViewDataMaker* maker = makerFor(m_canvas->view());
    return m_workbench.second().isOpen() && !(maker && maker->dependsOn(DataScope::Compared));
}

void ViewDock::addPicture(ViewCanvas* canvas, CaptureCaption* caption) {
    auto* part = innerLayout<QVBoxLayout>(m_pictures, {}, 0, 1);
    part->addWidget(caption);
    part->addWidget(canvas, 1);
}

void ViewDock::followCaptures() {
    const bool two = hasSecond();
    if (two && !m_second) {
        m_second = new ViewCanvas(m_workbench.second(), m_canvas->view(), 0, m_text, this);
        m_secondCaption = new CaptureCaption(m_workbench.second(), 2, this);
        addPicture(m_second, m_secondCaption);
        connect(m_second, &ViewCanvas::drawnChanged, this, &ViewDock::refresh);
        emit secondMade(m_second);
    }
    for (ViewCanvas* canvas : canvases()) canvas->setMinimumWidth(px(two ? kLeastOfTwo : kLeastAlone));
    m_caption->setVisible(two);
    m_pictures->setStretch(1, two ? 1 : 0); // the layout of a hidden canvas would still take its stretch
    if (m_second)
        for (QWidget* widget : {static_cast<QWidget*>(m_second), static_cast<QWidget*>(m_secondCaption)})
            widget->setVisible(two);
    refresh();
}

std::vector<ViewCanvas*> ViewDock::canvases() const {
    return m_second ? std::vector{m_canvas, m_second} : std::vector{m_canvas};
}

void ViewDock::resizeEvent(QResizeEvent* event) {
    QFrame::resizeEvent(event);
    m_pictures->setDirection(width() > height() ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
}

void ViewDock::refresh() {
    const bool two = m_second && hasSecond();
    m_finding->setFullText(two ? QString() : m_canvas->headerFinding());
    if (!two) return;
    m_caption->setFinding(m_canvas->headerFinding());
    m_secondCaption->setFinding(m_second->headerFinding());
}

} // namespace kvscope
