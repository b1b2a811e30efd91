// Agreement of the panes in one KV head, as a matrix of Jaccard overlaps and as bars of how many panes keep a token.
#include "views/overlap/overlap_view.h"

#include "views/chart.h"
#include "views/explanations.h"
#include "views/scene/axes.h"
#include "views/scene/scene_builder.h"
#include "views/view_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

constexpr double kLargestCell = 110, kNamePitch = 22;

class OverlapView final : public View {
public:
    OverlapView()
        : View({.id = "overlap",
                .name = "Overlap",
                .summary = "What the kept lists of the panes have in common",
                .paper = "Jaccard overlap; KeyDiff Table 14 compares variants by outcome, this by list",
                .help = std::string(viewExplanation("overlap_view"))}) {}

    Scene buildScene(const ViewInput& input, const ParameterValues& options, const Viewport& viewport) const override;
    std::string finding(const ViewInput& input, const ParameterValues& options) const override;
    ViewTable table(const ViewInput& input, const ParameterValues& options) const override;
};

/// counts[c]: tokens before the cut that exactly c panes keep.
std::vector<std::int64_t> agreement(const ViewInput& input, const std::vector<const PaneData*>& panes) {
    std::vector<int> keepers(static_cast<std::size_t>(input.cut.token), 0);
    for (const PaneData* pane : panes)
        for (const TokenIndex token : keptTokens(input, *pane))
            if (static_cast<std::size_t>(token) < keepers.size())
                ++keepers[static_cast<std::size_t>(token)];
    std::vector<std::int64_t> counts(panes.size() + 1, 0);
    for (const int keeper : keepers)
        ++counts[static_cast<std::size_t>(keeper)];
    return counts;
}

void drawBadge(SceneBuilder& builder, const PaneData& pane, Point centre, ThemeId theme) {
    const Colour ground = policyStyle(pane.policyId, theme).colour;
    builder.rectangle({centre.x - 8, centre.y - 8, 16, 16}, ground, {}, 3);
    builder.text(centre, std::string(1, pane.letter), {FontFace::Interface, 11, FontWeight::SemiBold}, textOn(ground), HorizontalAlign::Centre,
                 VerticalAlign::Middle);
}

/// Returns the lower end.
double drawMatrix(SceneBuilder& builder, const ViewInput& input, const std::vector<const PaneData*>& panes, const Box& box, ThemeId themeId) {
    const Theme& theme = themeOf(themeId);
    const auto count = static_cast<double>(panes.size());
    const double head = box.height < 90 ? 18 : 22, width = std::min(kLargestCell, (box.width - head) / count);
    const double height = std::min(std::max(26.0, 0.6 * width), (box.height - head) / count);
    for (std::size_t row = 0; row < panes.size(); ++row) {
        const double y = box.y + head + height * static_cast<double>(row);
        drawBadge(builder, *panes[row], {box.x + 9, y + height / 2}, themeId);
        drawBadge(builder, *panes[row], {box.x + head + width * (static_cast<double>(row) + 0.5), box.y + 9}, themeId);
        for (std::size_t column = 0; column < panes.size(); ++column) {
            const Box cell{box.x + head + width * static_cast<double>(column) + 1, y + 1, width - 2, height - 2};
            if (row == column) {
                builder.rectangle(cell, theme.sunken);
                continue;
            }
            const double overlap = jaccard(keptTokens(input, *panes[row]), keptTokens(input, *panes[column]));
            builder.rectangle(cell, blend(withAlpha(theme.text1, 0.06 + 0.3 * overlap), theme.canvas), {}, 0,
                              {PickId::Kind::Cell, static_cast<std::int64_t>(row * panes.size() + column)});
            builder.text({cell.x + cell.width / 2, cell.y + cell.height / 2}, formatFixed(overlap, 2), {FontFace::Monospace, height > 48 ? 15.0 : 12.0}, theme.text1,
                         HorizontalAlign::Centre, VerticalAlign::Middle);
        }
    }
    return box.y + head + height * count;
}

std::string agreementWord(std::size_t keepers, std::size_t panes) {
    if (keepers == 0)
        return "none";
    if (keepers == panes)
        return panes == 2 ? "both" : fmt::format("all {}", panes);
    return keepers == 1 ? "one only" : fmt::format("{} panes", keepers);
}

/// Returns the lower end.
double drawAgreement(SceneBuilder& builder, const std::vector<std::int64_t>& counts, const Box& box, const Theme& theme) {
    const std::int64_t most = std::max<std::int64_t>(1, *std::max_element(counts.begin(), counts.end()));
    const double pitch = std::min(std::max(22.0, box.height / 12), box.height / static_cast<double>(counts.size())), label = 62, number = 48;
    const double bar = std::clamp(0.45 * pitch, 10.0, 20.0);
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const std::size_t keepers = counts.size() - 1 - i;
        const double y = box.y + pitch * (static_cast<double>(i) + 0.5);
        const double width = std::max(1.0, (box.width - label - number) * static_cast<double>(counts[keepers]) / static_cast<double>(most));
        builder.text({box.x, y}, agreementWord(keepers, counts.size() - 1), {FontFace::Interface, 12}, theme.text2, HorizontalAlign::Left, VerticalAlign::Middle);
        const Stroke outline = keepers == 0 ? Stroke{theme.text3, 1, {}} : Stroke{};
        builder.rectangle({box.x + label, y - bar / 2, width, bar}, keepers == 0 ? kTransparent : theme.text3, outline);
        builder.text({box.x + label + width + 6, y}, formatCount(counts[keepers]), {FontFace::Monospace, 11}, theme.text1, HorizontalAlign::Left,
                     VerticalAlign::Middle);
    }
    return box.y + pitch * static_cast<double>(counts.size());
}

/// Which policy each letter is, where there is room below matrix and bars.
void drawNames(SceneBuilder& builder, const std::vector<const PaneData*>& panes, const Box& box, ThemeId theme) {
    for (std::size_t i = 0; i < panes.size(); ++i) {
        const double y = box.y + kNamePitch * (static_cast<double>(i) + 0.5);
        const TextStyle style{FontFace::Interface, 12};
        drawBadge(builder, *panes[i], {box.x + 9, y}, theme);
        builder.text({box.x + 26, y}, builder.elide(paneTitle(*panes[i]), style, box.width - 26), style,
                     themeOf(theme).text2, HorizontalAlign::Left, VerticalAlign::Middle);
    }
}

Scene OverlapView::buildScene(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const {
    if (!input.capture)
        return emptyScene(kNoCapture, viewport);
    const auto panes = readyPanes(input);
    if (panes.size() < 2)
        return emptyScene(input.panes.size() < 2 ? "Overlap compares policies: add a second pane." : "Computing the first selections…", viewport);
    const Theme& theme = themeOf(viewport.theme);
    Scene scene;
    scene.width = viewport.width;
    scene.height = viewport.height;
    scene.background = theme.canvas;
    SceneBuilder builder(scene, *viewport.text);
    const TextStyle heading{FontFace::Interface, 11, FontWeight::SemiBold};
    const double foot = viewport.forExport ? 16 : 0, top = viewport.height < 120 ? 6 : 26; // the dock's title stays
    const double names = viewport.height < 260 ? 0 : 16 + kNamePitch * static_cast<double>(panes.size());
    const double cell = names > 0 ? kLargestCell : 64;
    const double matrixWidth = std::min(viewport.width * 0.5 - 20, 26 + cell * static_cast<double>(panes.size()));
    const Box matrix{14, top, matrixWidth, viewport.height - top - 6 - foot - names};
    const Box bars{matrix.right() + 28, top + 2, viewport.width - matrix.right() - 38, matrix.height - 2};
    if (top > 20) {
        builder.text({matrix.x, 12}, "Jaccard overlap of kept lists", heading, theme.text2, HorizontalAlign::Left, VerticalAlign::Middle);
        builder.text({bars.x, 12}, builder.elide("Panes that keep a token", heading, bars.width), heading, theme.text2, HorizontalAlign::Left, VerticalAlign::Middle);
    }
    const double matrixEnd = drawMatrix(builder, input, panes, matrix, viewport.theme);
    const double barsEnd = drawAgreement(builder, agreement(input, panes), bars, theme);
    if (names > 0)
        drawNames(builder, panes, {matrix.x, std::max(matrixEnd, barsEnd) + 16, viewport.width - 28, names - 16}, viewport.theme);
    drawProvenance(builder, input, viewport);
    return scene;
}

std::string OverlapView::finding(const ViewInput& input, const ParameterValues&) const {
    const auto panes = readyPanes(input);
    if (panes.size() < 2)
        return "Overlap compares policies: two panes with results are needed.";
    std::pair<std::size_t, std::size_t> closest{0, 1};
    double most = -1;
    for (std::size_t a = 0; a < panes.size(); ++a)
        for (std::size_t b = a + 1; b < panes.size(); ++b)
            if (const double overlap = jaccard(keptTokens(input, *panes[a]), keptTokens(input, *panes[b])); overlap > most) {
                most = overlap;
                closest = {a, b};
            }
    const auto counts = agreement(input, panes);
    return fmt::format("{} and {} agree most (Jaccard {}); {} of {} tokens are kept by every pane, {} by none",
                       panes[closest.first]->policyName, panes[closest.second]->policyName, formatFixed(most, 2), formatCount(counts.back()),
                       formatCount(input.cut.token), formatCount(counts.front()));
}

ViewTable OverlapView::table(const ViewInput& input, const ParameterValues&) const {
    const auto panes = readyPanes(input);
    std::vector<std::string> columns = {"pane"};
    std::vector<std::vector<std::string>> rows;
    for (const PaneData* row : panes) {
        columns.push_back(fmt::format("{} {}", row->letter, paneTitle(*row)));
        rows.push_back({columns.back()});
        for (const PaneData* column : panes)
            rows.back().push_back(fmt::format("{:.6f}", jaccard(keptTokens(input, *row), keptTokens(input, *column))));
    }
    return tableOf(std::move(columns), std::move(rows));
}

} // namespace

const View& overlapView() {
    static const OverlapView view;
    return view;
}

} // namespace kvscope
