// Results that follow from prompt lengths alone: the share of prompts that a cache of fixed size holds, and a histogram
// of lengths. KeyDiff reports both for LongBench (Tables 7 and 8), because its budgets are tokens.
#include "core/studies/reproduction_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

/// KeyDiff's cache sizes, which are also the edges of its Table 7.
constexpr std::array kPaperTokens = {2048.0, 4096.0, 6144.0, 8192.0};
/// Table 7: prompts of at most 8K, summed over the corpora, and all prompts.
constexpr std::int64_t kPaperWhole = 1790, kPaperPrompts = 4120;

ReproducedSeries emptySeries(const std::string& label, const std::string& measure) {
    return {label, "exact", measure, {}};
}

std::string scaleNote(const std::vector<std::int64_t>& lengths) {
    if (lengths.size() == 1) return "not scaled: one prompt has no distribution of lengths to take a share of";
    const double here = scaledTokens(kPaperTokens.back(), lengths);
    const auto whole =
        std::ranges::count_if(lengths, [&](std::int64_t length) { return static_cast<double>(length) <= here; });
    return fmt::format("scaled: 8K of the paper is {:.0f} tokens here, which hold {} of {} prompts whole ({:.0f} %; 8K "
                       "of LongBench {} of {}, {:.0f} %, Table 7); 2K, 4K and 6K in proportion",
                       here, whole, lengths.size(),
                       100 * static_cast<double>(whole) / static_cast<double>(lengths.size()), kPaperWhole,
                       kPaperPrompts, 100.0 * kPaperWhole / kPaperPrompts);
}

std::string sizeText(double paperTokens) { return fmt::format("{:.0f}K", paperTokens / 1024); }

Summary keptShares(double cache, const std::vector<std::int64_t>& lengths) {
    std::vector<double> shares;
    for (const std::int64_t length : lengths) shares.push_back(std::min(1.0, cache / static_cast<double>(length)));
    return summaryOf(shares);
}

/// Prompts of each bin: up to the first edge, up to the second ..., beyond the last.
ReproducedSeries binned(const std::string& label, const std::vector<double>& edges,
                        const std::vector<std::int64_t>& lengths) {
    ReproducedSeries series = emptySeries(label, "prompts");
    for (std::size_t bin = 0; bin <= edges.size(); ++bin) {
        const double low = bin == 0 ? 0 : edges[bin - 1];
        const bool open = bin == edges.size();
        const auto inside = std::ranges::count_if(lengths, [&](std::int64_t length) {
            return static_cast<double>(length) > low && (open || static_cast<double>(length) <= edges[bin]);
        });
        const std::string text = open ? fmt::format("> {:.0f}", low)
                                      : fmt::format("{:.0f} to {:.0f}", std::floor(low) + 1, std::floor(edges[bin]));
        series.points.push_back(
            {static_cast<double>(bin), text, {std::ssize(lengths), static_cast<double>(inside), 0}});
    }
    return series;
}

} // namespace

std::int64_t promptTokens(const CaptureReader& capture) {
    for (const Segment& segment : capture.tokens().segments)
        if (segment.kind == SegmentKind::Answer && segment.begin > 0) return segment.begin;
    return capture.info().numTokens;
}

double scaledTokens(double paperTokens, std::vector<std::int64_t> lengths) {
    assert(!lengths.empty());
    std::ranges::sort(lengths);
    const std::int64_t whole =
        (std::ssize(lengths) * kPaperWhole + kPaperPrompts - 1) / kPaperPrompts; // rounded up, at least 1
    return static_cast<double>(lengths[whole - 1]) * paperTokens / kPaperTokens.back();
}

std::vector<ReproducedSeries> keptShareSeries(const std::vector<std::int64_t>& lengths,
                                              std::vector<std::string>& notes) {
    ReproducedSeries same = emptySeries("the paper's cache sizes", "kept_share"),
                     scaled = emptySeries("scaled cache sizes", "kept_share");
    for (const double tokens : kPaperTokens) {
        const double here = scaledTokens(tokens, lengths);
        const std::string over = lengths.size() > 1 ? levelName(SampleLevel::Captures) : "";
        same.points.push_back({tokens, sizeText(tokens), keptShares(tokens, lengths), over});
        scaled.points.push_back(
            {tokens, fmt::format("{} as {:.0f} tokens", sizeText(tokens), here), keptShares(here, lengths), over});
    }
    notes.push_back(scaleNote(lengths));
    if (lengths.size() == 1) return {same};
    return {same, scaled};
}

std::vector<ReproducedSeries> lengthSeries(const std::vector<std::int64_t>& lengths, std::vector<std::string>& notes) {
    std::vector<double> edges(kPaperTokens.begin(), kPaperTokens.end()), scaled;
    for (const double edge : kPaperTokens) scaled.push_back(scaledTokens(edge, lengths));
    notes.push_back(scaleNote(lengths));
    if (lengths.size() == 1) return {binned("the paper's edges", edges, lengths)};
    return {binned("the paper's edges", edges, lengths), binned("scaled edges", scaled, lengths)};
}

} // namespace kvscope
