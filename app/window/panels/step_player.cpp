// Buttons of the step player; the view words the caption of a step.
#include "app/window/panels/step_player.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/segmented_switch.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/step_scrubber.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

#include <array>

namespace kvscope {

namespace {
constexpr std::array kSpeeds = {0.5, 1.0, 2.0};

/// A caption whose type becomes smaller if its place is too low for the text.
class Caption final : public QLabel {
public:
    using QLabel::QLabel;

protected:
    void paintEvent(QPaintEvent*) override {
        const QRect place = contentsRect();
        const int flags = Qt::TextWordWrap | Qt::AlignLeft | Qt::AlignTop;
        QFont fitting = font();
        const auto fits = [&] {
            return QFontMetrics(fitting).boundingRect(place, flags, text()).height() <= place.height();
        };
        while (fitting.pixelSize() > px(11) && !fits()) fitting.setPixelSize(fitting.pixelSize() - 1);
        QPainter painter(this);
        painter.setFont(fitting);
        painter.setPen(palette().color(foregroundRole()));
        painter.drawText(place, flags, text());
    }
};
} // namespace

StepPlayer::StepPlayer(StepDriver& driver, QWidget* parent) : QWidget(parent), m_driver(driver) {
    setObjectName("panelBody");
    setAttribute(Qt::WA_StyledBackground);
    auto* column = makeLayout<QVBoxLayout>(this, {16, 8, 16, 8}, 4);
    m_title = added(column, named("stepTitle", roleLabel({}, "section", this)));
    m_caption = added(column, named("stepCaption", new Caption(this)), 1);
    m_caption->setProperty("role", "caption");
    m_caption->setTextFormat(Qt::PlainText);
    m_caption->setWordWrap(true);
    m_caption->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Expanding);
    m_caption->setMinimumHeight(px(42)); // two lines, so that a short caption does not move the buttons
    column->addWidget(buildTransport());
    connect(&m_driver, &StepDriver::changed, this, &StepPlayer::refresh);
    refresh();
}

QToolButton* StepPlayer::button(const char* icon, const QString& tip, const char* name) {
    QToolButton* made = named(name, iconButton(icon, tip, this));
    made->setProperty("look", "transport");
    made->setFixedSize(px(30), px(28));
    return made;
}

QWidget* StepPlayer::buildTransport() {
    auto* bar = new QWidget(this);
    auto* row = makeLayout<QHBoxLayout>(bar, {0, 0, 0, 0}, 4);
    m_first = button("step_first", tr("To the start"), "stepFirst");
    m_back = button("step_back", tr("One step back (Left)"), "stepBack");
    m_play = button("play", tr("Play"), "stepPlay");
    m_play->setProperty("look", "play");
    m_play->setFixedWidth(px(44));
    m_forward = button("step_forward", tr("One step on (Right)"), "stepForward");
    m_last = button("step_last", tr("To the end"), "stepLast");
    for (QToolButton* one : {m_first, m_back, m_play, m_forward, m_last}) row->addWidget(one);
    row->addSpacing(px(8));
    m_scrubber = added(row, named("stepScrubber", new StepScrubber(bar)), 1);
    m_count = added(row, named("stepCount", numberLabel(13, QFont::Bold, bar)));
    row->addSpacing(px(8));
    m_speed = added(row, named("stepSpeed", new SegmentedSwitch({tr("½×"), tr("1×"), tr("2×")}, tr("Speed"), bar)));
    connect(m_first, &QToolButton::clicked, this, [this] { m_driver.goTo(0); });
    connect(m_back, &QToolButton::clicked, this, [this] { m_driver.stepBy(-1); });
    connect(m_play, &QToolButton::clicked, &m_driver, &StepDriver::toggle);
    connect(m_forward, &QToolButton::clicked, this, [this] { m_driver.stepBy(1); });
    connect(m_last, &QToolButton::clicked, this, [this] { m_driver.goTo(m_driver.steps()); });
    connect(m_scrubber, &ValueSlider::edited, this, [this](double step) { m_driver.goTo(static_cast<int>(step)); });
    connect(m_speed, &SegmentedSwitch::chosen, this, [this](int index) { m_driver.setSpeed(kSpeeds[index]); });
    return bar;
}

void StepPlayer::refresh() {
    const int steps = m_driver.steps(), step = m_driver.step();
    if (steps == 0) {
        showText(m_title, tr("STEPS"));
        showText(m_caption,
                 tr("No shown view has steps now. Views of steps are Self-balancing walk, Merge-and-reduce tree, "
                    "Clustering, and Block timeline for a pane with a prompt block."));
    } else {
        showText(m_title, (step == 0 ? tr("Start") : tr("Step %1").arg(step)).toUpper() + " · " +
                              fromUtf8(m_driver.stepSequence().title).toUpper());
        const QString caption = m_driver.caption();
        showText(m_caption, caption.isEmpty() ? tr("Nothing has happened yet.") : caption);
    }
    std::vector<bool> milestones;
    for (int event = 1; event <= steps; ++event) milestones.push_back(m_driver.isMilestone(event));
    m_scrubber->setEvents(std::move(milestones));
    if (!m_scrubber->isSliderDown()) m_scrubber->showValue(step);
    showText(m_count, steps == 0 ? QString() : tr("step %1 of %2").arg(step).arg(steps));
    m_scrubber->setAccessibleDescription(m_count->text());
    const bool playing = m_driver.isPlaying();
    for (QToolButton* button : {m_first, m_back}) button->setEnabled(step > 0);
    for (QToolButton* button : {m_forward, m_last}) button->setEnabled(step < steps);
    const QString does = playing ? tr("Pause (Space)") : tr("Play (Space)");
    const bool isOld = m_play->isEnabled() != (steps > 0) || m_play->toolTip() != does;
    m_play->setEnabled(steps > 0);
    m_scrubber->setEnabled(steps > 0);
    if (isOld) // only then, since the icon is drawn from an SVG
        m_play->setIcon(themedIcon(playing ? "pause" : "play", m_play->isEnabled() ? chrome().paper : chrome().off));
    m_play->setToolTip(does);
    m_play->setAccessibleName(m_play->toolTip());
    const double speed = m_driver.speed();
    for (std::size_t i = 0; i < kSpeeds.size(); ++i)
        if (kSpeeds[i] == speed) m_speed->setCurrent(static_cast<int>(i));
}

} // namespace kvscope
