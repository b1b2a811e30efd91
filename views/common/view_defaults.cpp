// What every view answers in the same way: why there is no picture, and what a colour column shows at the pointer.
// Also the warning that a capture failed its self-check.
#include "core/run/head_means.h"
#include "views/common/colour_scale.h"
#include "views/common/view_facts.h"
#include "views/explanations.h"

#include <fmt/format.h>

namespace kvscope {

namespace {

void drawWarning(Scene& scene, const std::string& warning, const Viewport& viewport) {
    SceneBuilder builder(scene, *viewport.text);
    const Theme& theme = themeOf(viewport.theme);
    const TextStyle style{FontFace::Interface, 10, FontWeight::SemiBold};
    const std::string text = builder.elide(asSentence(warning), style, viewport.width - 16);
    const double width = builder.width(text, style) + 8;
    builder.rectangle({viewport.width - width - 4, 2, width, 16}, theme.warningGround, {theme.warningLine, 1, {}}, 2);
    builder.text({viewport.width - 8, 10}, text, style, theme.warning, HorizontalAlign::Right, VerticalAlign::Middle);
}

} // namespace

View::View(ViewCard card, ParameterTable options) : m_card(std::move(card)) {
    m_card.help = viewExplanation(m_card.id + "_view");
    m_card.options = std::make_shared<const ParameterTable>(std::move(options));
}

std::string View::whyNoPicture(const ViewInput& input, const ParameterValues&) const {
    if (m_card.needsPane && input.capture && input.panes.empty()) return kNoPane;
    return whyNoData(input, m_card.waiting);
}

// Every picture, on screen and on paper, says so if the capture failed its self-check.
Scene View::buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const {
    const std::string why = whyNoPicture(input, options);
    Scene scene = why.empty() ? draw(input, options, viewport) : emptyScene(why, viewport);
    if (input.capture)
        if (const std::string warning = input.capture->info().checkWarning(); !warning.empty())
            drawWarning(scene, warning, viewport);
    return scene;
}

std::string View::finding(const ViewInput& input, const ParameterValues& options) const {
    if (const std::string why = whyNoPicture(input, options); !why.empty()) return why;
    std::string finding = conclude(input, options);
    // Beside a view that shows steps, what policies keep in the end must not look like the step.
    const bool isOfResults = m_card.group == ViewGroup::Kept || m_card.data.empty();
    if (input.cursor && isOfResults && stepSequence(input, options).events.empty())
        finding = "After the last step: " + finding;
    for (const PaneData& pane : input.panes)
        if (pane.result && balancedNothing(*pane.result) && finding.find("nothing was balanced") == std::string::npos)
            finding += fmt::format(" · {} balanced nothing: its sinks and recents take the whole budget",
                                   input.panes.size() > 1 ? std::string(1, pane.letter) : pane.policyName);
    return finding;
}

PointFacts View::factsAt(const ViewInput& input, const ParameterValues& options, const Scene& scene, Point at) const {
    if (!whyNoPicture(input, options).empty()) return {};
    if (pickAt(scene, at, 0) == kColourColumn)
        if (const auto scale = colourScale(input, options)) return rangeFacts(*scale, scene, at);
    return inspect(input, options, scene, at);
}

std::unique_ptr<const ColourScale> View::colourScale(const ViewInput&, const ParameterValues&) const { return nullptr; }

std::optional<ValueRange> View::valueRange(const ViewInput& input, const ParameterValues& options) const {
    const auto scale = colourScale(input, options);
    if (!scale) return std::nullopt;
    ValueRange range = scale->range();
    if (const auto only = scale->onlyValue()) range.low = range.high = only;
    return range;
}

} // namespace kvscope
