// The window arranges; what its parts show they read from the workbench themselves.
#include "app/window/main_window.h"

#include "app/window/appearance.h"
#include "app/window/canvas_area.h"
#include "app/window/file_desk.h"
#include "app/window/number_text.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/panels/capture_panel.h"
#include "app/window/panels/policy_panel.h"
#include "app/window/panels/status_line.h"
#include "app/window/panels/top_bar.h"
#include "app/window/system_theme.h"
#include "app/window/widgets/notice_strip.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/window_actions.h"

#include <QScreen>
#include <QCloseEvent>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QMenuBar>
#include <QMimeData>
#include <QResizeEvent>
#include <QScrollArea>
#include <QVBoxLayout>

namespace kvscope {

namespace {

constexpr int kFoldBelow = 1360, kWideFrom = 1920; // widths of design.md 2
constexpr int kCompactBelowHeight = 820;

bool compactAt(const Session& session, int windowHeight) {
    return session.look.compact || windowHeight < kCompactBelowHeight * session.look.scale;
}

} // namespace

MainWindow::MainWindow(Workbench& workbench, const TextService& text) : m_workbench(workbench), m_text(text) {
    setWindowIcon(QIcon(":/icons/kvscope.svg"));
    setAcceptDrops(true);
    setContextMenuPolicy(Qt::NoContextMenu);
    m_notices = new NoticeStrip;
    m_files = new FileDesk(m_workbench, *m_notices, this);
    m_actions = new WindowActions(*this, m_workbench, *m_files);
    resize(QSize(1440, 900).boundedTo(screen()->availableSize())); // as drawn, or what the screen has
    followLook();
    connect(&m_workbench, &Workbench::sessionChanged, this, &MainWindow::followLook);
    connect(&m_workbench, &Workbench::sessionChanged, this, &MainWindow::followTitle);
    connect(&m_workbench, &Workbench::captureChanged, this, &MainWindow::followTitle);
    connect(m_files, &FileDesk::sessionFileChanged, this, &MainWindow::followTitle);
    followTitle();
}

MainWindow::~MainWindow() = default;

void MainWindow::openPath(const QString& path) {
    m_files->open(path);
}

void MainWindow::followLook() {
    const Session& session = m_workbench.session();
    const Appearance wanted{themeFor(session.look.theme), session.look.scale, compactAt(session, height())};
    if (m_body && wanted == appearance())
        return;
    setAppearance(wanted);
    buildChrome();
}

void MainWindow::buildChrome() {
    const QString focused = focusWidget() ? focusWidget()->objectName() : QString();
    m_notices->setParent(nullptr);
    if (m_body)
        m_body->deleteLater();
    m_topBar = new TopBar(m_workbench, *m_actions, this);
    setMenuWidget(m_topBar);
    connect(m_topBar, &TopBar::notFound, this, [this](const QString& text) {
        m_notices->show("find", NoticeStrip::Tone::Notice, tr("“%1” is not in this capture's text.").arg(text));
    });
    m_body = new QWidget(this);
    auto* column = new QVBoxLayout(m_body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    m_budgetBar = new BudgetBar(m_workbench, m_body);
    connect(m_budgetBar, &BudgetBar::refused, this,
            [this](const QString& message) { m_notices->show("error", NoticeStrip::Tone::Error, message); });
    column->addWidget(m_budgetBar);
    column->addWidget(m_notices);
    m_middle = new QHBoxLayout;
    m_middle->setSpacing(0);
    m_left = buildLeft();
    m_canvases = new CanvasArea(m_workbench, m_text, m_body);
    m_policyPanel = new PolicyPanel(m_workbench);
    m_right = scrolled(m_policyPanel, "rightPanel");
    m_explanation = nullptr;
    m_middle->addWidget(m_rail);
    m_middle->addWidget(m_left);
    m_middle->addWidget(m_canvases, 1);
    m_middle->addWidget(m_right);
    column->addLayout(m_middle, 1);
    m_status = new StatusLine(m_workbench, m_body);
    column->addWidget(m_status);
    connect(m_canvases, &CanvasArea::dataWanted, this, &MainWindow::showData);
    connect(m_canvases, &CanvasArea::exportWanted, this, &MainWindow::exportCanvas);
    connect(m_canvases, &CanvasArea::openWanted, m_files, &FileDesk::openWithDialog);
    setCentralWidget(m_body);
    fitWidth();
    if (auto* again = focused.isEmpty() ? nullptr : m_body->findChild<QWidget*>(focused))
        again->setFocus();
}

QScrollArea* MainWindow::scrolled(QWidget* body, const char* name) {
    auto* area = new QScrollArea(m_body);
    area->setObjectName(name);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    area->setFocusPolicy(Qt::NoFocus);
    area->setWidget(body);
    return area;
}

QWidget* MainWindow::buildLeft() {
    m_rail = new QWidget(m_body);
    m_rail->setObjectName("leftRail");
    m_rail->setAttribute(Qt::WA_StyledBackground);
    m_rail->setFixedWidth(px(44));
    auto* column = new QVBoxLayout(m_rail);
    column->setContentsMargins(px(8), px(10), px(8), 0);
    auto* unfold = iconButton("panel", tr("Capture, heads and panes"), m_rail);
    unfold->setObjectName("unfold");
    connect(unfold, &QToolButton::clicked, this, &MainWindow::toggleOverlay);
    column->addWidget(unfold, 0, Qt::AlignTop);
    return scrolled(new CapturePanel(m_workbench), "leftPanel");
}

void MainWindow::fitWidth() {
    const int wide = width();
    m_topBar->fitWidth(wide);
    m_budgetBar->fitWidth(wide);
    const bool veryWide = wide >= px(kWideFrom);
    m_right->setFixedWidth(veryWide ? px(360) : wide < px(kFoldBelow) ? px(288) : px(312));
    const bool fold = wide < px(kFoldBelow);
    m_rail->setVisible(fold);
    if (fold != m_folded) {
        m_folded = fold;
        m_left->hide();
    }
    if (fold) {
        m_middle->removeWidget(m_left);
        m_left->setFixedSize(px(260), m_canvases->height());
        m_left->move(m_rail->geometry().topRight() + QPoint(1, 0));
        m_left->raise();
    } else {
        m_left->setMinimumHeight(0);
        m_left->setMaximumHeight(QWIDGETSIZE_MAX);
        m_left->setFixedWidth(veryWide ? px(288) : px(248));
        m_middle->insertWidget(1, m_left);
        m_left->show();
    }
    if (veryWide && !m_explanation) {
        m_explanation = scrolled(m_policyPanel->takeExplanation(), "explanationColumn");
        m_explanation->setFixedWidth(px(400));
        m_middle->addWidget(m_explanation);
    }
}

void MainWindow::toggleOverlay() {
    m_left->setVisible(!m_left->isVisible());
    fitWidth();
}

void MainWindow::followTitle() {
    const QString session = QFileInfo(m_files->sessionPath()).fileName();
    const QString capture = m_workbench.capture() ? fromUtf8(m_workbench.capture()->info().fileName) : QString();
    const QString name = session.isEmpty() ? capture : session;
    setWindowTitle(name.isEmpty() ? tr("KVScope") : tr("%1[*] – KVScope").arg(name));
    setWindowModified(!session.isEmpty() && !m_workbench.history().isSaved());
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    followLook();
    fitWidth();
}

void MainWindow::changeEvent(QEvent* event) {
    QMainWindow::changeEvent(event);
    if (event->type() == QEvent::ThemeChange)
        followLook();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    // A session that has a file is written when the window closes: nothing to ask, nothing lost.
    if (!m_files->sessionPath().isEmpty() && !m_workbench.history().isSaved() && !m_files->save()) {
        event->ignore();
        return;
    }
    event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
    const bool beside = event->modifiers() & Qt::ControlModifier;
    for (const QUrl& url : event->mimeData()->urls())
        if (url.isLocalFile())
            beside ? m_files->openBeside(url.toLocalFile()) : m_files->open(url.toLocalFile());
}

} // namespace kvscope
