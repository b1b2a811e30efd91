// Text as textures of a real OpenGL context: a sentence longer than a page is drawn to its last letter.
#include <QtTest>

#include "core/metrics/measure_values.h"
#include "tests/support/test_program.h"
#include "views/imgui/texture_pages.h"

#include "app/text/qt_text_service.h"

#include <QOffscreenSurface>
#include <QOpenGLContext>
#include <QOpenGLFunctions>

#include <vector>

using namespace kvscope;

namespace {

/// Device pixels between a run's last column with ink and the right edge of its patch.
int blankAtEnd(const TexturePatch& patch) {
    glBindTexture(GL_TEXTURE_2D, patch.texture);
    GLint width = 0, height = 0;
    glGetTexLevelParameteriv(GL_TEXTURE_2D, 0, GL_TEXTURE_WIDTH, &width);
    glGetTexLevelParameteriv(GL_TEXTURE_2D, 0, GL_TEXTURE_HEIGHT, &height);
    std::vector<unsigned char> rgba(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4);
    glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, rgba.data());
    const auto x = [&](float u) { return static_cast<int>(u * static_cast<float>(width) + 0.5F); };
    const auto y = [&](float v) { return static_cast<int>(v * static_cast<float>(height) + 0.5F); };
    for (int column = x(patch.u1) - 1; column >= x(patch.u0); --column)
        for (int row = y(patch.v0); row < y(patch.v1); ++row)
            if (rgba[static_cast<std::size_t>(row * width + column) * 4 + 3] > 0) return x(patch.u1) - 1 - column;
    return x(patch.u1) - x(patch.u0);
}

} // namespace

class TexturePagesTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        m_surface.create();
        QVERIFY(m_context.create() && m_context.makeCurrent(&m_surface));
    }

    void longSentencesKeepTheirEnds() {
        QtTextService text;
        TexturePages pages(text);
        const TextStyle style{FontFace::Interface, 13};
        std::string sentence;
        for (int words = 0; words < 60; ++words) sentence += "balance ";
        sentence += "Z";
        std::vector<TexturePatch> patches;
        // Short runs before and after: the page of a long one takes nothing from theirs.
        for (const std::string& run : {std::string("before"), sentence, std::string("after"), sentence + "Z"})
            patches.push_back(pages.text(run, style, 2));
        QVERIFY2(patches[1].width > 1100, "the sentence would fit a page");
        QVERIFY(patches[0].texture == patches[2].texture && patches[0].texture != patches[1].texture);
        for (const TexturePatch& patch : patches)
            QVERIFY2(blankAtEnd(patch) <= 3,
                     qPrintable(QString("%1 blank pixels at the end of %2").arg(blankAtEnd(patch)).arg(patch.width)));
        QVERIFY(std::abs(patches[1].width - text.measure(sentence, style).width) < 6);
        QVERIFY(patches[3].width > patches[1].width + 4);
    }

private:
    QOffscreenSurface m_surface;
    QOpenGLContext m_context;
};

KVSCOPE_WINDOW_TEST(TexturePagesTest)
#include "texture_pages_test.moc"
