// Panes of one policy share the policy's colour and differ by their dash.
#include "views/common/pane_identity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace kvscope {

namespace {

constexpr std::size_t kRepetitions = 3; // four panes at most
constexpr std::array<double, kRepetitions> kAreaAlpha = {0.35, 0.6, 0.15};

const std::vector<double>& dashOf(std::size_t repetition) {
    static const std::array<std::vector<double>, kRepetitions + 1> dashes = {{{2, 2}, {6, 2}, {1, 3}, {3, 2, 1, 2}}};
    return dashes[repetition];
}

std::size_t repetitionOf(int earlier) {
    return std::min(static_cast<std::size_t>(std::max(earlier, 1)), kRepetitions) - 1;
}

} // namespace

PaneIdentity::PaneIdentity(std::string_view policyId, int earlier, ThemeId theme)
    : m_style(policyStyle(policyId, theme)), m_earlier(earlier) {
    if (earlier <= 0) return;
    const std::size_t repetition = repetitionOf(earlier);
    m_style.dash = m_style.dash == dashOf(repetition) ? dashOf(kRepetitions) : dashOf(repetition);
}

Colour PaneIdentity::areaFill() const {
    return isRepeated() ? withAlpha(m_style.colour, kAreaAlpha[repetitionOf(m_earlier)]) : m_style.colour;
}

Stroke PaneIdentity::areaOutline() const { return isRepeated() ? Stroke{m_style.colour, 1, m_style.dash} : Stroke{}; }

LegendEntry PaneIdentity::legend(std::string label) const {
    return {std::move(label), Marker::Square, areaFill(), areaOutline(), 4};
}

void PaneIdentity::drawArea(SceneBuilder& builder, const Box& box, PickId pick) const {
    builder.rectangle(box, areaFill(), areaOutline(), 0, pick);
}

void PaneIdentity::drawThinBar(SceneBuilder& builder, const Box& box) const {
    if (m_style.dash.empty()) return builder.rectangle(box, m_style.colour);
    const double y = box.y + box.height / 2;
    builder.polyline({{box.x, y}, {box.right(), y}}, {m_style.colour, box.height, m_style.dash});
}

bool PaneIdentity::railHas(double fromEdge) const {
    if (!isRepeated()) return true;
    double rest = std::fmod(fromEdge, std::accumulate(m_style.dash.begin(), m_style.dash.end(), 0.0));
    for (std::size_t i = 0; i < m_style.dash.size(); ++i) {
        if (rest < m_style.dash[i]) return i % 2 == 0;
        rest -= m_style.dash[i];
    }
    return false;
}

PaneIdentity identityOf(const ViewInput& input, char letter, std::string_view policyId, ThemeId theme) {
    const auto earlier = std::ranges::count_if(
        input.panes, [&](const PaneData& pane) { return pane.letter < letter && pane.policyId == policyId; });
    return {policyId, static_cast<int>(earlier), theme};
}

PaneIdentity identityOf(const ViewInput& input, const PaneName& pane, ThemeId theme) {
    return identityOf(input, pane.letter, pane.policyId, theme);
}

void drawBadge(SceneBuilder& builder, char letter, std::string_view policyId, Point centre, ThemeId theme,
               double size) {
    const Colour ground = policyStyle(policyId, theme).colour;
    builder.rectangle({centre.x - size / 2, centre.y - size / 2, size, size}, ground, {}, 3);
    builder.label(centre, std::string(1, letter), {FontFace::Interface, size < 14 ? 9.0 : 11.0, FontWeight::SemiBold},
                  textOn(ground), HorizontalAlign::Centre);
}

} // namespace kvscope
