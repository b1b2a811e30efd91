// The GL half of the canvas. Dear ImGui serves as a batching renderer of triangles: each frame is one draw list, filled
// by the scene painter. A context of its own per canvas keeps canvases independent of each other.
#include "app/window/canvas/canvas_widget.h"

#include "app/window/style/appearance.h"
#include "views/imgui/imgui_scene_painter.h"

#include <QOpenGLContext>
#include <QOpenGLFunctions>
#include <QResizeEvent>

#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <array>

namespace kvscope {

struct CanvasWidget::Renderer {
    explicit Renderer(const TextService& text) : imgui(ImGui::CreateContext()), painter(text) {
        ImGui::SetCurrentContext(imgui);
        ImGui::GetIO().IniFilename = nullptr; // no window layout file beside the user's captures
        ImGui_ImplOpenGL3_Init("#version 130");
    }
    ~Renderer() {
        ImGui::SetCurrentContext(imgui);
        ImGui_ImplOpenGL3_Shutdown();
        ImGui::DestroyContext(imgui);
    }

    ImGuiContext* imgui;
    ImGuiScenePainter painter;
};

CanvasWidget::CanvasWidget(const TextService& text, Builder builder, QWidget* parent)
    : QOpenGLWidget(parent), m_text(text), m_builder(std::move(builder)) {
    setMouseTracking(true);
}

CanvasWidget::~CanvasWidget() {
    // Released here, because the base class destroys the context only after this object.
    if (context()) context()->disconnect(this);
    releaseRenderer();
}

void CanvasWidget::releaseRenderer() {
    if (!m_renderer) return;
    makeCurrent();
    m_renderer.reset();
    doneCurrent();
}

void CanvasWidget::invalidate() {
    m_dirty = true;
    update();
}

const Scene& CanvasWidget::scene() {
    if (m_dirty) {
        m_scene = m_builder(width() / appearance().scale, height() / appearance().scale);
        m_dirty = false;
    }
    return m_scene;
}

void CanvasWidget::setFaded(bool faded) {
    if (faded == m_faded) return;
    m_faded = faded;
    update();
}

void CanvasWidget::resizeEvent(QResizeEvent* event) {
    m_dirty = true;
    QOpenGLWidget::resizeEvent(event);
}

void CanvasWidget::initializeGL() {
    // Qt calls this again with a new context when the widget moves to another window: release the old context's
    // objects.
    connect(context(), &QOpenGLContext::aboutToBeDestroyed, this, &CanvasWidget::releaseRenderer, Qt::UniqueConnection);
    m_renderer = std::make_unique<Renderer>(m_text);
}

void CanvasWidget::paintGL() {
    const Scene& picture = scene();
    QOpenGLFunctions* gl = context()->functions();
    // The framebuffer's true size: size() times devicePixelRatio() is off by one at fractional scales.
    std::array<GLint, 4> viewport{};
    gl->glGetIntegerv(GL_VIEWPORT, viewport.data());
    const Colour ground = picture.background.a > 0 ? picture.background : chrome().canvas;
    gl->glClearColor(ground.r / 255.F, ground.g / 255.F, ground.b / 255.F, 1);
    gl->glClear(GL_COLOR_BUFFER_BIT);
    if (picture.width <= 0 || picture.height <= 0) return;

    ImGui::SetCurrentContext(m_renderer->imgui);
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(picture.width), static_cast<float>(picture.height)};
    io.DisplayFramebufferScale = {viewport[2] / io.DisplaySize.x, viewport[3] / io.DisplaySize.y};
    io.DeltaTime = 1.F / 60;
    ImGui_ImplOpenGL3_NewFrame();
    ImGui::NewFrame();
    ImDrawList& list = *ImGui::GetBackgroundDrawList();
    m_renderer->painter.paint(withOverlays(picture), list, io.DisplayFramebufferScale.x);
    ImGui::Render();
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    ++m_frames;
}

Scene CanvasWidget::withOverlays(Scene picture) const {
    const Theme& theme = chrome();
    if (m_faded)
        picture.items.push_back(
            RectangleItem{{0, 0, picture.width, picture.height}, withAlpha(theme.canvas, 0.65), {}, 0, {}});
    if (const auto band = bandToDraw())
        picture.items.push_back(RectangleItem{*band, withAlpha(theme.ink, 0.08), {theme.ink, 1, {4, 3}}, 0, {}});
    if (m_gesture == Gesture::Outline)
        picture.items.push_back(PolygonItem{m_lasso.path(), withAlpha(theme.ink, 0.08), {theme.ink, 1, {4, 3}}, {}});
    if (hasFocus() && m_focusByKeyboard)
        picture.items.push_back(
            RectangleItem{{1, 1, picture.width - 2, picture.height - 2}, kTransparent, {theme.ink, 2, {}}, 0, {}});
    return picture;
}

void CanvasWidget::focusInEvent(QFocusEvent* event) {
    m_focusByKeyboard = event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason;
    QOpenGLWidget::focusInEvent(event);
    update();
    emit focused();
}

void CanvasWidget::focusOutEvent(QFocusEvent* event) {
    QOpenGLWidget::focusOutEvent(event);
    update();
}

} // namespace kvscope
