// Turns the theme into Qt's terms: colours, fonts, tinted icons, palette and style sheet.
#include "app/window/style/appearance.h"

#include <QApplication>
#include <QFile>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <QPalette>
#include <QPixmap>
#include <QPixmapCache>
#include <QProxyStyle>
#include <QSvgRenderer>

#include <algorithm>
#include <array>
#include <cmath>

static void registerIcons() { Q_INIT_RESOURCE(icons); }

namespace kvscope {

namespace {

Appearance& stored() {
    static Appearance value;
    return value;
}

/// Letters typed in an open menu go to the entry that begins with them, unless a letter is the mnemonic of an entry;
/// the same letter again goes to the next such entry. Qt gives keys to the submenu that opened last, perhaps under the
/// pointer: if it has no current entry, the menu above it is searched first.
class TypeAhead : public QObject {
public:
    bool eventFilter(QObject* watched, QEvent* event) override {
        if (event->type() == QEvent::Hide) m_typed.clear();
        if (event->type() != QEvent::KeyPress) return false;
        auto* menu = static_cast<QMenu*>(watched);
        const auto& key = static_cast<const QKeyEvent&>(*event);
        const QString text = key.text();
        if (text.isEmpty() || !text[0].isPrint() || text == " " || (key.modifiers() & ~Qt::ShiftModifier)) return false;
        for (const QAction* action : menu->actions())
            if (QKeySequence::mnemonic(action->text()) == QKeySequence(Qt::ALT | Qt::Key(key.key()))) return false;
        if (key.timestamp() > m_at + kForgotten) m_typed.clear();
        m_at = key.timestamp();
        std::array menus{menu, menuAbove(*menu)};
        if (!menu->activeAction()) std::ranges::reverse(menus);
        for (const QString& typed : {m_typed + text, text})
            for (QMenu* one : menus)
                if (QAction* found = one ? entryOf(*one, typed) : nullptr) {
                    one->setActiveAction(found);
                    m_typed = typed;
                    return true;
                }
        return false;
    }

private:
    static constexpr quint64 kForgotten = 2000; ///< ms without a key

    static QMenu* menuAbove(const QMenu& menu) {
        for (QObject* above : menu.menuAction()->associatedObjects())
            if (auto* found = qobject_cast<QMenu*>(above)) return found;
        return nullptr;
    }
    QAction* entryOf(const QMenu& menu, const QString& typed) const {
        QList<QAction*> entries = menu.actions();
        const auto next = entries.begin() + entries.indexOf(menu.activeAction()) + 1;
        if (typed == m_typed) std::rotate(entries.begin(), next, entries.end());
        for (QAction* action : entries)
            if (action->isEnabled() && action->isVisible() &&
                action->text().remove('&').startsWith(typed, Qt::CaseInsensitive))
                return action;
        return nullptr;
    }

    QString m_typed;
    quint64 m_at = 0;
};

class ChromeStyle : public QProxyStyle {
public:
    using QProxyStyle::polish;
    void polish(QWidget* widget) override {
        QProxyStyle::polish(widget);
        if (qobject_cast<QMenu*>(widget)) widget->installEventFilter(&m_typeAhead);
    }
    ChromeStyle() : QProxyStyle("Fusion") {}
    int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override {
        if (metric == PM_SmallIconSize || metric == PM_LineEditIconSize || metric == PM_ButtonIconSize) return px(16);
        return QProxyStyle::pixelMetric(metric, option, widget);
    }
    int styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                  QStyleHintReturn* data) const override {
        if (hint == SH_DialogButtonBox_ButtonsHaveIcons) return 0; // the desktop's icons are invisible on dark
        return QProxyStyle::styleHint(hint, option, widget, data);
    }
    void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                       const QWidget* widget) const override {
        // QMainWindow re-enables the line under dock tabs whenever it reuses a tab bar.
        if (element != PE_FrameTabBarBase) QProxyStyle::drawPrimitive(element, option, painter, widget);
    }

private:
    TypeAhead m_typeAhead;
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

/// Taken from QPixmapCache if it is there: hundreds of buttons share a few icons.
QPixmap tinted(const QString& path, const QColor& colour, int size) {
    const QString key = QString("%1 %2 %3").arg(path, colour.name()).arg(size);
    if (QPixmap drawn; QPixmapCache::find(key, &drawn)) return drawn;
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return {};
    QSvgRenderer renderer(file.readAll().replace("#000000", colour.name().toUtf8()));
    QPixmap pixmap(size, size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    renderer.render(&painter);
    painter.end();
    pixmap = pixmap.copy(); // a painted pixmap keeps the painter's buffers, some 30 KiB; its copy has none
    QPixmapCache::insert(key, pixmap);
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
