#pragma once

#include "app/window/canvas/canvas_widget.h"
#include "app/window/canvas/offer_button.h"
#include "app/window/canvas/read_out.h"
#include "app/workbench/workbench.h"

#include <QPointer>
#include <QWidget>

namespace kvscope {

/// One view of the workbench on a canvas: builds its scenes from the session, turns gestures into session changes, and
/// carries the read-out. Pan, zoom, selection and hover are shared with every other canvas through the session.
class ViewCanvas : public QWidget {
    Q_OBJECT

public:
    /// `pane` is the pane that a per-pane view draws; other views draw all.
    ViewCanvas(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent = nullptr);

    ~ViewCanvas() override;

    const View& view() const { return m_view; }
    int pane() const { return m_pane; }
    CanvasWidget* canvas() const { return m_canvas; }
    ReadOut* readOut() const { return m_readOut.data(); }
    void setBesideOthers(bool beside); ///< see Viewport
    ViewTable table() const;
    QString finding() const;

    void resetView();
    void frameSelection(); ///< shows the selected tokens as large as they fit
    void showRange();      ///< the dialog of the shown ranges; views without axes have none
    void releaseReadOut();
    bool hasLockedCell() const;
    bool releaseCell(); ///< false: none was locked

signals:
    void dataWanted(); ///< the table behind the canvas
    void exportWanted();

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;

private:
    Scene sceneFor(double width, double height);
    Viewport viewportFor(double width, double height) const;
    ViewInput input() const;
    void sessionChanged();
    void dataChanged(const QString& viewId);
    void rangeChanged(const QString& viewId);
    void cursorChanged();
    void revealSelection(); ///< scrolls the strip to a selection that was made elsewhere
    void connectGestures();
    void hover(const PickId& pick, const QPointF& at);
    void click(const PickId& pick, Qt::KeyboardModifiers modifiers, const QPointF& at);
    PointFacts factsAt(const QPointF& at) const;
    bool follow(const PointFacts& facts); ///< to the head or the setting that a mark stands for; false: for none
    bool selectGroup(const QPointF& at);  ///< the tokens that a mark stands for; false: for none
    void refreshOffer();
    void takeOffered(); ///< what the button under an empty view's sentence offers
    void applyChange(const SettingChange& settingChange, const QString& mergeKey = {});
    void brush(const std::vector<TokenIndex>& tokens, bool finished);
    void lasso(const std::vector<TokenIndex>& tokens, Qt::KeyboardModifiers modifiers, bool finished);
    void takeLassoBack(); ///< what was selected before the line began is selected again
    void scrollBy(double delta);
    void dragHandle(const PickId& handle, const QPointF& at, bool finished);
    void showMenu(const QPoint& globalPosition);
    void copyImage();
    void copyData();
    void nudge(int tokens);
    bool moveLockedCell(int across, int down);
    bool moveColourRange(bool highEnd, int hundredths);
    void resetHandle(const PickId& handle);

    Workbench& m_workbench;
    const View& m_view;
    int m_pane;
    const TextService& m_text;
    CanvasWidget* m_canvas;
    OfferButton* m_offer;
    QPointer<ReadOut> m_readOut; ///< the window's child once it has been shown
    Scene m_lastScene;
    DataState m_seen; ///< as of the last change of the view's data
    TokenIndex m_lastClicked = -1;
    std::optional<std::vector<TokenIndex>> m_beforeLasso; ///< what was selected when the line began
    std::vector<TokenIndex> m_revealed;
    bool m_shown = false; ///< counted by the workbench
    bool m_besideOthers = false;
};

} // namespace kvscope
