// A note is a child widget, so that it moves with the window and the window stays active.
#include "app/window/actions/tour.h"

#include "app/window/style/appearance.h"
#include "app/window/widgets/small_widgets.h"
#include "views/view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPainter>
#include <QSettings>
#include <QVBoxLayout>

#include <algorithm>
#include <array>

namespace kvscope {

namespace {

constexpr const char* kTakenKey = "tour/taken";
constexpr int kWidth = 296, kNoteGap = 10, kMargin = 8; // design pixels

/// The ring around the described widget; transparent to clicks.
class Ring : public QWidget {
public:
    explicit Ring(QWidget* window) : QWidget(window) {
        setObjectName("tourRing");
        setAttribute(Qt::WA_TransparentForMouseEvents);
    }

protected:
    void paintEvent(QPaintEvent*) override {
        QPainter painter(this);
        painter.setRenderHint(QPainter::Antialiasing);
        for (const auto& [colour, width] : {std::pair(chrome().casing, px(4)), {chrome().ink, px(2)}}) {
            painter.setPen(QPen(qColor(colour), width));
            painter.drawRoundedRect(QRectF(rect()).adjusted(2, 2, -2, -2), px(5), px(5));
        }
    }
};

} // namespace

std::vector<Tour::Step> Tour::firstRun() {
    return {{"budgetBar", tr("One budget for all"),
             tr("Drag the slider: every policy keeps that share of the tokens before the cut, and all pictures follow "
                "while you drag."),
             "canvasArea", "activePolicy"},
            {"canvasArea", tr("One policy per pane"),
             tr("Filled blue tokens stay in the cache, hollow orange ones are evicted. The bold number is what that "
                "costs: the relative error of the attention output.")},
            {QString::fromStdString(viewAt(ViewPlace::Text).card().id), tr("One selection everywhere"),
             tr("The text below and the pictures above show the same tokens. Point at one to see it in all views, "
                "click to pin its facts, Shift+drag or Alt+drag to select.")},
            {"layoutSwitch", tr("Four layouts"),
             tr("Explore one head, compare policies, teach step by step, or look at the whole model. Panels can be "
                "moved; each layout remembers.")},
            {"topBar", tr("Lessons and keys"),
             tr("Help > Lessons has short lessons that can be played, each with a question. F1 shows all keys; "
                "Help > Tour again brings this back.")}};
}

bool Tour::takeFirstRun() {
    QSettings settings;
    const bool first = !settings.value(kTakenKey, false).toBool();
    settings.setValue(kTakenKey, true);
    return first;
}

Tour::Tour(QWidget& window, std::vector<Step> steps)
    : QFrame(&window), m_window(window), m_steps(std::move(steps)), m_ring(new Ring(&window)) {
    setObjectName("tour");
    setAttribute(Qt::WA_StyledBackground);
    setFixedWidth(px(kWidth));
    auto* column = makeLayout<QVBoxLayout>(this, {16, 12, 16, 12}, 6);
    m_title = added(column, roleLabel({}, "policyTitle", this));
    m_text = added(column, wrappedLabel({}, "fact", this));
    auto* row = innerLayout<QHBoxLayout>(column);
    m_count = added(row, roleLabel({}, "quiet", this));
    auto* skip = named("tourSkip", new QPushButton(tr("Skip"), this));
    skip->setProperty("look", "link");
    m_back = named("tourBack", new QPushButton(tr("Back"), this));
    m_next = named("tourNext", new QPushButton(this));
    m_next->setProperty("primary", true);
    row->addStretch();
    for (QPushButton* button : {skip, m_back, m_next}) row->addWidget(button);
    connect(skip, &QPushButton::clicked, this, &QObject::deleteLater);
    connect(m_back, &QPushButton::clicked, this, [this] { goTo(m_step - 1); });
    connect(m_next, &QPushButton::clicked, this, [this] { goTo(m_step + 1); });
    connect(this, &QObject::destroyed, m_ring, &QObject::deleteLater);
    m_window.installEventFilter(this);
    goTo(0);
    show();
}

void Tour::goTo(int step) {
    if (step >= static_cast<int>(m_steps.size())) return deleteLater();
    if (QWidget* before = target()) before->removeEventFilter(this);
    m_step = std::max(0, step);
    const Step& now = m_steps[m_step];
    m_title->setText(now.title);
    m_text->setText(now.text);
    m_count->setText(tr("%1 of %2").arg(m_step + 1).arg(m_steps.size()));
    m_back->setVisible(m_step > 0);
    m_next->setText(m_step + 1 == static_cast<int>(m_steps.size()) ? tr("Done") : tr("Next"));
    setAccessibleName(now.title);
    setAccessibleDescription(now.text);
    if (QWidget* about = target()) about->installEventFilter(this);
    place();
    m_next->setFocus();
}

void Tour::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)
        m_next->click();
    else
        QFrame::keyPressEvent(event);
}

QWidget* Tour::target() const { return m_window.findChild<QWidget*>(m_steps[m_step].target); }

QRect Tour::placeOf(const QString& name) const {
    const QWidget* part = m_window.findChild<QWidget*>(name);
    const bool isSeen = part && part->isVisible() && part->window() == &m_window;
    return isSeen ? QRect(part->mapTo(&m_window, QPoint()), part->size()) : QRect();
}

/// Left edge of the note: centred, or at the side where it covers less of the `watched` part.
int Tour::leftOf(const QRect& box, const QRect& room) const {
    const int least = room.left(), most = std::max(room.left(), room.right() - width());
    const QRect watched = placeOf(m_steps[m_step].watched);
    const auto covered = [&](int left) {
        const QRect shared = box.translated(left - box.left(), 0) & watched;
        return shared.width() * shared.height();
    };
    const std::array places = {std::clamp(box.left(), least, most), most, least};
    return *std::ranges::min_element(places, [&](int a, int b) { return covered(a) < covered(b); });
}

void Tour::place() {
    QWidget* about = target();
    const bool seen = about && about->isVisible() && about->window() == &m_window;
    m_ring->setVisible(seen);
    setFixedHeight(layout()->totalHeightForWidth(width()));
    const QRect room = m_window.rect().adjusted(px(kMargin), px(kMargin), -px(kMargin), -px(kMargin));
    QRect box(QPoint(), size());
    box.moveCenter(room.center());
    if (seen) {
        const QRect around(about->mapTo(&m_window, QPoint()), about->size());
        m_ring->setGeometry(around.adjusted(-px(3), -px(3), px(3), px(3)));
        m_ring->raise();
        // Below or above the part, or inside it where neither fits.
        box.moveTopLeft(QPoint(around.center().x() - width() / 2, around.bottom() + px(kNoteGap)));
        if (box.bottom() > room.bottom()) box.moveBottom(around.top() - px(kNoteGap));
        if (box.top() < room.top()) box.moveCenter(around.center());
        box.moveLeft(leftOf(box, room));
        const QRect spared = placeOf(m_steps[m_step].spared);
        if (box.intersects(spared)) box.moveTop(spared.bottom() + px(kNoteGap));
    }
    setGeometry(box);
    raise();
}

bool Tour::eventFilter(QObject* watched, QEvent* event) {
    const auto type = event->type();
    if (type == QEvent::Resize || type == QEvent::Move || type == QEvent::Show || type == QEvent::Hide ||
        type == QEvent::LayoutRequest)
        QMetaObject::invokeMethod(this, &Tour::place, Qt::QueuedConnection);
    return QFrame::eventFilter(watched, event);
}

void Tour::changeEvent(QEvent* event) {
    QFrame::changeEvent(event);
    if (event->type() == QEvent::StyleChange && !m_steps.empty() && m_ring)
        QMetaObject::invokeMethod(this, &Tour::place, Qt::QueuedConnection);
}

} // namespace kvscope
