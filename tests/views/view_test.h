#pragma once

#include "app/text/qt_text_service.h"
#include "tests/support/scene_checks.h"
#include "tests/views/view_fixture.h"

#include <QObject>
#include <QSize>
#include <QStringList>

namespace kvscope {

namespace view_fixture {

/// Sentences about texts of the view's picture, on the screen and exported, that lie over each other or leave it.
inline QStringList misplacedTexts(const View& view, const ViewInput& input, const ParameterValues& options, QSize size,
                                  const TextService& text, ThemeId onScreen = ThemeId::Light,
                                  ThemeId onPaper = ThemeId::Light) {
    QStringList found;
    for (const bool forExport : {false, true}) {
        Viewport frame = viewport(size.width(), size.height(), text, forExport ? onPaper : onScreen);
        frame.forExport = forExport;
        const Scene scene = view.buildScene(input, options, frame);
        found << scene_checks::misplacedTexts(scene, text);
    }
    return found;
}

} // namespace view_fixture

/// The test of one view. Qt Test makes it when the application is there, which the fonts of its text service need.
class ViewTest : public QObject {
protected:
    explicit ViewTest(const View& view, double width = 700, double height = 420)
        : m_view(view), m_width(width), m_height(height) {}

    /// The picture in the light theme; its size is the test's own unless told.
    Scene build(const ViewInput& input, const ParameterValues& options, double width = 0, double height = 0) const {
        return m_view.buildScene(
            input, options,
            view_fixture::viewport(width > 0 ? width : m_width, height > 0 ? height : m_height, m_text));
    }

    const View& m_view;
    const QtTextService m_text;

private:
    double m_width, m_height;
};

} // namespace kvscope
