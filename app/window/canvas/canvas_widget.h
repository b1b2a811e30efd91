#pragma once

#include "app/window/canvas/lasso.h"
#include "app/window/canvas/range_math.h"
#include "views/scene/text_service.h"

#include <QImage>
#include <QWidget>

#include <functional>
#include <memory>
#include <optional>

namespace kvscope {

class CanvasRenderer;

/// Shows a scene, drawn off the screen by OpenGL or by QPainter (canvas_renderer.h).
/// Scene coordinates are widget pixels divided by the interface scale. Draws only after a change. Reports gestures in
/// scene coordinates without interpreting them.
class CanvasWidget : public QWidget {
    Q_OBJECT

public:
    using Builder = std::function<Scene(double width, double height)>;

    CanvasWidget(const TextService& text, Builder builder, QWidget* parent = nullptr);
    ~CanvasWidget() override;

    /// The scene is rebuilt before the next frame.
    void invalidate();
    const Scene& scene();    ///< up to date
    const QImage& picture(); ///< of the scene in device pixels, as shown
    Point toScene(const QPointF& widgetPosition) const;
    PickId pickUnder(const QPointF& widgetPosition);
    void setFaded(bool faded); ///< the old picture at 35 % while a new one is computed
    /// The scene is a text: a drag selects in reading order, a double click the word, a third click the sentence.
    void setReadsText(bool reads) { m_readsText = reads; }
    void armLasso();     ///< the next drag draws a lasso, whatever the keys
    bool abandonLasso(); ///< cancels a lasso being drawn or armed; false: there is none
    int framesDrawn() const { return m_frames; }

signals:
    void painted(); ///< into the window's backing store, shown together with the widgets painted in the same event
    void hovered(const PickId& pick, const QPointF& widgetPosition);
    void pointerLeft();
    void focused(); ///< emitted when this widget gets the keyboard focus
    void clicked(const PickId& pick, Qt::KeyboardModifiers modifiers, const QPointF& widgetPosition);
    void brushed(const std::vector<TokenIndex>& tokens, bool finished);
    /// Shift and Ctrl as they were when the lasso began.
    void lassoed(const std::vector<TokenIndex>& tokens, Qt::KeyboardModifiers modifiers, bool finished);
    void lassoAbandoned();
    void rangeWanted(const Viewport::Range& range);
    void fitWanted();
    /// A drag over a text began, goes on, or ended; words and sentences are asked for by clicks.
    void readingBegun(const QPointF& scenePosition, Qt::KeyboardModifiers modifiers);
    void readTo(const QPointF& scenePosition, bool finished);
    void wordWanted(const QPointF& scenePosition);
    void sentenceWanted(const QPointF& scenePosition);
    void scrollWanted(double delta); ///< scene pixels, for scenes without a plot
    void handleDragged(const PickId& handle, const QPointF& scenePosition, bool finished);
    void menuWanted(const QPoint& globalPosition);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    enum class Gesture { None, Press, Pan, BoxZoom, Brush, Outline, Handle, Read };

    void hoverAt(const QPointF& widgetPosition);
    Gesture gestureFor(Qt::KeyboardModifiers modifiers) const;
    void continueGesture(Point at);
    void finishGesture(Point at);
    void outline(Point at, bool finished);
    void finishOutline(Point at);
    void redraw(); ///< the same scene, with other overlays
    void draw();   ///< begins a new picture if one is due; `picture` reads it
    std::optional<Box> bandToDraw() const;
    void addOverlays(Scene& picture) const; ///< rubber band, focus ring, fading

    const TextService& m_text;
    Builder m_builder;
    Scene m_scene;
    QImage m_picture;
    QSize m_drawn; ///< device pixels of what was drawn last
    bool m_dirty = true, m_redraw = true, m_isRead = true, m_faded = false, m_focusByKeyboard = false,
         m_readsText = false;
    int m_frames = 0;
    std::unique_ptr<CanvasRenderer> m_renderer;

    Gesture m_gesture = Gesture::None;
    Point m_pressed, m_last;
    quint64 m_doubleClicked = 0; ///< time stamp; a press soon after it is a third click
    Lasso m_lasso;
    bool m_lassoArmed = false;
    PickId m_pressedPick;
    Qt::KeyboardModifiers m_pressedModifiers;
};

} // namespace kvscope
