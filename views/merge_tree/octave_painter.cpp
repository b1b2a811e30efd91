// Value norms by octave: BalanceKV keeps one tree per octave. A bucket whose upper end is at most the erase line is
// dropped; the line rises with the largest norm read.
#include "views/merge_tree/tree_painter.h"
#include "views/scene/axes.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

struct Bars {
    Box box;
    int first = 0, count = 1; ///< octaves from left to right
    double highest = 1;

    double left(int bucket) const { return box.x + box.width * (bucket - first) / count; }
    double width() const { return box.width / count; }
};

Bars barsOf(const TreePicture& p) {
    Bars bars;
    bars.box = {p.layout.histogram.x, p.layout.histogram.y + 30, p.layout.histogram.width,
                std::max(20.0, p.layout.histogram.height - 64)};
    bars.first = p.data.octaves.front().bucket;
    bars.count = p.data.octaves.back().bucket - bars.first + 1;
    for (const MergeTreeData::Octave& octave : p.data.octaves)
        bars.highest = std::max(bars.highest, static_cast<double>(p.data.stream->trees[octave.tree].rows.size()));
    return bars;
}

void paintBars(SceneBuilder& b, const TreePicture& p, const Bars& bars, double line) {
    for (std::size_t i = 0; i < p.data.octaves.size(); ++i) {
        const MergeTreeData::Octave& octave = p.data.octaves[i];
        const std::vector<TokenIndex>& rows = p.data.stream->trees[octave.tree].rows;
        const auto read = static_cast<double>(std::ranges::lower_bound(rows, p.state.cursor()) - rows.begin());
        const double gap = std::min(2.0, bars.width() * 0.1), scale = bars.box.height / bars.highest;
        Box box{bars.left(octave.bucket) + gap, 0, bars.width() - 2 * gap, scale * static_cast<double>(rows.size())};
        box.y = bars.box.bottom() - box.height;
        const bool erased = std::ldexp(1.0, octave.bucket) <= line;
        const Box filled{box.x, bars.box.bottom() - scale * read, box.width, scale * read};
        b.rectangle(filled, erased ? p.theme.masked : p.policy);
        const Stroke shown = octave.bucket == p.data.wantedBucket && p.state.tree().numerator
                                 ? Stroke{p.theme.ink, 2, {}}
                                 : Stroke{p.theme.control, 1, {}};
        b.rectangle(box, kTransparent, shown, 0,
                    {PickId::Kind::Cell, nodeId(kOctaveLevel, static_cast<std::int64_t>(i))});
    }
}

/// The line where it lies among the bars, or which way it lies.
void paintEraseLine(SceneBuilder& b, const TreePicture& p, const Bars& bars, double line) {
    const TextStyle small{FontFace::Interface, 11};
    const double y = p.layout.histogram.y + 18;
    if (line <= 0) {
        b.text({bars.box.x, y}, "no erase line yet", small, p.theme.text2);
        return;
    }
    const double octave = std::log2(line), x = bars.box.x + bars.box.width * (octave - bars.first + 1) / bars.count;
    const std::string words = "erase line 2^" + formatFixed(octave, 1);
    if (x < bars.box.x || x > bars.box.right()) {
        b.text({bars.box.x, y}, x < bars.box.x ? "← " + words : words + " →", small, p.theme.error);
        return;
    }
    b.line({x, bars.box.y}, {x, bars.box.bottom()}, {p.theme.errorLine, 1.5, {5, 3}});
    b.text({bars.box.x, y}, words, small, p.theme.error);
}

} // namespace

void paintOctaves(SceneBuilder& b, const TreePicture& p) {
    if (p.layout.histogram.width <= 0 || p.data.octaves.empty()) return;
    const Bars bars = barsOf(p);
    const double line = p.data.stream->eraseLineAt(p.data.kvHead, p.state.cursor());
    const TextStyle title{FontFace::Interface, 11, FontWeight::SemiBold}, label{FontFace::Monospace, 10},
        axis{FontFace::Interface, 11};
    b.text({bars.box.x, p.layout.histogram.y}, "Norms of values, by octave", title, p.theme.text1);
    paintBars(b, p, bars, line);
    paintEraseLine(b, p, bars, line);
    b.line({bars.box.x, bars.box.bottom()}, {bars.box.right(), bars.box.bottom()}, {p.theme.axis, 1, {}});
    const int step = std::max(1, static_cast<int>(std::ceil(26 / bars.width())));
    for (int bucket = bars.first; bucket < bars.first + bars.count; bucket += step)
        b.text({bars.left(bucket) + bars.width() / 2, bars.box.bottom() + 7},
               bucket < 0 ? "−" + std::to_string(-bucket) : std::to_string(bucket), label, p.theme.text2,
               HorizontalAlign::Centre, VerticalAlign::Top);
    b.text({bars.box.x + bars.box.width / 2, bars.box.bottom() + 22},
           b.elide("octave i: 2^(i−1) < ‖v‖ ≤ 2^i", axis, bars.box.width + 12), axis, p.theme.text2,
           HorizontalAlign::Centre, VerticalAlign::Top);
}

} // namespace kvscope
