// HarfBuzz subsets the fonts. The features that shape texts (kerning, ligatures, marks) stay in them, since browsers
// must set texts as the program does.
#include "app/export/embedded_fonts.h"

#include "app/text/qt_text_service.h"

#include <QList>
#include <QString>

#include <fmt/format.h>
#include <hb-subset.h>

#include <cassert>
#include <memory>
#include <mutex>

namespace kvscope {

namespace {

constexpr const char* kSignsFamily = "KVScope signs"; // no system has a font of this name

template <auto destroy> struct Destroy {
    void operator()(auto* object) const { destroy(object); }
};
using Face = std::unique_ptr<hb_face_t, Destroy<hb_face_destroy>>;
using Set = std::unique_ptr<hb_set_t, Destroy<hb_set_destroy>>;
using Blob = std::unique_ptr<hb_blob_t, Destroy<hb_blob_destroy>>;
using SubsetInput = std::unique_ptr<hb_subset_input_t, Destroy<hb_subset_input_destroy>>;

/// A bundled font as HarfBuzz reads it.
struct ReadFont {
    const BundledFont* font;
    Face face;
    Set characters{hb_set_create()};

    explicit ReadFont(const BundledFont& bundled) : font(&bundled) {
        const QByteArray file = contentOf(bundled);
        const Blob blob(hb_blob_create(file.constData(), static_cast<unsigned>(file.size()), HB_MEMORY_MODE_DUPLICATE,
                                       nullptr, nullptr));
        face.reset(hb_face_create(blob.get(), 0));
        hb_face_collect_unicodes(face.get(), characters.get());
    }
    bool has(char32_t character) const { return hb_set_has(characters.get(), character) != 0; }
};

/// The fonts by file, kept from their first use on, so that a report reads each font once. References to them stay
/// valid. Reports and figures are written on several threads.
std::mutex g_readFontsMutex;
std::map<std::string, ReadFont> g_readFonts;

const ReadFont& read(const BundledFont& font) {
    const std::lock_guard lock(g_readFontsMutex);
    return g_readFonts.try_emplace(font.file, font).first->second;
}

const ReadFont& readAlready(const std::string& file) {
    const std::lock_guard lock(g_readFontsMutex);
    return g_readFonts.at(file);
}

std::string subsetOf(hb_face_t* face, const std::set<char32_t>& characters) {
    const SubsetInput input(hb_subset_input_create_or_fail());
    for (const char32_t character : characters) hb_set_add(hb_subset_input_unicode_set(input.get()), character);
    hb_set_t* features = hb_subset_input_set(input.get(), HB_SUBSET_SETS_LAYOUT_FEATURE_TAG);
    hb_set_clear(features); // the defaults include fractions and the like, which add glyphs for all digits
    for (const char* tag :
         {"calt", "ccmp", "clig", "fina", "init", "isol", "kern", "liga", "locl", "mark", "medi", "mkmk", "rlig"})
        hb_set_add(features, hb_tag_from_string(tag, 4));
    hb_set_t* names = hb_subset_input_set(input.get(), HB_SUBSET_SETS_NAME_ID);
    hb_set_clear(names);
    for (const unsigned name : {0, 1, 2, 6, 13, 14}) // copyright, names, licence and its address
        hb_set_add(names, name);
    const Face subset(hb_subset_or_fail(face, input.get()));
    assert(subset); // the bundled fonts are intact
    const Blob blob(hb_face_reference_blob(subset.get()));
    unsigned length = 0;
    const char* data = hb_blob_get_data(blob.get(), &length);
    return QByteArray::fromRawData(data, static_cast<qsizetype>(length)).toBase64().toStdString();
}

} // namespace

bool EmbeddedFonts::add(const TextStyle& style, std::string_view utf8) {
    const ReadFont &own = read(bundledFontOf(style)), &signs = read(fontOfSigns());
    const QList<uint> text = QString::fromUtf8(utf8.data(), static_cast<qsizetype>(utf8.size())).toUcs4();
    bool hasAll = true;
    for (const char32_t c : text) {
        const bool isOwn = own.has(c);
        if (isOwn || signs.has(c))
            m_characters[(isOwn ? own : signs).font->file].insert(c);
        else
            hasAll = hasAll && QChar::category(c) == QChar::Other_Format; // joiners and the like have no glyph
    }
    return hasAll;
}

std::string EmbeddedFonts::css() const {
    if (m_characters.empty()) return {};
    std::string css = "/* Parts of Inter and Noto Sans Mono (SIL Open Font License 1.1) and of DejaVu Sans (Bitstream "
                      "Vera licence), so that texts look the same everywhere. */\n";
    for (const auto& [file, characters] : m_characters) {
        const ReadFont& read = readAlready(file);
        const bool isSigns = read.font == &fontOfSigns();
        css += fmt::format(
            "@font-face{{font-family:{};font-weight:{};font-style:{};src:url(data:font/{};base64,{})}}\n",
            isSigns ? kSignsFamily : read.font->family, isSigns ? "100 900" : std::to_string(read.font->weight),
            read.font->italic ? "italic" : "normal", file.substr(file.size() - 3),
            subsetOf(read.face.get(), characters));
    }
    return css;
}

const char* cssFamilies(FontFace face) {
    return face == FontFace::Monospace ? "Noto Sans Mono, KVScope signs, Menlo, Consolas, monospace"
                                       : "Inter, KVScope signs, Helvetica, Arial, sans-serif";
}

} // namespace kvscope
