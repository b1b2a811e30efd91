#pragma once

#include "views/scene/scene.h"
#include "views/scene/text_service.h"

#include <QImage>

#include <memory>

namespace kvscope {

/// Turns the scenes of one canvas into pictures. Belongs to the window's thread.
class CanvasRenderer {
public:
    virtual ~CanvasRenderer() = default;
    /// Begins a picture of so many device pixels on the background colour `ground`; the work may go on while this
    /// thread does something else. False: this renderer can draw no more (the OpenGL context is lost).
    virtual bool draw(const Scene& scene, QSize pixels, Colour ground) = 0;
    /// Waits for the picture that was begun last. False: it is lost.
    virtual bool read(QImage& picture) = 0;
};

/// Dear ImGui's draw lists in OpenGL, all canvases in one context. Null where OpenGL is missing, too old, or
/// emulated on the CPU (Mesa's llvmpipe), where QPainter is faster. The environment variable KVSCOPE_OPENGL overrides
/// this: 1 accepts emulated OpenGL, 0 refuses any.
std::unique_ptr<CanvasRenderer> makeOpenGlRenderer(const TextService& text);

/// QPainter, which also paints exported figures, in other threads: several canvases are painted at the same time.
std::unique_ptr<CanvasRenderer> makeQPainterRenderer();

} // namespace kvscope
