#pragma once

#include "app/window/docks/panel_dock.h"

#include <QObject>

#include <string>
#include <vector>

class QMainWindow;

namespace kvscope {

enum class WindowLayout; // app/session/session.h

/// The widths of the design: below 1360, from 1920 on, and between.
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
    /// Shows those that there are, in front of their tabs; the first one last.
    void bringToFront(const std::vector<std::string>& ids);
    /// Docks of the left side, which a narrow window folds away; true when they are shown now.
    bool toggleLeft();

    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    QString settingsKey() const;
    void arrangeByDefault();
    void arrangePanes(); ///< Explore head, Compare policies
    void arrangeTeach();
    void arrangeModel();
    void placeLeft();
    void placeRight();
    void placeBottom();
    void shareSpace();
    void sharePanes();
    void shareTeach();
    void shareModel();
    PanelDock* firstOf(const std::vector<const char*>& ids) const; ///< that there is
    /// Adds the other docks that there are as tabs of the first one.
    void placeTabs(const std::vector<const char*>& ids, PanelDock* first);
    void hideAllBut(const std::vector<PanelDock*>& shown);
    bool whyStandsRight() const;
    std::vector<PanelDock*> viewsWithoutPlace() const;
    std::vector<PanelDock*> leftDocks() const; ///< that the rail folds

    QMainWindow& m_window;
    std::vector<PanelDock*> m_docks;
    WindowLayout m_layout{};
    WindowSize m_size = WindowSize::Normal;
    bool m_arranged = false;
};

} // namespace kvscope
