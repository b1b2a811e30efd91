#pragma once

#include <QFrame>
#include <QPointer>

#include <vector>

class QLabel;
class QPushButton;

namespace kvscope {

/// A short tour of the window: one note per part, with a ring around the part. Not modal; "Skip" ends it.
class Tour : public QFrame {
    Q_OBJECT

public:
    struct Step {
        QString target; ///< object name of a widget of the window
        QString title, text;
        QString watched = {}; ///< object name of a widget of which the note covers as little as it can
        QString spared = {};  ///< of a widget below which the note goes if it would cover some of it
    };

    Tour(QWidget& window, std::vector<Step> steps);
    int step() const { return m_step; } ///< 0-based

    /// The five steps of the first run.
    static std::vector<Step> firstRun();
    /// True on the first call ever of this user.
    static bool takeFirstRun();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override; ///< Return goes to the next note; Esc (the window's) ends the tour

private:
    void goTo(int step);
    void place();
    int leftOf(const QRect& box, const QRect& room) const;
    QWidget* target() const;
    QRect placeOf(const QString& name) const; ///< in the window; empty: it is not seen

    QWidget& m_window;
    std::vector<Step> m_steps;
    int m_step = 0;
    QPointer<QWidget> m_ring;
    QLabel *m_title, *m_text, *m_count;
    QPushButton *m_back, *m_next;
};

} // namespace kvscope
