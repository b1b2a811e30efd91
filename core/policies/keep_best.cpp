// The usual select stage: protected rows, then the best scores, per KV head or per query head.
#include "core/policies/keep_best.h"

#include "core/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

namespace kvscope {

namespace {

std::vector<TopKHead> bestRows(const HostTensor& scores, const Protection& fitted, std::int64_t count) {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(scores.shape[0]), count);
    return topK(scores, counts, fitted.first, fitted.last);
}

RowSelection protecting(const Protection& fitted) {
    RowSelection selection;
    selection.protectedFirst = fitted.first;
    selection.protectedLast = fitted.last;
    return selection;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Entry {
    float score;
    std::int32_t row, head;

    bool isProtected() const { return score == kInfinity; }
};

/// A strict total order: no two entries are equivalent.
bool ranksBefore(const Entry& a, const Entry& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.row != b.row ? a.row < b.row : a.head < b.head;
}

std::vector<Entry> entriesOf(const JointRequest& request) {
    const std::int64_t heads = request.total.shape[0], m = request.total.shape[1];
    std::vector<Entry> entries;
    entries.reserve(request.total.data.size());
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < m; ++i) {
            const float score = request.total.data[h * m + i];
            if (std::isnan(score))
                throw Error({"the score of token " + std::to_string(i) + " in head " + std::to_string(h) + " is NaN",
                             "", "Look at the capture with kvscope inspect --verify"});
            const bool kept = i < request.protection.first || i >= m - request.protection.last;
            entries.push_back({kept ? kInfinity : score, static_cast<std::int32_t>(i), static_cast<std::int32_t>(h)});
        }
    return entries;
}

/// Brings the `taken` best entries to the front, in no particular order. Returns the distance between the last entry
/// taken and the first left out.
float takeBest(std::vector<Entry>& entries, std::size_t taken) {
    if (taken == 0 || taken >= entries.size()) return kInfinity;
    const auto leftOut = entries.begin() + static_cast<std::ptrdiff_t>(taken);
    std::ranges::nth_element(entries, leftOut, ranksBefore);
    const Entry& last = *std::max_element(entries.begin(), leftOut, ranksBefore);
    return last.isProtected() ? kInfinity : last.score - leftOut->score;
}

void fillPage(TopKHead& head, std::vector<Entry>& leftOut, std::int64_t page) {
    const auto open = static_cast<std::int64_t>(head.kept.size()) % page;
    const auto wanted = open == 0 ? std::size_t{0} : static_cast<std::size_t>(page - open);
    const std::size_t taken = std::min(wanted, leftOut.size());
    head.margin = std::min(head.margin, takeBest(leftOut, taken));
    for (std::size_t i = 0; i < taken; ++i) head.kept.push_back(leftOut[i].row);
}

/// Sets the numbers of protected rows at both ends: as many as every head keeps.
void countProtected(RowSelection& out, const Protection& protection, std::int64_t m) {
    const auto firstCount = [&](const TopKHead& head) {
        return std::ranges::count_if(head.kept, [&](TokenIndex i) { return i < protection.first; });
    };
    const auto lastCount = [&](const TopKHead& head) {
        const std::int64_t edge = std::max(protection.first, m - protection.last);
        return std::ranges::count_if(head.kept, [&](TokenIndex i) { return i >= edge; });
    };
    out.protectedFirst = out.protectedLast = m;
    for (const TopKHead& head : out.heads) {
        out.protectedFirst = std::min<std::int64_t>(out.protectedFirst, firstCount(head));
        out.protectedLast = std::min<std::int64_t>(out.protectedLast, lastCount(head));
    }
}

} // namespace

Protection Protection::within(std::int64_t count, std::int64_t rows) const {
    const std::int64_t fitting = std::min({first, count, rows});
    return {fitting, std::min({last, count - fitting, rows - fitting})};
}

RowSelection keepBest(const PolicyInput& input, const HostTensor& total, const Protection& protection,
                      std::int64_t count) {
    const Protection fitted = protection.within(count, input.rowCount());
    RowSelection selection = protecting(fitted);
    selection.heads = bestRows(total, fitted, count);
    return selection;
}

RowSelection keepBestPerQueryHead(const PolicyInput& input, const HostTensor& scores, const Protection& protection,
                                  std::int64_t count) {
    const Protection fitted = protection.within(count, input.rowCount());
    RowSelection selection = protecting(fitted);
    selection.queryHeads = bestRows(scores, fitted, count);
    selection.heads.assign(static_cast<std::size_t>(input.keys.size(0)), {{}, kInfinity});
    for (std::size_t head = 0; head < selection.queryHeads.size(); ++head) {
        const TopKHead& own = selection.queryHeads[head];
        TopKHead& group = selection.heads[input.attention.gqaGroupOf[head]];
        std::vector<TokenIndex> both;
        std::ranges::set_union(group.kept, own.kept, std::back_inserter(both));
        group.kept = std::move(both);
        group.margin = std::min(group.margin, own.margin);
    }
    return selection;
}

RowSelection keepEverything(const PolicyInput& input) {
    TopKHead all{std::vector<TokenIndex>(static_cast<std::size_t>(input.rowCount())), kInfinity};
    std::iota(all.kept.begin(), all.kept.end(), 0);
    return {std::vector<TopKHead>(static_cast<std::size_t>(input.keys.size(0)), all)};
}

RowSelection keepBestJointly(const JointRequest& request) {
    std::vector<Entry> entries = entriesOf(request);
    const auto taken = static_cast<std::size_t>(
        std::clamp<std::int64_t>(request.entries, 0, static_cast<std::int64_t>(entries.size())));
    RowSelection out;
    out.heads.assign(static_cast<std::size_t>(request.total.shape[0]), {{}, takeBest(entries, taken)});
    std::vector<std::vector<Entry>> leftOut(out.heads.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const auto head = static_cast<std::size_t>(entries[i].head);
        if (i < taken)
            out.heads[head].kept.push_back(entries[i].row);
        else
            leftOut[head].push_back(entries[i]);
    }
    std::size_t added = 0;
    for (std::size_t h = 0; h < out.heads.size(); ++h) {
        const std::size_t before = out.heads[h].kept.size();
        fillPage(out.heads[h], leftOut[h], request.page);
        added += out.heads[h].kept.size() - before;
        std::ranges::sort(out.heads[h].kept);
    }
    if (added > 0)
        out.notes.push_back(
            fmt::format("filling pages of {} tokens adds {} to the budget, over all KV heads", request.page, added));
    countProtected(out, request.protection, request.total.shape[1]);
    return out;
}

} // namespace kvscope
