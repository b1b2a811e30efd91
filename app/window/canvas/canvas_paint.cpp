// The half of the canvas that paints. Dear ImGui serves as a batching renderer of triangles: each frame is one draw
// list, filled by the scene painter, drawn by OpenGL off the screen and read back. The window itself has no OpenGL:
// with it, Qt would compose the whole window anew for every frame of a canvas and every button under the pointer (40 ms
// in software OpenGL). Where OpenGL is missing, too old or lost, QPainter paints, as it paints figures.
#include "app/window/canvas/canvas_widget.h"

#include "app/export/painter_scene.h"
#include "app/window/style/appearance.h"
#include "views/imgui/imgui_scene_painter.h"

#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QOpenGLFramebufferObject>
#include <QOpenGLFunctions>
#include <QPainter>
#include <QResizeEvent>

#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <set>
#include <utility>

namespace kvscope {

namespace {

/// What all canvases draw with; it lives as long as one of them.
class SharedContext {
public:
    static std::shared_ptr<SharedContext> get() {
        static std::weak_ptr<SharedContext> latest;
        std::shared_ptr<SharedContext> context = latest.lock();
        if (!context) latest = context = std::make_shared<SharedContext>();
        return context;
    }

    SharedContext() {
        m_surface.create();
        if (!m_context.create() || m_context.format().version() < std::pair(3, 0) || !makeCurrent()) return;
        m_imgui = ImGui::CreateContext();
        ImGui::GetIO().IniFilename = nullptr; // no window layout file beside the user's captures
        ImGui_ImplOpenGL3_Init("#version 130");
    }
    ~SharedContext() {
        if (!isUsable()) return;
        makeCurrent();
        ImGui_ImplOpenGL3_Shutdown();
        ImGui::DestroyContext(m_imgui);
        m_context.doneCurrent();
    }
    SharedContext(const SharedContext&) = delete;
    SharedContext& operator=(const SharedContext&) = delete;

    bool isUsable() const { return m_imgui; }
    bool makeCurrent() { return m_context.makeCurrent(&m_surface); } ///< false: the context is lost
    QOpenGLFunctions& gl() { return *m_context.functions(); }

    std::set<CanvasWidget*> due; ///< canvases that draw before they are next shown

private:
    QOffscreenSurface m_surface;
    QOpenGLContext m_context;
    ImGuiContext* m_imgui = nullptr;
};

QImage paintedByQt(const Scene& scene, QSize pixels, Colour ground) {
    QImage image(pixels, QImage::Format_RGB32);
    image.fill(QColor(ground.r, ground.g, ground.b));
    if (scene.width <= 0 || scene.height <= 0) return image;
    QPainter painter(&image);
    painter.scale(pixels.width() / scene.width, pixels.height() / scene.height);
    paintScene(painter, scene);
    return image;
}

} // namespace

struct CanvasWidget::Renderer {
    explicit Renderer(const TextService& text) : painter(std::make_unique<ImGuiScenePainter>(text)) {}
    ~Renderer() {
        shared->makeCurrent();
        painter.reset(); // its textures are of this context
        target.reset();
    }
    Renderer(const Renderer&) = delete;
    Renderer& operator=(const Renderer&) = delete;

    /// OpenGL draws while this thread goes on; `read` waits for it.
    void draw(const Scene& scene, QSize pixels) {
        const Colour ground = scene.background.a > 0 ? scene.background : chrome().canvas;
        painted = {};
        if (!shared->isUsable() || !shared->makeCurrent()) {
            painted = paintedByQt(scene, pixels, ground);
            return;
        }
        QOpenGLFunctions& gl = shared->gl();
        if (!target || target->size() != pixels) target = std::make_unique<QOpenGLFramebufferObject>(pixels);
        target->bind();
        gl.glViewport(0, 0, pixels.width(), pixels.height());
        gl.glClearColor(ground.r / 255.F, ground.g / 255.F, ground.b / 255.F, 1);
        gl.glClear(GL_COLOR_BUFFER_BIT);
        if (scene.width > 0 && scene.height > 0) drawItems(scene, pixels);
        gl.glFlush();
    }
    void read(QImage& image) {
        if (!painted.isNull() || !shared->makeCurrent()) {
            image = std::move(painted);
            return;
        }
        target->bind();
        if (image.size() != target->size()) image = QImage(target->size(), QImage::Format_RGB32);
        shared->gl().glPixelStorei(GL_PACK_ALIGNMENT, 4);
        shared->gl().glReadPixels(0, 0, image.width(), image.height(), GL_BGRA, GL_UNSIGNED_BYTE, image.bits());
        image.mirror(); // OpenGL's first row is the lowest
    }
    void drawItems(const Scene& scene, QSize pixels) {
        ImGuiIO& io = ImGui::GetIO();
        io.DisplaySize = {static_cast<float>(scene.width), static_cast<float>(scene.height)};
        io.DisplayFramebufferScale = {static_cast<float>(pixels.width()) / io.DisplaySize.x,
                                      static_cast<float>(pixels.height()) / io.DisplaySize.y};
        io.DeltaTime = 1.F / 60;
        ImGui_ImplOpenGL3_NewFrame();
        ImGui::NewFrame();
        painter->paint(scene, *ImGui::GetBackgroundDrawList(), static_cast<double>(io.DisplayFramebufferScale.x));
        ImGui::Render();
        ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    }

    std::shared_ptr<SharedContext> shared = SharedContext::get();
    std::unique_ptr<ImGuiScenePainter> painter;
    std::unique_ptr<QOpenGLFramebufferObject> target;
    QImage painted; ///< without OpenGL
};

CanvasWidget::CanvasWidget(const TextService& text, Builder builder, QWidget* parent)
    : QWidget(parent), m_text(text), m_builder(std::move(builder)) {
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
}

CanvasWidget::~CanvasWidget() {
    if (m_renderer) m_renderer->shared->due.erase(this);
}

void CanvasWidget::redraw() {
    m_redraw = true;
    if (m_renderer) m_renderer->shared->due.insert(this);
    update();
}

void CanvasWidget::invalidate() {
    m_dirty = true;
    redraw();
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
    redraw();
}

void CanvasWidget::resizeEvent(QResizeEvent* event) {
    m_dirty = m_redraw = true;
    QWidget::resizeEvent(event);
}

void CanvasWidget::draw() {
    const QSize pixels = (QSizeF(size()) * devicePixelRatioF()).toSize();
    const bool isNew = std::exchange(m_redraw, false) || m_drawn != pixels;
    if (!m_renderer) m_renderer = std::make_unique<Renderer>(m_text);
    m_renderer->shared->due.erase(this);
    if (!isNew || pixels.isEmpty()) return;
    const auto own = static_cast<std::ptrdiff_t>(scene().items.size());
    addOverlays(m_scene);
    m_renderer->draw(m_scene, pixels);
    m_scene.items.erase(m_scene.items.begin() + own, m_scene.items.end());
    m_drawn = pixels;
    m_isRead = false;
}

const QImage& CanvasWidget::picture() {
    draw();
    if (std::exchange(m_isRead, true)) return m_picture;
    m_renderer->read(m_picture);
    ++m_frames;
    return m_picture;
}

/// All canvases that are due draw before the first is read: OpenGL draws one while the scene of the next is built.
void CanvasWidget::paintEvent(QPaintEvent*) {
    draw();
    for (CanvasWidget* other : std::set(m_renderer->shared->due))
        if (other->isVisible() && other->window() == window()) other->draw();
    QPainter(this).drawImage(rect(), picture());
    emit painted();
}

void CanvasWidget::addOverlays(Scene& picture) const {
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
}

void CanvasWidget::focusInEvent(QFocusEvent* event) {
    m_focusByKeyboard = event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason;
    QWidget::focusInEvent(event);
    redraw();
    emit focused();
}

void CanvasWidget::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    redraw();
}

} // namespace kvscope
