#pragma once

#include "app/workbench/clock.h"

#include <QEvent>
#include <QPointer>
#include <QString>
#include <QWidget>

#include <functional>
#include <memory>
#include <vector>

namespace kvscope {

/// Messages as rows over the window, never as a modal box. Offers and errors, which may stay for long, get room of
/// their own above the panels; all others lie over the status line, where they move nothing and hide no header. Each
/// may offer actions and can be closed; all but offers, errors and progress leave by themselves, unless the pointer is
/// on them.
class NoticeStrip : public QWidget {
    Q_OBJECT

public:
    enum class Tone { Offer, Progress, Success, Notice, Warning, Error };
    struct Action {
        QString text;
        std::function<void()> run;
    };

    explicit NoticeStrip(QWidget* parent = nullptr, Clock& clock = machineClock());
    ~NoticeStrip() override;

    /// Replaces a row of the same `id`, so that repeated failures do not pile up.
    void show(const QString& id, Tone tone, const QString& message, std::vector<Action> actions = {});
    void show(const QString& id, Tone tone, const QString& message, const QString& actionText,
              std::function<void()> action);
    void retell(const QString& id, const QString& message); ///< changes the text of a shown row; its actions stay
    void dismiss(const QString& id);
    QStringList messages() const; ///< in the order of their coming, for tests and screen readers

    /// Places offers and errors below `top`, centred in the parent widget; `room` lies there and gets their height. The
    /// other rows go there, too, while they would hide the focus at the bottom.
    void placeBelow(int top, QWidget* room);
    QWidget* passing() const { return m_passing; } ///< rows that leave by themselves, beside this strip
    void restyle();                                ///< the theme or the scale has changed

protected:
    bool event(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Notice;
    void build(Notice& notice);
    void discardRow(QWidget* row);
    void place();
    int heightOf(const QWidget& rows, int width) const;
    bool hidesFocus(const QRect& there) const; ///< whether `there` hides more than half of the focused widget
    void cameToFront(const QObject& panel, QEvent::Type type);

    Clock& m_clock;
    QPointer<QWidget> m_passing;
    std::vector<std::unique_ptr<Notice>> m_notices; ///< from the top: offers and errors first
    int m_top = 0;
    QPointer<QWidget> m_room;
};

} // namespace kvscope
