#pragma once

#include "app/window/docks/panel_dock.h"

#include <QObject>

#include <vector>

class QMainWindow;

namespace kvscope {

enum class WindowLayout; // app/session/session.h

/// The widths of design.md 2: below 1360, from 1920 on, and between.
enum class WindowSize { Narrow, Normal, Wide };

/// All docks of the window and where they stand. Each layout has an arrangement per window size: what the user last made
/// of it (kept in the settings), else its default.
class DockDesk : public QObject {
    Q_OBJECT

public:
    explicit DockDesk(QMainWindow& window);

    PanelDock* add(const QString& id, const QString& title);
    PanelDock* dock(const QString& id) const; ///< null without one
    const std::vector<PanelDock*>& all() const { return m_docks; }

    /// Nothing when this arrangement is shown already; else remembers the old one and shows this one.
    void arrange(WindowLayout layout, WindowSize size);
    void remember(); ///< the arrangement shown, in the settings
    void reset();    ///< back to the default of the arrangement shown
    /// Docks of the left side, which a narrow window folds away; true when they are shown now.
    bool toggleLeft();

    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    QString settingsKey() const;
    void arrangeByDefault();
    void placeLeft();
    void placeRight();
    void placeBottom();
    void shareSpace();
    bool whyStandsRight() const;
    std::vector<PanelDock*> viewsWithoutPlace() const;

    QMainWindow& m_window;
    std::vector<PanelDock*> m_docks;
    WindowLayout m_layout{};
    WindowSize m_size = WindowSize::Normal;
    bool m_arranged = false;
};

} // namespace kvscope
