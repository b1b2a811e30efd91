// Colours of policies. A policy needs no colour of its own: those without a line here share the spare ones.
#include "views/common/policy_style.h"

#include "core/policies/policy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace kvscope {

namespace {

struct Chosen {
    std::string_view policy;
    std::uint32_t light, dark;
    Marker marker;
    std::array<double, 4> dash; ///< zero-terminated
};

constexpr std::array<double, 4> kSolid{}, kDashed{5, 2.5}, kDotted{1, 2.5}, kDashDot{6, 2, 1, 2};

// The colours of six families are as far apart as four kinds of vision allow; the other colours fill the room left
// (smallest distance 6.5 light, 7.4 dark). Policies of one family share a marker.
constexpr Chosen kChosen[] = {
    {"keydiff", 0x036569, 0x26F7E4, Marker::Circle, kSolid},
    {"key_norm", 0x009DBE, 0x60D5E3, Marker::Circle, kDashed},
    {"snapkv", 0x5D5004, 0x9A9802, Marker::Square, kSolid},
    {"pyramidkv", 0x687F22, 0xB5E245, Marker::Square, kDashed},
    {"compactor", 0x8C50C6, 0xA34AA9, Marker::Diamond, kSolid},
    {"leverage", 0x5B33B3, 0xBD6CC6, Marker::Diamond, kDashed},
    {"balancekv", 0xC97393, 0xEA81A7, Marker::TriangleUp, kSolid},
    {"balancekv_stream", 0x6F0000, 0xC92B00, Marker::TriangleUp, kDashed},
    {"subgen", 0x669C15, 0x607A58, Marker::TriangleDown, kSolid},
    {"subgen_kcenter", 0x078D62, 0x6CC948, Marker::TriangleDown, kDashed},
    {"h2o", 0x391D96, 0xB1A8FE, Marker::Hexagon, kSolid},
    {"tova", 0xA975FF, 0x8C7EFF, Marker::Hexagon, kDashed},
    {"streaming_llm", 0x825A3E, 0xF2DB9F, Marker::Cross, kDashDot},
    {"uniform", 0x2F3231, 0x6C5C6A, Marker::Plus, kDotted},
    {"score", 0x4E0062, 0x6C2DFC, Marker::Star, kSolid},
    {"imported", 0x3A4848, 0xD6BBA1, Marker::Star, kDashed},
    {"exact", 0x14181F, 0xF4F6F9, Marker::Circle, kSolid},
};

// Colours between these, found by a search under the same rules.
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, kSpareColours> kSpare = {
    {{0x1827F3, 0x00A572}, {0xF948CF, 0x007515}}};
constexpr std::array kSpareMarkers = {Marker::Diamond, Marker::Plus, Marker::Cross};
constexpr std::array kSpareDashes = {kDotted, kDashDot, kDashed, kSolid};

PolicyStyle styleOf(std::uint32_t light, std::uint32_t dark, Marker marker, const std::array<double, 4>& dash,
                    ThemeId theme) {
    const std::uint32_t hex = theme == ThemeId::Dark ? dark : light;
    const auto channel = [&](int shift) { return static_cast<std::uint8_t>(hex >> shift); };
    PolicyStyle style{{channel(16), channel(8), channel(0), 255}, marker, {}};
    std::ranges::copy_if(dash, std::back_inserter(style.dash), [](double length) { return length > 0; });
    return style;
}

const Chosen* chosenFor(std::string_view policyId) {
    const auto found = std::ranges::find(kChosen, policyId, &Chosen::policy);
    return found == std::end(kChosen) ? nullptr : found;
}

} // namespace

PolicyStyle spareStyle(std::size_t index, ThemeId theme) {
    const auto [light, dark] = kSpare[index % kSpare.size()];
    const std::size_t round = index / kSpare.size();
    return styleOf(light, dark, kSpareMarkers[round % kSpareMarkers.size()],
                   kSpareDashes[round / kSpareMarkers.size() % kSpareDashes.size()], theme);
}

PolicyStyle policyStyle(std::string_view policyId, ThemeId theme) {
    if (const Chosen* chosen = chosenFor(policyId))
        return styleOf(chosen->light, chosen->dark, chosen->marker, chosen->dash, theme);
    std::size_t spare = 0;
    for (const Policy* policy : allPolicies()) {
        if (policy->card().id == policyId) return spareStyle(spare, theme);
        spare += chosenFor(policy->card().id) == nullptr;
    }
    return {themeOf(theme).text3, Marker::Diamond, {2, 2}};
}

} // namespace kvscope
