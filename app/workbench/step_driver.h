#pragma once

#include "app/workbench/workbench.h"

namespace kvscope {

/// Plays the step sequence of a shown view: moves the session's step cursor from event to event, by hand or by itself.
/// A step glides through the tokens between two events unless motion is reduced.
class StepDriver : public QObject {
    Q_OBJECT

public:
    explicit StepDriver(Workbench& workbench);

    /// Call when the user turns to a view. Plays its steps if it is shown and has some; else those of the first shown
    /// view with steps.
    void prefer(const View& view);
    const View* view() const { return m_view; } ///< null: no shown view has steps
    const StepSequence& stepSequence() const { return m_sequence; }
    int steps() const { return static_cast<int>(m_sequence.events.size()); }
    int step() const; ///< events that have happened, 0 .. steps()
    QString caption() const;
    bool isMilestone(int step) const;

    bool isPlaying() const { return m_play->isActive(); }
    /// Starts at the event after the cursor; at the first one when the cursor is at the end.
    void play();
    void pause();
    void toggle() { isPlaying() ? pause() : play(); }
    void stepBy(int steps); ///< stops playing
    void goTo(int step);    ///< stops playing
    void setSpeed(double speed);
    double speed() const { return m_speed; }
    bool isGliding() const { return m_glide->isActive(); }
    /// Set by the desktop; the session has its own switch.
    void setMotionReduced(bool reduced) { m_motionReduced = reduced; }

    /// Milliseconds between two steps at speed 1: long enough to read, and no sequence takes more than 40 seconds.
    static int stepMilliseconds(int steps);

signals:
    void changed(); ///< view, step, caption or whether it plays

private:
    void refreshSoon(); ///< once, when all signals of a change have been sent
    void refresh();
    std::chrono::milliseconds interval() const; ///< between two steps at the chosen speed
    void moveTo(int step, bool glide);
    void glideOn();
    std::optional<TokenIndex> cursorOf(int step) const;

    Workbench& m_workbench;
    const View* m_preferred = nullptr;
    const View* m_view = nullptr;
    StepSequence m_sequence;
    double m_speed = 1;
    bool m_motionReduced = false;
    std::unique_ptr<Clock::Timer> m_play, m_glide; ///< until the next step, the next frame
    bool m_isRefreshQueued = false;
    TokenIndex m_from = 0;
    int m_target = 0, m_frame = 0;
};

} // namespace kvscope
