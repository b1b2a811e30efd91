// Turns the theme into Qt's terms: colours, fonts, tinted icons, palette and style sheet.
#include "app/window/style/appearance.h"

#include "app/window/style/style_sheet.h"

#include <QApplication>
#include <QFile>
#include <QPainter>
#include <QPalette>
#include <QPixmap>
#include <QProxyStyle>
#include <QSvgRenderer>

#include <cmath>

static void registerIcons() { Q_INIT_RESOURCE(icons); }

namespace kvscope {

namespace {

Appearance& stored() {
    static Appearance value;
    return value;
}

class ChromeStyle : public QProxyStyle {
public:
    ChromeStyle() : QProxyStyle("Fusion") {}
    int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override {
        if (metric == PM_SmallIconSize || metric == PM_LineEditIconSize || metric == PM_ButtonIconSize) return px(16);
        return QProxyStyle::pixelMetric(metric, option, widget);
    }
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                  QStyleHintReturn* data) const override {
        if (hint == SH_DialogButtonBox_ButtonsHaveIcons) return 0; // the desktop's icons vanish in the dark
        return QProxyStyle::styleHint(hint, option, widget, data);
    }
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override {
        // QMainWindow re-enables the line under dock tabs whenever it reuses a tab bar.
        if (element != PE_FrameTabBarBase) QProxyStyle::drawPrimitive(element, option, painter, widget);
    }
};

QPalette paletteOf(const Theme& theme) {
    QPalette palette;
    palette.setColor(QPalette::Window, qColor(theme.panel));
    palette.setColor(QPalette::WindowText, qColor(theme.text1));
    palette.setColor(QPalette::Base, qColor(theme.canvas));
    palette.setColor(QPalette::AlternateBase, qColor(theme.panel));
    palette.setColor(QPalette::Text, qColor(theme.text1));
    palette.setColor(QPalette::PlaceholderText, qColor(theme.text3));
    palette.setColor(QPalette::Button, qColor(theme.raised));
    palette.setColor(QPalette::ButtonText, qColor(theme.text1));
    palette.setColor(QPalette::Highlight, qColor(theme.ink));
    palette.setColor(QPalette::HighlightedText, qColor(theme.paper));
    palette.setColor(QPalette::ToolTipBase, qColor(theme.raised));
    palette.setColor(QPalette::ToolTipText, qColor(theme.text1));
    palette.setColor(QPalette::Link, qColor(theme.text1));
    for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, qColor(theme.off));
    return palette;
}

QFont fontOf(const QStringList& families, double designSize, int weight) {
    QFont font;
    font.setFamilies(families);
    font.setPixelSize(px(designSize));
    font.setWeight(static_cast<QFont::Weight>(weight));
    return font;
}

QPixmap tinted(const QString& path, const QColor& colour, int size) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return {};
    QSvgRenderer renderer(file.readAll().replace("#000000", colour.name().toUtf8()));
    QPixmap pixmap(size, size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    renderer.render(&painter);
    return pixmap;
}

void addPixmaps(QIcon& icon, const QString& path, Colour colour, QIcon::Mode mode) {
    for (const int factor : {1, 2, 4}) icon.addPixmap(tinted(path, qColor(colour), 16 * factor), mode);
}

} // namespace

const Appearance& appearance() { return stored(); }

void setAppearance(const Appearance& next) {
    registerIcons();
    stored() = next;
    QApplication::setPalette(paletteOf(chrome()));
    QApplication::setFont(interfaceFont(13));
    qApp->setStyleSheet(styleSheetOf(chrome(), next.scale));
}

QStyle* makeChromeStyle() { return new ChromeStyle; }

int px(double designPixels) { return static_cast<int>(std::lround(designPixels * appearance().scale)); }

QFont interfaceFont(double designSize, int weight) { return fontOf({"Inter", "DejaVu Sans"}, designSize, weight); }

QFont numberFont(double designSize, int weight) {
    return fontOf({"Noto Sans Mono", "DejaVu Sans Mono"}, designSize, weight);
}

QIcon themedIcon(const char* name, Colour colour) {
    registerIcons();
    const QString path = QString(":/icons/%1.svg").arg(name);
    QIcon icon;
    addPixmaps(icon, path, colour, QIcon::Normal);
    addPixmaps(icon, path, chrome().off, QIcon::Disabled);
    return icon;
}

QIcon themedIcon(const char* name) { return themedIcon(name, chrome().text2); }

} // namespace kvscope
