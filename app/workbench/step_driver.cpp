// The step player without its buttons. Stepping computes nothing: the views draw another point of a step sequence that
// is already there, so the cursor may move as fast as they can draw.
#include "app/workbench/step_driver.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

constexpr int kLongestStep = 1600, kShortestStep = 80, kLongestSequence = 40'000; // milliseconds
constexpr int kFrames = 12;
constexpr std::chrono::milliseconds kFrame{20};

StepDriver::StepDriver(Workbench& workbench)
    : m_workbench(workbench), m_play(workbench.clock().makeTimer([this] {
          m_play->start(interval()); // `moveTo` stops it at the end
          moveTo(step() + 1, true);
      })),
      m_glide(workbench.clock().makeTimer([this] { glideOn(); })) {
    workbench.tell(this, &StepDriver::refreshSoon, &Workbench::sessionChanged, &Workbench::panesChanged,
                   &Workbench::dataChanged, &Workbench::captureChanged, &Workbench::shownViewsChanged);
    connect(&workbench, &Workbench::cursorChanged, this, &StepDriver::changed);
}

void StepDriver::prefer(const View& view) {
    if (m_preferred == &view) return;
    m_preferred = &view;
    refreshSoon();
}

void StepDriver::refreshSoon() {
    if (!std::exchange(m_isRefreshQueued, true))
        QMetaObject::invokeMethod(this, &StepDriver::refresh, Qt::QueuedConnection);
}

void StepDriver::refresh() {
    m_isRefreshQueued = false;
    std::vector<const View*> candidates = m_workbench.shownViews();
    std::stable_partition(candidates.begin(), candidates.end(), [this](const View* v) { return v == m_preferred; });
    const View* found = nullptr;
    StepSequence sequence;
    for (const View* view : candidates) {
        const DrawnView drawn = m_workbench.drawn(*view);
        sequence = view->stepSequence(drawn.input, drawn.options);
        if (!sequence.events.empty()) {
            found = view;
            break;
        }
    }
    const bool same = found == m_view && sequence.events == m_sequence.events;
    m_view = found;
    m_sequence = found ? std::move(sequence) : StepSequence{};
    if (!same) {
        m_glide->stop();
        pause();
    }
    emit changed();
}

int StepDriver::step() const {
    if (m_glide->isActive()) return m_target;
    const auto& cursor = m_workbench.session().look.cursor;
    if (!cursor) return steps();
    return static_cast<int>(std::ranges::upper_bound(m_sequence.events, *cursor) - m_sequence.events.begin());
}

QString StepDriver::caption() const {
    if (!m_view) return {};
    DrawnView drawn = m_workbench.drawn(*m_view);
    if (m_glide->isActive()) drawn.input.cursor = cursorOf(m_target);
    return QString::fromStdString(m_view->caption(drawn.input, drawn.options));
}

bool StepDriver::isMilestone(int step) const {
    return std::ranges::binary_search(m_sequence.milestones, m_sequence.events[step - 1]);
}

int StepDriver::stepMilliseconds(int steps) {
    return std::clamp(kLongestSequence / std::max(1, steps), kShortestStep, kLongestStep);
}

void StepDriver::play() {
    if (m_sequence.events.empty()) return;
    m_play->start(interval());
    moveTo(step() == steps() ? 1 : step() + 1, step() != steps());
    emit changed();
}

std::chrono::milliseconds StepDriver::interval() const {
    return std::chrono::milliseconds(std::lround(stepMilliseconds(steps()) / m_speed));
}

void StepDriver::pause() {
    if (!isPlaying()) return;
    m_play->stop();
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
    if (isPlaying()) m_play->start(interval());
    emit changed();
}

std::optional<TokenIndex> StepDriver::cursorOf(int step) const {
    // After the last event all tokens are read, as in a session without a cursor.
    return step >= steps() ? std::nullopt : std::optional(step <= 0 ? 0 : m_sequence.events[step - 1]);
}

void StepDriver::moveTo(int step, bool glide) {
    m_glide->stop();
    if (m_sequence.events.empty()) return;
    m_target = std::clamp(step, 0, steps());
    if (m_target == steps()) m_play->stop();
    const auto& now = m_workbench.session().look.cursor;
    const bool still = m_motionReduced || m_workbench.session().look.reducedMotion;
    // No glide when steps are faster than the glide.
    const bool hurried = isPlaying() && interval() < kFrames * kFrame;
    if (!glide || still || hurried || !now) {
        m_workbench.setCursor(cursorOf(m_target));
        emit changed();
        return;
    }
    m_from = *now;
    m_frame = 0;
    glideOn();
}

void StepDriver::glideOn() {
    if (++m_frame >= kFrames) {
        m_workbench.setCursor(cursorOf(m_target));
        emit changed();
        return;
    }
    m_glide->start(kFrame);
    const double left = 1 - static_cast<double>(m_frame) / kFrames;
    const double done = 1 - left * left * left; // ease out
    const double to = m_sequence.events[m_target - 1];
    m_workbench.setCursor(static_cast<TokenIndex>(std::lround(m_from + (to - m_from) * done)));
    emit changed();
}

} // namespace kvscope
