// Whether the desktop is dark can be told from its palette only before our own palette replaces it.
#include "app/window/system_theme.h"

#include <QGuiApplication>
#include <QPalette>

namespace kvscope {

namespace {

bool& systemIsDark() {
    static bool dark = false;
    return dark;
}

} // namespace

void rememberSystemPalette() {
    const QPalette palette = QGuiApplication::palette();
    systemIsDark() = palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness();
}

ThemeId themeFor(ThemeChoice choice) {
    if (choice == ThemeChoice::System)
        return systemIsDark() ? ThemeId::Dark : ThemeId::Light;
    return choice == ThemeChoice::Dark ? ThemeId::Dark : ThemeId::Light;
}

} // namespace kvscope
