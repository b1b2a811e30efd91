// Measures and rasterises runs of text with Qt and the bundled fonts. Hinting is off, because hinted widths change with
// the size and would make screen and paper differ.
#include "app/text/qt_text_service.h"

#include <QFile>
#include <QFontDatabase>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QHash>
#include <QImage>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <string>

// Q_INIT_RESOURCE declares a global function, so it cannot be called from inside a namespace.
static void initFontResources() { Q_INIT_RESOURCE(fonts); }

namespace kvscope {

namespace {

constexpr BundledFont kInter[] = {{"Inter-Regular.otf", "Inter", 400, false},
                                  {"Inter-Medium.otf", "Inter", 500, false},
                                  {"Inter-SemiBold.otf", "Inter", 600, false},
                                  {"Inter-Bold.otf", "Inter", 700, false}};
constexpr BundledFont kItalic{"Inter-Italic.otf", "Inter", 400, true};
constexpr BundledFont kMono[] = {{"NotoSansMono-Regular.ttf", "Noto Sans Mono", 400, false},
                                 {"NotoSansMono-Bold.ttf", "Noto Sans Mono", 700, false}};
constexpr BundledFont kSigns{"DejaVuSans.ttf", "DejaVu Sans", 400, false};

QString resourceOf(const BundledFont& font) {
    initFontResources();
    return QString(":/fonts/") + font.file;
}

void registerFonts() {
    static const bool done = [] {
        const auto add = [](const BundledFont& font) { QFontDatabase::addApplicationFont(resourceOf(font)); };
        std::ranges::for_each(kInter, add);
        add(kItalic);
        std::ranges::for_each(kMono, add);
        add(kSigns);
        return true;
    }();
    (void)done;
}

QString textOf(std::string_view utf8) { return QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size())); }

std::size_t keyOf(std::string_view utf8, const TextStyle& style) {
    const std::size_t parts = static_cast<std::size_t>(style.size * 64) * 8 + static_cast<std::size_t>(style.face) * 4 +
                              static_cast<std::size_t>(style.italic) + static_cast<std::size_t>(style.weight) * 1048576;
    return qHashMulti(parts, QByteArrayView(utf8.data(), static_cast<qsizetype>(utf8.size())));
}

} // namespace

const BundledFont& bundledFontOf(const TextStyle& style) {
    const int weight = static_cast<int>(style.weight);
    if (style.face == FontFace::Monospace) return kMono[weight >= 600 ? 1 : 0]; // comes in two weights only
    return style.italic ? kItalic : kInter[std::clamp((weight - 400) / 100, 0, 3)];
}

const BundledFont& fontOfSigns() { return kSigns; }

QByteArray contentOf(const BundledFont& font) {
    QFile file(resourceOf(font));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QFont fontOf(const TextStyle& style, double scale) {
    registerFonts();
    const bool mono = style.face == FontFace::Monospace;
    QFont font;
    font.setFamilies(mono ? QStringList{"Noto Sans Mono", "DejaVu Sans", "Inter"}
                          : QStringList{"Inter", "DejaVu Sans"});
    font.setWeight(static_cast<QFont::Weight>(mono ? bundledFontOf(style).weight : static_cast<int>(style.weight)));
    font.setItalic(style.italic);
    // Pixel sizes are whole numbers in Qt; callers that draw at other sizes scale by the rest.
    font.setPixelSize(std::max(1, static_cast<int>(std::lround(style.size * scale))));
    font.setHintingPreference(QFont::PreferNoHinting);
    font.setStyleStrategy(QFont::PreferAntialias);
    return font;
}

TextExtent extentOf(std::string_view utf8, const TextStyle& style) {
    const QFontMetricsF metrics(fontOf(style));
    return {metrics.horizontalAdvance(textOf(utf8)), metrics.ascent(), metrics.descent()};
}

struct QtTextService::Cache {
    struct Entry {
        std::string text;
        TextStyle style;
        TextExtent extent;
    };
    QHash<std::size_t, Entry> extents;
};

QtTextService::QtTextService() : m_cache(std::make_unique<Cache>()) {
    if (qGuiApp) registerFonts(); // widgets are measured before the first text of a scene
}
QtTextService::~QtTextService() = default;

TextExtent QtTextService::measure(std::string_view utf8, const TextStyle& style) const {
    constexpr qsizetype kMostEntries = 200'000;
    const std::size_t key = keyOf(utf8, style);
    if (const auto found = m_cache->extents.constFind(key);
        found != m_cache->extents.constEnd() && found->text == utf8 && found->style == style)
        return found->extent;
    const TextExtent extent = extentOf(utf8, style);
    if (m_cache->extents.size() >= kMostEntries) m_cache->extents.clear();
    m_cache->extents.insert(key, {std::string(utf8), style, extent});
    return extent;
}

TextBitmap rasterisedText(std::string_view utf8, const TextStyle& style, double scale) {
    const QString text = textOf(utf8);
    const QFont font = fontOf(style, scale);
    const QFontMetricsF metrics(font);
    const double rest = style.size * scale / font.pixelSize(); // what whole pixels leave: 13 at 1.5 is 19.5, not 20
    const QRectF whole = metrics.boundingRect(text).united(metrics.tightBoundingRect(text));
    const QRectF ink(whole.topLeft() * rest, whole.size() * rest);
    const int left = static_cast<int>(std::floor(ink.left())) - 1, top = static_cast<int>(std::floor(ink.top())) - 1;
    TextBitmap bitmap;
    bitmap.width = static_cast<int>(std::ceil(ink.right())) + 1 - left;
    bitmap.height = static_cast<int>(std::ceil(ink.bottom())) + 1 - top;
    bitmap.left = left / scale;
    bitmap.top = top / scale;
    QImage image(bitmap.width, bitmap.height, QImage::Format_ARGB32_Premultiplied);
    if (image.isNull()) return {}; // a platform without fonts may measure nonsense
    image.fill(Qt::transparent);
    QPainter painter(&image);
    painter.setFont(font);
    painter.setPen(Qt::white);
    painter.translate(-left, -top);
    painter.scale(rest, rest);
    painter.drawText(QPointF(), text);
    painter.end();
    // White text leaves equal channels; a colour glyph does not, and then its own pixels are kept.
    bool coloured = false;
    bitmap.coverage.reserve(static_cast<std::size_t>(bitmap.width) * static_cast<std::size_t>(bitmap.height));
    for (int y = 0; y < bitmap.height; ++y)
        for (int x = 0; x < bitmap.width; ++x) {
            const QRgb pixel = image.pixel(x, y);
            bitmap.coverage.push_back(static_cast<std::uint8_t>(qAlpha(pixel)));
            coloured |= qRed(pixel) < 250 && qAlpha(pixel) > 250;
        }
    if (coloured) {
        const QImage straight = image.convertToFormat(QImage::Format_RGBA8888);
        for (int y = 0; y < bitmap.height; ++y) {
            const auto* row = reinterpret_cast<const std::uint32_t*>(straight.constScanLine(y));
            bitmap.colourPixels.insert(bitmap.colourPixels.end(), row, row + bitmap.width);
        }
    }
    return bitmap;
}

TextBitmap QtTextService::rasterise(std::string_view utf8, const TextStyle& style, double scale) const {
    return rasterisedText(utf8, style, scale);
}

} // namespace kvscope
