#pragma once

#include <QFrame>
#include <QPointer>

#include <vector>

class QLabel;
class QPushButton;

namespace kvscope {

/// A short walk through the window: a note beside one part after the other, with a ring around the part. Not modal: the
/// window works as always while it is there, and "Skip" ends it at any time.
class Tour : public QFrame {
    Q_OBJECT

public:
    struct Step {
        QString target; ///< object name of a widget of the window
        QString title, text;
        QString watched =
            {}; ///< object name of what follows while the step is tried out: the note keeps off it where it can
    };

    Tour(QWidget& window, std::vector<Step> steps);
    int step() const { return m_step; } ///< 0-based

    /// The five steps of the first run.
    static std::vector<Step> firstRun();
    /// True until it has been asked once on this computer.
    static bool takeFirstRun();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override; ///< Return goes on; the window's Esc ends the tour

private:
    void goTo(int step);
    void place();
    int leftOf(const QRect& box, const QRect& room) const;
    QWidget* target() const;

    QWidget& m_window;
    std::vector<Step> m_steps;
    int m_step = 0;
    QPointer<QWidget> m_ring;
    QLabel *m_title, *m_text, *m_count;
    QPushButton *m_back, *m_next;
};

} // namespace kvscope
