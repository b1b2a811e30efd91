// The colour tokens of the design, light and dark.
#include "views/scene/theme.h"

#include "core/base/error.h"
#include "views/scene/colour_map_tables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace kvscope {

namespace {

constexpr Colour rgb(std::uint32_t hex) {
    return {static_cast<std::uint8_t>(hex >> 16), static_cast<std::uint8_t>(hex >> 8), static_cast<std::uint8_t>(hex),
            255};
}

Theme makeLight() {
    Theme t{};
    t.id = ThemeId::Light;
    t.window = rgb(0xE9EBEE), t.panel = rgb(0xF6F7F8), t.canvas = rgb(0xFFFFFF), t.raised = rgb(0xFFFFFF);
    t.sunken = rgb(0xECEEF1), t.hover = rgb(0xE3E6EA), t.border = rgb(0xD3D7DC), t.control = rgb(0x737B86);
    t.axis = rgb(0x7A828D), t.grid = rgb(0xE8EAED);
    t.text1 = rgb(0x14181F), t.text2 = rgb(0x464E59), t.text3 = rgb(0x5F6771), t.off = rgb(0x9BA2AC);
    t.ink = rgb(0x14181F), t.paper = rgb(0xFFFFFF), t.casing = rgb(0xFFFFFF);
    t.warning = rgb(0x7A5200), t.warningGround = rgb(0xFFF3D1), t.warningLine = rgb(0xD9A400);
    t.error = rgb(0xA8201A), t.errorGround = rgb(0xFDECEA), t.errorLine = rgb(0xD8473F), t.ok = rgb(0x1B6E48);
    t.kept = rgb(0x0072B2), t.evicted = rgb(0xD55E00), t.protectedToken = rgb(0x004D2C), t.query = rgb(0x9D3965);
    t.anchor = rgb(0xF0E442), t.masked = rgb(0xE4E6EA), t.notANumber = rgb(0xB9A3C4);
    return t;
}

Theme makeDark() {
    Theme t{};
    t.id = ThemeId::Dark;
    t.window = rgb(0x090B0E), t.panel = rgb(0x15191E), t.canvas = rgb(0x0E1116), t.raised = rgb(0x232931);
    t.sunken = rgb(0x0B0E12), t.hover = rgb(0x20262E), t.border = rgb(0x2B323B), t.control = rgb(0x7F8996);
    t.axis = rgb(0x76808D), t.grid = rgb(0x1C2229);
    t.text1 = rgb(0xEDF0F4), t.text2 = rgb(0xB7BEC8), t.text3 = rgb(0x8E97A3), t.off = rgb(0x59626E);
    t.ink = rgb(0xF4F6F9), t.paper = rgb(0x0E1116), t.casing = rgb(0x0E1116);
    t.warning = rgb(0xF3C552), t.warningGround = rgb(0x2B2310), t.warningLine = rgb(0x8F6E14);
    t.error = rgb(0xFF8F86), t.errorGround = rgb(0x331816), t.errorLine = rgb(0xC24A42), t.ok = rgb(0x5FD19B);
    t.kept = rgb(0x56B4E9), t.evicted = rgb(0xE69F00), t.protectedToken = rgb(0x9CF0BF), t.query = rgb(0xB76086);
    t.anchor = rgb(0xF0E442), t.masked = rgb(0x1D232A), t.notANumber = rgb(0x6E5A7A);
    return t;
}

/// Print: the light palette on white, with the paper grid.
Theme makePaper() {
    Theme t = makeLight();
    t.id = ThemeId::Paper;
    t.window = t.panel = rgb(0xFFFFFF);
    t.grid = rgb(0xECEDEF);
    return t;
}

constexpr std::array<std::uint32_t, kCategoryColours> kLightCategories = {
    0x2D1974, 0xAC9406, 0x237FA6, 0x75590F, 0x9B80FF, 0x3B2900, 0x93215C, 0xBE4972,
    0x4858AA, 0x23A1C2, 0x95730A, 0x855CDE, 0x574106, 0x2929A4, 0xD87A7D, 0x5D0044};
constexpr std::array<std::uint32_t, kCategoryColours> kDarkCategories = {
    0x22FBAD, 0x7945B6, 0xCF5700, 0xAE86FF, 0xF8AD0D, 0x1D8C7A, 0xC3E1FF, 0x08B17B,
    0x2F6874, 0x1BD5A3, 0x9062E4, 0xBC73BB, 0xB6B4FF, 0xAB3A02, 0xEA7E10, 0xFFDC32};

std::uint32_t entryOf(std::string_view name, double t) {
    constexpr std::size_t kDigits = 6, kPitch = 7;
    const std::string_view table = colourMapTable(name);
    if (table.empty())
        throw Error(
            {"unknown colour map '" + std::string(name) + "'", "", "Choose viridis, cividis, magma, greys or rdbu"});
    const char* entry = table.data() + kPitch * static_cast<std::size_t>(std::lround(t * 255));
    std::uint32_t hex = 0;
    std::from_chars(entry, entry + kDigits, hex, 16);
    return hex;
}

std::uint8_t mix(int a, int b, double t) { return static_cast<std::uint8_t>(std::lround(a + (b - a) * t)); }

/// Blue (negative) over near-white to red (positive), piecewise linear in sRGB between five stops.
Colour divergingAt(double t) {
    constexpr std::array<std::uint32_t, 5> stops = {0x0B4F8A, 0x6BA8D4, 0xF5F5F5, 0xE58A6B, 0x9C1127};
    const double x = t * 4;
    const auto left = std::min<std::size_t>(3, static_cast<std::size_t>(x));
    const Colour a = rgb(stops[left]), b = rgb(stops[left + 1]);
    const double f = x - static_cast<double>(left);
    return {mix(a.r, b.r, f), mix(a.g, b.g, f), mix(a.b, b.b, f), 255};
}

} // namespace

const Theme& themeOf(ThemeId id) {
    static const Theme light = makeLight(), dark = makeDark(), paper = makePaper();
    return id == ThemeId::Light ? light : id == ThemeId::Dark ? dark : paper;
}

ThemeId themeByName(std::string_view name) {
    if (name == "light") return ThemeId::Light;
    if (name == "dark") return ThemeId::Dark;
    if (name == "paper") return ThemeId::Paper;
    throw Error({"unknown theme '" + std::string(name) + "'", "", "Choose light, dark or paper"});
}

Colour categoryColour(std::size_t index, ThemeId theme) {
    return rgb((theme == ThemeId::Dark ? kDarkCategories : kLightCategories)[index % kCategoryColours]);
}

Colour colourMap(std::string_view name, double t, bool inverted) {
    t = std::clamp(inverted ? 1 - t : t, 0.0, 1.0);
    if (name == "greys") { // white to black, as on paper
        const auto level = static_cast<std::uint8_t>(std::lround(255 * (1 - t)));
        return {level, level, level, 255};
    }
    return name == "rdbu" ? divergingAt(t) : rgb(entryOf(name, t));
}

Colour withAlpha(Colour colour, double alpha) {
    colour.a = static_cast<std::uint8_t>(std::lround(colour.a * std::clamp(alpha, 0.0, 1.0)));
    return colour;
}

Colour blend(Colour over, Colour under) {
    const double t = over.a / 255.0;
    return {mix(under.r, over.r, t), mix(under.g, over.g, t), mix(under.b, over.b, t), 255};
}

double luminance(Colour colour) {
    const auto linear = [](int value) {
        const double v = value / 255.0;
        return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(colour.r) + 0.7152 * linear(colour.g) + 0.0722 * linear(colour.b);
}

Colour textOn(Colour ground) {
    static const Colour dark = makeLight().ink, bright = makeDark().ink;
    const double here = luminance(ground) + 0.05;
    return here / (luminance(dark) + 0.05) > (luminance(bright) + 0.05) / here ? dark : bright;
}

} // namespace kvscope
