// Agreement of the panes in one KV head, as a matrix of Jaccard overlaps and as bars of how many panes keep a token.
#include "core/metrics/fidelity.h"
#include "views/common/chart.h"
#include "views/common/pane_identity.h"
#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

constexpr double kLargestCell = 110, kNamePitch = 22, kNameGap = 18, kHeading = 16;
constexpr double kNarrow = 330; ///< below this width, or with too narrow cells, the bars stand under the matrix
constexpr double kLeastBar = 13, kLeastCell = 16, kLeastCellWidth = 29; ///< heights of a row; of a cell with its number
const TextStyle kHeadingStyle{FontFace::Interface, 11, FontWeight::SemiBold}, kNameStyle{FontFace::Interface, 12};

/// counts[c]: tokens before the cut that exactly c panes keep.
std::vector<std::int64_t> agreement(const ViewInput& input, const std::vector<const PaneData*>& panes) {
    std::vector<std::uint8_t> keepCounts(static_cast<std::size_t>(input.cut.token), 0);
    std::vector<std::int64_t> counts(panes.size() + 1, 0);
    counts.front() = std::ssize(keepCounts);
    for (const PaneData* pane : panes)
        for (const TokenIndex token : keptTokens(input, *pane)) {
            if (static_cast<std::size_t>(token) >= keepCounts.size()) continue;
            const std::size_t keepCount = keepCounts[token]++;
            --counts[keepCount];
            ++counts[keepCount + 1];
        }
    return counts;
}

/// The overlap in a cell, as large as it fits; nothing where it would be wider than the cell.
void drawNumber(SceneBuilder& builder, const Box& cell, double overlap, const Theme& theme) {
    const std::string text = formatFixed(overlap, 2);
    for (const double size : {15.0, 12.0, 10.0}) {
        const TextStyle style{FontFace::Monospace, size};
        if ((size > 12 && cell.height <= 46) || cell.height < size || builder.width(text, style) > cell.width - 2)
            continue;
        builder.label(cell.centre(), text, style, theme.text1, HorizontalAlign::Centre);
        return;
    }
}

/// Returns the lower end.
double drawMatrix(SceneBuilder& builder, const ViewInput& input, const std::vector<const PaneData*>& panes,
                  const Box& box, ThemeId themeId) {
    const Theme& theme = themeOf(themeId);
    const auto count = static_cast<double>(panes.size());
    const double head = box.height < 90 ? 18 : 22, width = std::min(kLargestCell, (box.width - head) / count);
    const double height = std::min(std::max(26.0, 0.6 * width), (box.height - head) / count);
    const double badge = std::clamp(height - 1, 8.0, 16.0);
    std::vector<double> overlaps; // of each row with those above it: the matrix is symmetric
    for (std::size_t row = 0; row < panes.size(); ++row)
        for (std::size_t above = 0; above < row; ++above)
            overlaps.push_back(jaccard(keptTokens(input, *panes[row]), keptTokens(input, *panes[above])));
    for (std::size_t row = 0; row < panes.size(); ++row) {
        const double y = box.y + head + height * static_cast<double>(row);
        const PaneData& pane = *panes[row];
        drawBadge(builder, pane.letter, pane.policyId, {box.x + 9, y + height / 2}, themeId, badge);
        drawBadge(builder, pane.letter, pane.policyId,
                  {box.x + head + width * (static_cast<double>(row) + 0.5), box.y + 9}, themeId,
                  std::min(16.0, width - 1));
        for (std::size_t column = 0; column < panes.size(); ++column) {
            const Box cell{box.x + head + width * static_cast<double>(column) + 1, y + 1, width - 2, height - 2};
            if (row == column) {
                builder.rectangle(cell, theme.sunken);
                continue;
            }
            const auto [above, below] = std::minmax({row, column});
            const double overlap = overlaps[below * (below - 1) / 2 + above];
            builder.rectangle(cell, blend(withAlpha(theme.text1, 0.06 + 0.3 * overlap), theme.canvas), {}, 0,
                              {PickId::Kind::Cell, static_cast<std::int64_t>(row * panes.size() + column)});
            drawNumber(builder, cell, overlap, theme);
        }
    }
    return box.y + head + height * count;
}

std::string agreementWord(std::size_t keepCount, std::size_t panes) {
    if (keepCount == 0) return "none";
    if (keepCount == panes) return panes == 2 ? "both" : fmt::format("all {}", panes);
    return keepCount == 1 ? "one only" : fmt::format("{} panes", keepCount);
}

/// Returns the lower end.
double drawAgreement(SceneBuilder& builder, const std::vector<std::int64_t>& counts, const Box& box,
                     const Theme& theme) {
    const std::int64_t most = std::max<std::int64_t>(1, *std::ranges::max_element(counts));
    const double pitch = std::min(std::max(22.0, box.height / 12), box.height / static_cast<double>(counts.size()));
    const double bar = std::clamp(0.45 * pitch, 8.0, 20.0);
    const TextStyle words{FontFace::Interface, pitch < 16 ? 11.0 : 12.0},
        numbers{FontFace::Monospace, pitch < 16 ? 10.0 : 11.0};
    double label = 0, number = 0;
    for (std::size_t keepCount = 0; keepCount < counts.size(); ++keepCount) {
        label = std::max(label, builder.width(agreementWord(keepCount, counts.size() - 1), words) + 10);
        number = std::max(number, builder.width(formatCount(counts[keepCount]), numbers) + 8);
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const std::size_t keepCount = counts.size() - 1 - i;
        const double y = box.y + pitch * (static_cast<double>(i) + 0.5);
        const double width = std::max(1.0, (box.width - label - number) * static_cast<double>(counts[keepCount]) /
                                               static_cast<double>(most));
        builder.label({box.x, y}, agreementWord(keepCount, counts.size() - 1), words, theme.text2);
        const Stroke outline = keepCount == 0 ? Stroke{theme.text3, 1, {}} : Stroke{};
        builder.rectangle({box.x + label, y - bar / 2, width, bar}, keepCount == 0 ? kTransparent : theme.text3,
                          outline);
        builder.label({box.x + label + width + 6, y}, formatCount(counts[keepCount]), numbers, theme.text1);
    }
    return box.y + pitch * static_cast<double>(counts.size());
}

/// Names the policy of each letter, from left to right in as many rows as needed. Returns the height; without `draw`
/// the names are only measured.
double nameRows(SceneBuilder& builder, const std::vector<const PaneData*>& panes, const Box& box, ThemeId theme,
                bool draw) {
    double x = 0, y = kNamePitch / 2;
    for (const PaneData* pane : panes) {
        const std::string name = builder.elide(paneTitle(*pane), kNameStyle, box.width - 26);
        const double width = 26 + builder.width(name, kNameStyle);
        if (x > 0 && x + width > box.width) x = 0, y += kNamePitch;
        if (draw) {
            drawBadge(builder, pane->letter, pane->policyId, {box.x + x + 9, box.y + y}, theme);
            builder.label({box.x + x + 26, box.y + y}, name, kNameStyle, themeOf(theme).text2);
        }
        x += width + kNameGap;
    }
    return y + kNamePitch / 2;
}

/// Names below everything or, where there is no room, below the bars.
void drawNames(SceneBuilder& builder, const std::vector<const PaneData*>& panes, const Box& matrix, double matrixEnd,
               const Box& bars, double barsEnd, double bottom, ThemeId theme) {
    const double end = std::max(matrixEnd, barsEnd);
    for (const Box& box : {Box{matrix.x, end, builder.scene().width - 28, bottom - end},
                           Box{bars.x, barsEnd, bars.width, bottom - barsEnd}}) {
        const double needed = nameRows(builder, panes, box, theme, false), gap = std::min(16.0, box.height - needed);
        if (gap < 2) continue;
        nameRows(builder, panes, {box.x, box.y + gap, box.width, needed}, theme, true);
        return;
    }
}

/// Places of matrix and bars. Bars without a width are not drawn.
struct Layout {
    Box matrix, bars;
    bool headings = true;
};

Layout layoutOf(std::size_t paneCount, double names, double bottom, const Viewport& viewport) {
    const auto count = static_cast<double>(paneCount);
    Layout layout;
    layout.headings = viewport.height >= 120;
    const double top = layout.headings ? 26 : 6, height = bottom - names - 6 - top;
    const double cell = viewport.height >= 260 ? kLargestCell : 64,
                 half = std::min(viewport.width * 0.5 - 20, 26 + cell * count);
    if (viewport.width >= kNarrow && half >= 22 + kLeastCellWidth * count) {
        layout.matrix = {14, top, half, height};
        layout.bars = {layout.matrix.right() + 28, top + 2, viewport.width - layout.matrix.right() - 38, height - 2};
        return layout;
    }
    layout.matrix = {14, top, viewport.width - 28, height};
    const double least = kLeastBar * (count + 1) + (layout.headings ? kHeading : 2),
                 matrix = std::min(0.55 * height, 22 + 40 * count);
    if (height - least < 22 + kLeastCell * count) return layout; // the matrix is more informative
    layout.matrix.height = std::clamp(matrix, 22 + kLeastCell * count, height - least);
    const double begin = layout.matrix.bottom() + (layout.headings ? kHeading : 2);
    layout.bars = {14, begin, viewport.width - 28, top + height - begin};
    return layout;
}

void drawHeadings(SceneBuilder& builder, const Layout& layout, const Theme& theme) {
    const auto draw = [&](const char* text, const Box& box, double y) {
        builder.label({box.x, y}, builder.elide(text, kHeadingStyle, box.width + (layout.bars.x > box.x ? 20 : 0)),
                      kHeadingStyle, theme.text2);
    };
    draw("Jaccard overlap of kept lists", layout.matrix, 12);
    if (layout.bars.width > 0)
        draw("Panes that keep a token", layout.bars,
             layout.bars.x > layout.matrix.x ? 12 : layout.bars.y - kHeading / 2);
}

class OverlapView final : public View {
public:
    OverlapView()
        : View({.id = "overlap",
                .name = "Overlap",
                .summary = "What the kept lists of the panes have in common",
                .paper = "Jaccard overlap; KeyDiff Table 14 compares variants by outcome, this by list",
                .group = ViewGroup::Kept,
                .place = ViewPlace::BelowPanes,
                .teaching = TeachingRole::Detail}) {}

    std::string whyNoPicture(const ViewInput& input, const ParameterValues&) const override {
        if (!input.capture) return kNoCapture;
        if (readyPanes(input).size() >= 2) return "";
        if (input.panes.size() < 2) return "Overlap compares policies: add a second pane.";
        for (const PaneData& pane : input.panes)
            if (!pane.error.empty()) return whyEmpty(input, &pane);
        return "Computing the first selections…";
    }

    Scene draw(const ViewInput& input, const ParameterValues&, const Viewport& viewport) const override {
        const auto panes = readyPanes(input);
        const Theme& theme = themeOf(viewport.theme);
        Scene scene = blankScene(viewport);
        SceneBuilder builder(scene, *viewport.text);
        const double bottom = viewport.height - (viewport.forExport ? 16 : 0);
        const double names = viewport.height < 260
                                 ? 0
                                 : 16 + nameRows(builder, panes, {0, 0, viewport.width - 28, 0}, viewport.theme, false);
        const Layout layout = layoutOf(panes.size(), names, bottom, viewport);
        if (layout.headings) drawHeadings(builder, layout, theme);
        const double matrixEnd = drawMatrix(builder, input, panes, layout.matrix, viewport.theme);
        const bool hasBars = layout.bars.width > 0;
        const double barsEnd =
            hasBars ? drawAgreement(builder, agreement(input, panes), layout.bars, theme) : matrixEnd;
        drawNames(builder, panes, layout.matrix, matrixEnd, hasBars ? layout.bars : layout.matrix, barsEnd, bottom - 4,
                  viewport.theme);
        drawProvenance(builder, input, viewport);
        return scene;
    }

    std::string conclude(const ViewInput& input, const ParameterValues&) const override {
        const auto panes = readyPanes(input);
        std::pair<std::size_t, std::size_t> closest{0, 1};
        double most = -1, least = 2;
        for (std::size_t a = 0; a < panes.size(); ++a)
            for (std::size_t b = a + 1; b < panes.size(); ++b) {
                const double overlap = jaccard(keptTokens(input, *panes[a]), keptTokens(input, *panes[b]));
                least = std::min(least, overlap);
                if (overlap > most) most = overlap, closest = {a, b};
            }
        const auto counts = agreement(input, panes);
        const std::string pairs =
            most == 0    ? "No token is kept by two panes"
            : least == 1 ? "All panes keep the same tokens"
                         : fmt::format("{} and {} agree most (Jaccard {})", nameAmong(panes, *panes[closest.first]),
                                       nameAmong(panes, *panes[closest.second]), formatWithin(most, 1, 2));
        return fmt::format("{}; {} of {} {} kept by every pane, {} by none", pairs, formatCount(counts.back()),
                           formatCounted(input.cut.token, "token"), counts.back() == 1 ? "is" : "are",
                           formatCount(counts.front()));
    }

    ViewTable table(const ViewInput& input, const ParameterValues&) const override {
        const auto panes = readyPanes(input);
        std::vector<std::string> columns = {"pane"};
        std::vector<std::vector<std::string>> rows;
        for (const PaneData* row : panes) {
            columns.push_back(fmt::format("{} {}", row->letter, paneTitle(*row)));
            rows.push_back({columns.back()});
            for (const PaneData* column : panes)
                rows.back().push_back(
                    fmt::format("{:.6f}", jaccard(keptTokens(input, *row), keptTokens(input, *column))));
        }
        return tableOf(std::move(columns), std::move(rows));
    }
};

} // namespace

const View& overlapView() { return onlyOne<OverlapView>(); }

} // namespace kvscope
