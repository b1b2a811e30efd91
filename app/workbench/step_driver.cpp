// The step player without its buttons. Stepping computes nothing: the views draw another point of a story that is
// already there, so the cursor may move as fast as they can draw.
#include "app/workbench/step_driver.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kLongestStep = 1600, kShortestStep = 80, kLongestSequence = 40'000; // milliseconds
constexpr int kFrames = 12, kFrameMilliseconds = 20;                              // 240 ms

} // namespace

StepDriver::StepDriver(Workbench& workbench) : m_workbench(workbench) {
    m_later.setSingleShot(true);
    m_glide.setInterval(kFrameMilliseconds);
    m_glide.setTimerType(Qt::PreciseTimer);
    connect(&m_clock, &QTimer::timeout, this, [this] { moveTo(step() + 1, true); });
    connect(&m_glide, &QTimer::timeout, this, &StepDriver::glideOn);
    connect(&m_later, &QTimer::timeout, this, &StepDriver::refresh);
    // Many signals for one change: the story is read once, when they have all been sent.
    const auto soon = [this] { m_later.start(0); };
    connect(&workbench, &Workbench::sessionChanged, this, soon);
    connect(&workbench, &Workbench::paneChanged, this, soon);
    connect(&workbench, &Workbench::dataChanged, this, soon);
    connect(&workbench, &Workbench::captureChanged, this, soon);
    connect(&workbench, &Workbench::shownViewsChanged, this, soon);
    connect(&workbench, &Workbench::cursorChanged, this, &StepDriver::changed);
}

void StepDriver::prefer(const View& view) {
    if (m_preferred == &view)
        return;
    m_preferred = &view;
    m_later.start(0);
}

void StepDriver::refresh() {
    std::vector<const View*> candidates = m_workbench.shownViews();
    const auto first = [&](const View* view) {
        return std::stable_partition(candidates.begin(), candidates.end(), [view](const View* v) { return v == view; });
    };
    first(m_view);
    first(m_preferred);
    const View* found = nullptr;
    StepSequence sequence;
    for (const View* view : candidates) {
        sequence = view->stepSequence(m_workbench.viewInput(*view), viewOptions(m_workbench.session(), *view));
        if (!sequence.events.empty()) {
            found = view;
            break;
        }
    }
    const bool same = found == m_view && sequence.events == m_sequence.events;
    m_view = found;
    m_sequence = found ? std::move(sequence) : StepSequence{};
    if (!same) {
        m_glide.stop();
        pause();
    }
    emit changed();
}

int StepDriver::step() const {
    if (m_glide.isActive())
        return m_target;
    const auto& cursor = m_workbench.session().look.cursor;
    if (!cursor)
        return steps();
    return static_cast<int>(std::upper_bound(m_sequence.events.begin(), m_sequence.events.end(), *cursor) -
                            m_sequence.events.begin());
}

QString StepDriver::caption() const {
    if (!m_view)
        return {};
    ViewInput input = m_workbench.viewInput(*m_view);
    if (m_glide.isActive())
        input.cursor = cursorOf(m_target);
    return QString::fromStdString(m_view->caption(input, viewOptions(m_workbench.session(), *m_view)));
}

bool StepDriver::isMilestone(int step) const {
    return std::binary_search(m_sequence.milestones.begin(), m_sequence.milestones.end(),
                              m_sequence.events[static_cast<std::size_t>(step - 1)]);
}

int StepDriver::stepMilliseconds(int steps) {
    return std::clamp(kLongestSequence / std::max(1, steps), kShortestStep, kLongestStep);
}

void StepDriver::play() {
    if (m_sequence.events.empty())
        return;
    m_clock.start(static_cast<int>(std::lround(stepMilliseconds(steps()) / m_speed)));
    moveTo(step() == steps() ? 1 : step() + 1, step() != steps());
    emit changed();
}

void StepDriver::pause() {
    if (!m_clock.isActive())
        return;
    m_clock.stop();
    emit changed();
}

void StepDriver::stepBy(int by) {
    pause();
    moveTo(step() + by, by == 1);
}

void StepDriver::goTo(int step) {
    pause();
    moveTo(step, false);
}

void StepDriver::setSpeed(double speed) {
    m_speed = speed;
    if (m_clock.isActive())
        m_clock.setInterval(static_cast<int>(std::lround(stepMilliseconds(steps()) / m_speed)));
    emit changed();
}

std::optional<TokenIndex> StepDriver::cursorOf(int step) const {
    // The last event has told all, and "all" is what a session without a cursor says.
    return step >= steps() ? std::nullopt
                           : std::optional(step <= 0 ? 0 : m_sequence.events[static_cast<std::size_t>(step - 1)]);
}

void StepDriver::moveTo(int step, bool glide) {
    m_glide.stop();
    if (m_sequence.events.empty())
        return;
    m_target = std::clamp(step, 0, steps());
    if (m_target == steps())
        m_clock.stop();
    const auto& now = m_workbench.session().look.cursor;
    const bool still = m_motionReduced || m_workbench.session().look.reducedMotion;
    // Faster than the glide itself, steps are cuts.
    const bool hurried = m_clock.isActive() && m_clock.interval() < kFrames * kFrameMilliseconds;
    if (!glide || still || hurried || !now) {
        m_workbench.setCursor(cursorOf(m_target));
        emit changed();
        return;
    }
    m_from = *now;
    m_frame = 0;
    m_glide.start();
    glideOn();
}

void StepDriver::glideOn() {
    if (++m_frame >= kFrames) {
        m_glide.stop();
        m_workbench.setCursor(cursorOf(m_target));
        emit changed();
        return;
    }
    const double left = 1 - static_cast<double>(m_frame) / kFrames;
    const double done = 1 - left * left * left; // ease out
    const double to = m_sequence.events[static_cast<std::size_t>(m_target - 1)];
    m_workbench.setCursor(static_cast<TokenIndex>(std::lround(m_from + (to - m_from) * done)));
    emit changed();
}

} // namespace kvscope
