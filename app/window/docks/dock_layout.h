#pragma once

#include "app/window/docks/panel_dock.h"
#include "app/window/style/window_size.h"

#include <QObject>
#include <QSizeF>

#include <string>
#include <utility>
#include <vector>

class QMainWindow;

namespace kvscope {

enum class WindowLayout; // app/study/session.h

/// All docks of the window and where they stand. Each layout has an arrangement per window size: what the user last
/// made of it (kept in the settings), else its default.
class DockLayout : public QObject {
    Q_OBJECT

public:
    explicit DockLayout(QMainWindow& window);

    PanelDock* add(const QString& id, const QString& title);
    PanelDock* dock(const QString& id) const; ///< null without one
    const std::vector<PanelDock*>& all() const { return m_docks; }

    /// Remembers the arrangement shown and shows another one where layout or size of the window ask for it. An
    /// arrangement whose separators nobody has moved shares the space anew whenever the window has another size.
    void arrange(WindowLayout layout);
    void remember(); ///< the arrangement shown, in the settings
    void reset();    ///< back to the default of the arrangement shown
    /// Docks in sight with their sizes in logical pixels. New contents ask for other sizes: who exchanges them gives
    /// the docks these again when the window has been laid out.
    using Sizes = std::vector<std::pair<PanelDock*, QSizeF>>;
    Sizes sizes() const;
    void resize(const Sizes& sizes);
    /// Shows those that there are, in front of their tabs; the first one last.
    void bringToFront(const std::vector<std::string>& ids);
    /// Docks of the left side, which a narrow window folds away; true when they are shown now.
    bool toggleLeft();

    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    static constexpr int kTabs = 26; ///< logical height of a row of tabs, which Qt counts to the docks under it
    QString settingsKey() const;
    void present(PanelDock* dock);
    void arrangeByDefault();
    void arrangePanes(); ///< Explore head, Compare policies
    void arrangeTeach();
    void arrangeModel();
    void placeLeft();
    void placeRight();
    void placeBottom();
    void shareSpace(); ///< nothing once separators were moved by hand
    void sharePanes();
    void shareTeach();
    void shareModel();
    PanelDock* firstOf(const std::vector<const char*>& ids) const; ///< that there is
    /// Adds the other docks that there are as tabs of the first one.
    void placeTabs(const std::vector<const char*>& ids, PanelDock* first);
    void hideAllBut(const std::vector<PanelDock*>& shown);
    bool hasOneRow() const; ///< text, overlap and metrics are tabs of one dock
    bool whyDockIsOnTheRight() const;
    std::vector<PanelDock*> viewsWithoutPlace() const;
    std::vector<PanelDock*> leftDocks() const; ///< that the rail folds

    QMainWindow& m_window;
    std::vector<PanelDock*> m_docks;
    WindowLayout m_layout{};
    WindowSize m_size = WindowSize::Normal;
    bool m_short = false;
    std::vector<PanelDock*> m_inFront; ///< to be raised once the docks are laid out, in this order
    bool m_arranged = false;
    bool m_byHand = false; ///< separators have been moved in this arrangement
    QSize m_shared;        ///< size of the window when the space was shared
};

} // namespace kvscope
