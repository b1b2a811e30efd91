#pragma once

#include "views/scene/text_service.h"

#include <QByteArray>
#include <QFont>

namespace kvscope {

/// A font file that travels inside the program, as the resource ":/fonts/FILE".
struct BundledFont {
    const char *file, *family;
    int weight;
    bool italic;
};

/// The font that draws a style; characters that it lacks come from fontOfSigns().
const BundledFont& bundledFontOf(const TextStyle& style);
const BundledFont& fontOfSigns();
/// The file's content.
QByteArray contentOf(const BundledFont& font);

/// The font of a style at `scale` device pixels per logical pixel; the bundled faces are registered on first use.
QFont fontOf(const TextStyle& style, double scale = 1);

/// Text measured and rasterised by Qt, in any thread. Needs a QGuiApplication (any platform).
TextExtent extentOf(std::string_view utf8, const TextStyle& style);
TextBitmap rasterisedText(std::string_view utf8, const TextStyle& style, double scale);

/// The same for layouts and painters; to be used on the GUI thread.
/// Measurements of runs are kept, since a strip asks for the same words in every frame.
class QtTextService final : public TextService {
public:
    QtTextService();
    ~QtTextService() override;
    TextExtent measure(std::string_view utf8, const TextStyle& style) const override;
    TextBitmap rasterise(std::string_view utf8, const TextStyle& style, double scale) const override;

private:
    struct Cache;
    std::unique_ptr<Cache> m_cache;
};

} // namespace kvscope
