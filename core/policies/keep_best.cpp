// The usual select stage: protected rows, then the best scores, per KV head or per query head.
#include "core/policies/keep_best.h"

#include <algorithm>
#include <iterator>
#include <limits>

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
    selection.heads.assign(static_cast<std::size_t>(input.keys.size(0)), {{}, std::numeric_limits<float>::infinity()});
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

} // namespace kvscope
