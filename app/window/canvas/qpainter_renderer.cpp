// One task per picture in Qt's thread pool, whose threads have the priority of the window's thread (those of the
// workers have a lower one). When a picture is needed and no thread has begun it, the window's thread paints it.
#include "app/export/paint_cache.h"
#include "app/export/painter_scene.h"
#include "app/window/canvas/canvas_renderer.h"

#include <QPainter>
#include <QRunnable>
#include <QSemaphore>
#include <QThreadPool>

#include <utility>

namespace kvscope {

namespace {

class QPainterRenderer final : public CanvasRenderer, QRunnable {
public:
    QPainterRenderer() { setAutoDelete(false); }
    ~QPainterRenderer() override { finish(); }

    bool draw(const Scene& scene, QSize pixels, Colour ground) override {
        finish();
        m_scene = scene;
        m_ground = ground;
        if (m_picture.size() != pixels) m_picture = QImage(pixels, QImage::Format_RGB32);
        m_isPainting = true;
        QThreadPool::globalInstance()->start(this);
        return true;
    }
    bool read(QImage& picture) override {
        finish();
        picture.swap(m_picture);
        return true;
    }

private:
    void run() override {
        const auto painted = m_painted;
        paint();
        painted->release();
    }
    void paint() {
        m_cache.beginFrame();
        m_picture.fill(QColor(m_ground.r, m_ground.g, m_ground.b));
        if (m_scene.width <= 0 || m_scene.height <= 0) return;
        QPainter painter(&m_picture);
        painter.scale(m_picture.width() / m_scene.width, m_picture.height() / m_scene.height);
        PaintOptions options;
        options.cache = &m_cache;
        paintScene(painter, m_scene, options);
    }
    void finish() {
        if (!std::exchange(m_isPainting, false)) return;
        if (QThreadPool::globalInstance()->tryTake(this)) run();
        m_painted->acquire();
    }

    Scene m_scene;
    Colour m_ground;
    QImage m_picture; ///< what is painted; `read` exchanges it for the one before
    PaintCache m_cache;
    /// Shared: `release` may still be at work on it when the thread that waited has destroyed this object.
    std::shared_ptr<QSemaphore> m_painted = std::make_shared<QSemaphore>();
    bool m_isPainting = false;
};

} // namespace

std::unique_ptr<CanvasRenderer> makeQPainterRenderer() { return std::make_unique<QPainterRenderer>(); }

} // namespace kvscope
