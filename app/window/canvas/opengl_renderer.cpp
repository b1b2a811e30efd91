// Dear ImGui serves as a batching renderer of triangles: each frame is one draw list, filled by the scene painter,
// drawn by OpenGL off the screen and read back. The window itself has no OpenGL: with it, Qt would compose the whole
// window anew for every frame of a canvas and every button under the pointer.
#include "app/window/canvas/canvas_renderer.h"
#include "views/imgui/imgui_scene_painter.h"

#include <QByteArray>
#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QOpenGLFramebufferObject>
#include <QOpenGLFunctions>

#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

/// Whether OpenGL is emulated on the CPU, by the renderer names of Mesa, SwiftShader and Windows.
bool isSoftware(QOpenGLFunctions& gl) {
    const QByteArray renderer(reinterpret_cast<const char*>(gl.glGetString(GL_RENDERER)));
    constexpr const char* kNames[] = {"llvmpipe",    "softpipe",    "Software Rasterizer",
                                      "SwiftShader", "GDI Generic", "Microsoft Basic Render"};
    return std::ranges::any_of(kNames, [&](const char* name) { return renderer.contains(name); });
}

/// The OpenGL context that all canvases draw with; it lives as long as any of their renderers.
class SharedContext {
public:
    static std::shared_ptr<SharedContext> get() {
        static std::weak_ptr<SharedContext> latest;
        std::shared_ptr<SharedContext> context = latest.lock();
        if (!context) latest = context = std::make_shared<SharedContext>();
        return context;
    }

    SharedContext() {
        const QByteArray wanted = qgetenv("KVSCOPE_OPENGL");
        if (wanted == "0") return;
        m_surface.create();
        if (!m_context.create() || m_context.format().version() < std::pair(3, 0) || !makeCurrent()) return;
        if (wanted != "1" && isSoftware(gl())) return;
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

private:
    QOffscreenSurface m_surface;
    QOpenGLContext m_context;
    ImGuiContext* m_imgui = nullptr;
};

class OpenGlRenderer final : public CanvasRenderer {
public:
    OpenGlRenderer(const TextService& text, std::shared_ptr<SharedContext> shared)
        : m_shared(std::move(shared)), m_painter(std::make_unique<ImGuiScenePainter>(text)) {}
    ~OpenGlRenderer() override {
        m_shared->makeCurrent();
        m_painter.reset(); // its textures belong to this context
        m_target.reset();
    }

    bool draw(const Scene& scene, QSize pixels, Colour ground) override {
        if (!m_shared->makeCurrent()) return false;
        QOpenGLFunctions& gl = m_shared->gl();
        if (!m_target || m_target->size() != pixels) m_target = std::make_unique<QOpenGLFramebufferObject>(pixels);
        m_target->bind();
        gl.glViewport(0, 0, pixels.width(), pixels.height());
        gl.glClearColor(ground.r / 255.F, ground.g / 255.F, ground.b / 255.F, 1);
        gl.glClear(GL_COLOR_BUFFER_BIT);
        if (scene.width > 0 && scene.height > 0) drawItems(scene, pixels);
        gl.glFlush();
        return true;
    }
    bool read(QImage& picture) override {
        if (!m_shared->makeCurrent()) return false;
        m_target->bind();
        if (picture.size() != m_target->size()) picture = QImage(m_target->size(), QImage::Format_RGB32);
        m_shared->gl().glPixelStorei(GL_PACK_ALIGNMENT, 4);
        m_shared->gl().glReadPixels(0, 0, picture.width(), picture.height(), GL_BGRA, GL_UNSIGNED_BYTE, picture.bits());
        picture.mirror(); // OpenGL's first row is the lowest
        return true;
    }

private:
    void drawItems(const Scene& scene, QSize pixels) {
        ImGuiIO& io = ImGui::GetIO();
        io.DisplaySize = {static_cast<float>(scene.width), static_cast<float>(scene.height)};
        io.DisplayFramebufferScale = {static_cast<float>(pixels.width()) / io.DisplaySize.x,
                                      static_cast<float>(pixels.height()) / io.DisplaySize.y};
        io.DeltaTime = 1.F / 60;
        ImGui_ImplOpenGL3_NewFrame();
        ImGui::NewFrame();
        m_painter->paint(scene, *ImGui::GetBackgroundDrawList(), static_cast<double>(io.DisplayFramebufferScale.x));
        ImGui::Render();
        ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    }

    std::shared_ptr<SharedContext> m_shared;
    std::unique_ptr<ImGuiScenePainter> m_painter;
    std::unique_ptr<QOpenGLFramebufferObject> m_target;
};

} // namespace

std::unique_ptr<CanvasRenderer> makeOpenGlRenderer(const TextService& text) {
    static bool isRefused = false; // a context takes tens of milliseconds: it is tried once, not for each canvas
    if (isRefused) return nullptr;
    std::shared_ptr<SharedContext> shared = SharedContext::get();
    isRefused = !shared->isUsable();
    if (isRefused) return nullptr;
    return std::make_unique<OpenGlRenderer>(text, std::move(shared));
}

} // namespace kvscope
