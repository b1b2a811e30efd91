#pragma once

#include "views/scene/theme.h"

#include <QColor>
#include <QFont>
#include <QIcon>
#include <QString>

class QStyle;

namespace kvscope {

/// How the program's chrome looks: one value for the whole process, like QApplication's palette and font.
struct Appearance {
    ThemeId theme = ThemeId::Light;
    double scale = 1;
    bool compact = false;
    friend bool operator==(const Appearance&, const Appearance&) = default;
};

const Appearance& appearance();
/// Sets palette, font and style sheet of the application. Painted widgets repaint; sizes made with px() are computed
/// when a widget is built, so the window rebuilds its chrome after a change of scale.
void setAppearance(const Appearance& next);

/// Fusion with sizes that style sheets cannot set, at the interface scale.
QStyle* makeChromeStyle();

inline QColor qColor(Colour colour) { return {colour.r, colour.g, colour.b, colour.a}; }
inline const Theme& chrome() { return themeOf(appearance().theme); }
/// Logical pixels of the design at the interface scale.
int px(double designPixels);

QFont interfaceFont(double designSize, int weight = QFont::Normal);
QFont numberFont(double designSize, int weight = QFont::Normal); ///< monospaced: numbers never jump

/// An icon of resources/icons in a colour of the theme.
QIcon themedIcon(const char* name, Colour colour);
QIcon themedIcon(const char* name); ///< in text2, greyed when disabled

QString styleSheetOf(const Theme& theme, double scale);

} // namespace kvscope
