#pragma once

#include "app/study/prompt_text.h"
#include "app/window/canvas/canvas_widget.h"
#include "app/window/canvas/offer_button.h"
#include "app/window/canvas/read_out.h"
#include "app/workbench/workbench.h"

#include <QPointer>
#include <QWidget>

#include <memory>

class QLabel;

namespace kvscope {

/// One view on a canvas: builds its scenes from the session, turns gestures into session changes, and owns the
/// read-out. Pan, zoom, selection and hover are shared with other canvases through the session. Picture, finding, table
/// and read-out are of one generation (Workbench::drawn); a picture that stays older than the session for a moment is
/// faded, and a note says what it shows.
class ViewCanvas : public QWidget {
    Q_OBJECT

public:
    /// `pane` is the pane that a per-pane view draws; other views draw all panes.
    ViewCanvas(Workbench& workbench, const View& view, int pane, const TextService& text, QWidget* parent = nullptr);

    ~ViewCanvas() override;

    Workbench& workbench() const { return m_workbench; } ///< of the capture that it shows
    const View& view() const { return m_view; }
    int pane() const { return m_pane; }
    CanvasWidget* canvas() const { return m_canvas; }
    ReadOut* readOut() const { return m_readOut.data(); }
    void setBesideOthers(bool beside); ///< see Viewport
    ViewTable table() const;
    QString finding() const;

    void resetView() { m_workbench.setRange(m_view, std::nullopt); }
    void frameSelection();                       ///< shows the selected tokens as large as they fit
    void showMenu(const QPoint& globalPosition); ///< the commands and settings of the view
    void explain();                              ///< how to read the view
    void showRange();                            ///< opens the range dialog; views without axes have none
    void armLasso() { m_canvas->armLasso(); }
    void copy();      ///< the selected text where the canvas is the prompt's text, else the image and the finding
    void copyMore();  ///< the selected positions where the canvas is the prompt's text, else the data
    void copyImage(); ///< and the finding as text
    void copyData();
    void copySelectedText();
    void copySelectedPositions();
    bool hasLockedCell() const { return isVisible() && m_view.lockReleased(options()); }
    QString headerFinding() const; ///< empty where the picture's place says a pane's error
    bool releaseCell();            ///< unlocks the locked cell; false: none was locked

signals:
    void drawnChanged(); ///< the picture or what is said about it may have changed
    void dataWanted();   ///< the table behind the canvas is requested
    void exportWanted();
    void headsWanted();      ///< the view for all heads of the layer
    void parametersWanted(); ///< those of the active pane

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;

private:
    Scene sceneFor(double width, double height);
    Viewport viewportFor(double width, double height) const;
    Viewport viewport() const; ///< of the whole canvas
    DrawnView drawn() const;
    ViewInput input() const { return drawn().input; }
    ParameterValues options() const { return viewOptions(m_workbench.session(), m_view); }
    void connectWorkbench();
    void dataChanged(const QString& viewId);
    void invalidate();        ///< rebuilds picture, finding and read-out; while hidden, only marks the picture as old
    void invalidateChanged(); ///< the same, but keeps the picture if what it is built from has not changed
    void refreshSoon();
    void refresh();
    bool showsError() const; ///< of a pane, in place of the picture
    void refreshReadOut();
    void followAge(const DrawnView& drawn);
    void showAge(const DrawnView& drawn);
    bool isBusy(const DrawnView& drawn) const; ///< a newer picture or its numbers are being computed
    QString noteOf(const DrawnView& drawn) const;
    void reveal(TokenIndex token);
    void revealSelection(); ///< scrolls the strip to a selection made in another view
    void followFocus();     ///< scrolls the strip to a token while it is hovered in another view
    void followLock();      ///< scrolls the strip to a cell locked in another view
    bool isText() const { return m_view.card().place == ViewPlace::Text; }
    void selectRun(const QPointF& at, TokenRun (*around)(const TokenTable&, TokenIndex));
    void beginReading(const QPointF& at, Qt::KeyboardModifiers modifiers);
    void readTo(const QPointF& at, bool finished);
    void fit();        ///< for a double click, whose first click may have locked a cell: takes the lock back
    void movePinned(); ///< moves the pinned read-out with its token; dismisses it if the token is out of sight
    void connectGestures();
    void hover(const PickId& pick, const QPointF& at);
    void click(const PickId& pick, Qt::KeyboardModifiers modifiers, const QPointF& at);
    PointFacts factsAt(const QPointF& at) const;
    std::optional<QPointF> placeOf(TokenIndex token) const; ///< of its mark on the canvas
    bool follow(const PointFacts& facts); ///< opens the head or changes the setting of a mark; false: the mark has none
    bool selectGroup(const QPointF& at);  ///< selects the tokens of a mark; false: it has none
    void refreshOffer();
    void takeOffered(); ///< applies the offer of an empty view
    void applyChange(const SettingChange& settingChange, const QString& mergeKey = {});
    void brush(const std::vector<TokenIndex>& tokens, bool finished);
    void lasso(const std::vector<TokenIndex>& tokens, Qt::KeyboardModifiers modifiers, bool finished);
    void takeLassoBack(); ///< restores the selection from before the lasso
    void scrollBy(double delta);
    void scrollTo(TokenIndex top); ///< or as far as the text goes
    void dragHandle(const PickId& handle, const QPointF& at, bool finished);
    void nudge(int tokens);
    bool moveLockedCell(int across, int down);

    Workbench& m_workbench;
    const View& m_view;
    int m_pane;
    const TextService& m_text;
    CanvasWidget* m_canvas;
    OfferButton* m_offer;
    QPointer<ReadOut> m_readOut; ///< the window's child once it has been shown
    QPointF m_readAt;            ///< the point of the canvas that the read-out describes
    QLabel* m_note;              ///< says what an old picture shows, and how far the new one is
    std::unique_ptr<Clock::Timer> m_aging;
    struct Pictured;
    std::unique_ptr<Pictured> m_pictured; ///< what the scene is built from; null before a capture's first scene
    bool m_isRefreshQueued = false;
    std::string m_range;      ///< of colours or of an axis, shared with another capture, as drawn
    DataState m_seen;         ///< as of the last change of the view's data
    bool m_isCovered = false; ///< drawn without its picture, which a lesson withholds
    TokenIndex m_lastClicked = -1;
    std::optional<std::vector<TokenIndex>> m_beforeLasso; ///< the selection from before the lasso
    std::vector<TokenIndex> m_revealed;
    bool m_lockedByClick = false;     ///< a lock that is taken back if the click becomes a double click
    std::optional<TokenIndex> m_peek; ///< the text's top while a token is hovered in another view
    TokenIndex m_scrolledFrom = -1, m_scrolledTo = -1; ///< the text's top before and after the last turns of the wheel
    double m_scrolled = 0;                             ///< by these turns, logical pixels
    TokenIndex m_locked = -1;                          ///< key of the cell locked in another view
    bool m_isUnderWay = false;                         ///< the step cursor stood before the last step
    bool m_shown = false;                              ///< counted as shown by the workbench
    bool m_besideOthers = false;
};

} // namespace kvscope
