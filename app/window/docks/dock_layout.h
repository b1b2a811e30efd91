#pragma once

#include "app/window/docks/panel_dock.h"
#include "app/window/style/window_size.h"
#include "views/view.h"

#include <QObject>
#include <QPointer>
#include <QSizeF>

#include <optional>
#include <string>
#include <utility>
#include <vector>

class QMainWindow;

namespace kvscope {

enum class WindowLayout; // app/study/session.h
struct DockPlaces;       // app/study/session.h

/// What Tab would reach first in a place; null: nothing.
QWidget* firstTabStop(QWidget* place);

/// The docks of the window and their places. Each layout has an arrangement per window size: the user's last one (from
/// the settings), else the default.
class DockLayout : public QObject {
    Q_OBJECT

public:
    explicit DockLayout(QMainWindow& window);

    PanelDock* add(const QString& id, const QString& title);
    PanelDock* dock(const QString& id) const; ///< null without one
    const std::vector<PanelDock*>& all() const { return m_docks; }
    static bool isView(const PanelDock* dock); ///< else it is a panel

    /// Saves the current arrangement and switches to the one for layout and window size. An arrangement whose
    /// separators the user has not moved distributes the space again when the window is resized. `twoRows`: of panes.
    void arrange(WindowLayout layout, bool twoRows);
    void remember();                        ///< saves the shown arrangement in the settings
    void reset();                           ///< back to the default of the arrangement shown
    DockPlaces places() const;              ///< of the shown arrangement
    void restore(const DockPlaces& places); ///< unless they are those of another arrangement
    /// Visible docks with their sizes in logical pixels. New contents request other sizes; whoever replaces contents
    /// restores these sizes after the layout.
    using Sizes = std::vector<std::pair<PanelDock*, QSizeF>>;
    Sizes sizes() const;
    void resize(const Sizes& sizes);
    /// Raises the existing ones of these docks; the first one ends up in front.
    void bringToFront(const std::vector<std::string>& ids);
    /// Shows a dock in front, with the focus. A hidden view opens where it can be read: as a tab of the largest view,
    /// else beside the panes, in the layout Compare policies below them.
    void open(PanelDock* dock);
    /// Gives the whole window to one dock, or to the panes (null); a second call gives all places back.
    void maximise(PanelDock* dock);
    bool isTight() const; ///< one row below the panes
    bool giveBack();      ///< restores all places from before `maximise`; false: nothing was maximised
    const std::optional<PanelDock*>& maximised() const { return m_maximised; }
    PanelDock* dockOf(const QWidget* inside) const; ///< null: it is in none
    /// Gives the focus to the next place (1) or the one before (-1): docks and panes from left to right, those above
    /// first.
    void stepFocus(int by);
    bool foldLeft(); ///< hides the docks of the left side; false: none is shown

    bool eventFilter(QObject* watched, QEvent* event) override;

signals:
    void maximisedChanged();
    void arranged(); ///< the docks of another layout or window size are in place; they share the space after it

private:
    static constexpr int kTabs = 26; ///< logical height of a row of tabs, which Qt includes in the docks' height
    QString arrangementName() const;
    QString settingsKey() const { return "docks/" + arrangementName(); }
    QByteArray state() const;
    void restore(const QByteArray& state, bool byHand);
    void keepSoon();
    /// Qt gives the focus of a widget that is hidden or disabled to the next tab stop, wherever that is.
    void keepFocus(QWidget* before, QWidget* now);
    void present(PanelDock* dock);
    void placeToRead(PanelDock* dock);
    PanelDock* roomiestView(const PanelDock* but) const; ///< the largest view that is readable; null: none
    void markActive(QWidget* before, QWidget* now);
    /// While a separator is dragged, only the docks at its sides change their size.
    void holdOthers(const QPoint& separator, Qt::Orientation direction);
    void letGo();
    void foldToFit(); ///< hides panels, from the left, until the rest fits into the window's width
    void arrangeByDefault();
    void arrangePanes(); ///< Explore head, Compare policies
    void arrangeTeach();
    void arrangeModel();
    void placeLeft();
    void placeRight();
    void placeBottom();
    void shareSpace(); ///< distributes the space unless the user has moved separators
    void sharePanes();
    void shareTeach();
    void shareModel();
    PanelDock* dock(ViewPlace place) const; ///< of the view that has this place
    std::vector<PanelDock*> teachingDocks(TeachingRole first, TeachingRole others) const;
    std::vector<PanelDock*> stepDocks() const { return teachingDocks(TeachingRole::StepsFirst, TeachingRole::Steps); }
    std::vector<PanelDock*> detailDocks() const {
        return teachingDocks(TeachingRole::DetailFirst, TeachingRole::Detail);
    }
    void placeTabs(const std::vector<PanelDock*>& docks); ///< all as tabs of the first one
    void hideAllBut(const std::vector<PanelDock*>& shown);
    bool hasOneRow() const; ///< whether text, overlap and metrics are tabs of one dock
    bool whyDockIsOnTheRight() const;

    QMainWindow& m_window;
    std::vector<PanelDock*> m_docks;
    WindowLayout m_layout{};
    WindowSize m_size = WindowSize::Normal;
    bool m_short = false, m_twoRows = false;
    std::vector<PanelDock*> m_inFront; ///< to be raised once the docks are laid out, in this order
    bool m_arranged = false;
    bool m_byHand = false; ///< the user has moved separators in this arrangement
    struct Held {
        PanelDock* dock;
        QSize least, most;
    };
    std::vector<Held> m_held;
    QByteArray m_asLeft; ///< the arrangement after its last change by the user
    QSize m_leftAt;      ///< the window's size then
    bool m_keepsSoon = false;
    bool m_keepsFocus = false;
    QPointer<QWidget> m_hidTo;             ///< what Qt has given the focus of a hidden widget to
    std::optional<PanelDock*> m_maximised; ///< null: the panes
    QByteArray m_before;                   ///< the arrangement that a maximised dock gives back
    Sizes m_sizesBefore;                   ///< exact sizes: Qt's state also gives room to hidden docks
    QSize m_shared;                        ///< size of the window when the space was shared
};

} // namespace kvscope
