#pragma once

#include "app/window/canvas/pane_frame.h"
#include "app/window/canvas/view_dock.h"
#include "app/workbench/workbench.h"

#include <QWidget>

class QGridLayout;

namespace kvscope {

class CaptureCaption;

/// The middle of the window: the policy panes of the session, and below them the panes of the compared capture, each
/// row of panes under its capture's name. Also creates the views for all panes, which the window
/// puts into docks.
class CanvasArea : public QWidget {
    Q_OBJECT

public:
    CanvasArea(Workbench& workbench, const TextService& text, QWidget* parent = nullptr);

    const std::vector<PaneFrame*>& panes() const { return m_panes; }
    const std::vector<PaneFrame*>& secondPanes() const { return m_secondPanes; } ///< of the compared capture
    const std::vector<ViewDock*>& docks() const { return m_docks; }
    /// The canvas that commands apply to: the focused one, else the active pane's; may be null.
    ViewCanvas* currentCanvas() const;
    /// `alone`: only the active pane is shown; `covered`: a maximised dock fills the window.
    void setRoom(bool alone, bool covered);
    std::vector<ViewCanvas*> canvases() const; ///< of panes and docks

signals:
    void dataWanted(ViewCanvas* canvas);
    void exportWanted(ViewCanvas* canvas);
    void headsWanted(ViewCanvas* canvas);
    void parametersWanted();
    void openWanted();
    void maximiseWanted();
    void turnedTo(const View& view); ///< a view got the focus

protected:
    void resizeEvent(QResizeEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;

private:
    void follow();
    void passFocusOn(Qt::FocusReason reason); ///< to the active pane
    void turnTo(bool second);                 ///< the second capture's panes mark the active one, or the first's
    void followPanes(Workbench& workbench, std::vector<PaneFrame*>& panes);
    void arrange();
    void hideOrShow();
    int placeRow(const std::vector<PaneFrame*>& panes, int row, int columns); ///< returns the row below
    void buildDocks();
    int columnsFor(int shown) const;
    /// Only the active pane is shown.
    bool isAlone() const { return m_alone || m_workbench.session().layout == WindowLayout::ExploreHead; }
    void connectCanvas(ViewCanvas* canvas);
    QWidget* buildEmpty();

    Workbench& m_workbench;
    const TextService& m_text;
    QWidget* m_empty;
    QGridLayout* m_grid;
    std::vector<PaneFrame*> m_panes, m_secondPanes;
    CaptureCaption *m_caption = nullptr, *m_secondCaption = nullptr; ///< shown while two captures are compared
    std::vector<ViewDock*> m_docks;
    bool m_hidden = false; ///< this layout has no panes, or a dock has the whole window
    bool m_isSecondInTurn = false;
    bool m_alone = false, m_covered = false;
    std::string m_arranged; ///< what the grid shows
};

} // namespace kvscope
