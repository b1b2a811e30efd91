// Attention over a weighted sample of the tokens before the cut. The kept sets become lists of terms; tokens from the
// cut on need none. Queries are taken in batches where their intermediate outputs would not fit.
#include "gpu/kernels/weighted_attention.h"

#include "gpu/primitives/attention_lists.h"
#include "gpu/primitives/long_work.h"
#include "gpu/primitives/primitives.h"

#include <cassert>

namespace kvscope::gpu {

namespace {

constexpr double kMostScratchBytes = 256 << 20;

/// Groups of query heads that read one KV head with one kept set, and their terms: numerator, then the denominator
/// where it is another sample.
struct Groups {
    HeadLists lists;
    std::vector<std::int32_t> kvHeads, tokens;
    std::vector<std::int64_t> offsets{0};
    std::vector<float> numerator, denominator, sinks;
    std::int64_t mostListed = 0;

    explicit Groups(const WeightedAttentionInput& input) {
        const auto& kvHeadOf = input.rule.gqaGroupOf;
        std::vector<std::int32_t> heads(kvHeadOf.size());
        for (std::size_t i = 0; i < heads.size(); ++i) heads[i] = static_cast<std::int32_t>(i);
        const auto keyOf = [&](std::int32_t head) {
            return std::pair(kvHeadOf[static_cast<std::size_t>(head)], input.setOf(head));
        };
        std::stable_sort(heads.begin(), heads.end(), [&](auto a, auto b) { return keyOf(a) < keyOf(b); });
        for (std::size_t i = 0; i < heads.size(); ++i) {
            lists.heads.push_back(heads[i]);
            if (!input.rule.sinks.empty()) sinks.push_back(input.rule.sinks[static_cast<std::size_t>(heads[i])]);
            const bool full = std::ssize(lists.heads) - lists.groups.back() == HeadLists::kMostMembers;
            if (i + 1 < heads.size() && keyOf(heads[i]) == keyOf(heads[i + 1]) && !full) continue;
            lists.endGroup();
            kvHeads.push_back(keyOf(heads[i]).first);
            if (!input.kept.empty())
                forEachTerm(input.kept[keyOf(heads[i]).second], [&](TokenIndex token, float x, float y) {
                    tokens.push_back(token);
                    numerator.push_back(x);
                    denominator.push_back(y);
                });
            offsets.push_back(std::ssize(tokens));
            mostListed = std::max(mostListed, offsets.back() - offsets[offsets.size() - 2]);
        }
    }
};

/// The rows from `begin` on of all heads.
DeviceRows rowsFrom(DeviceRows rows, std::int64_t begin, std::int64_t count) {
    if (rows.data) rows.data = static_cast<const char*>(rows.data) + begin * rows.width * bytesOf(rows.type);
    rows.rows = count;
    return rows;
}

/// The call for `count` queries from `begin` on.
WeightedAttentionCall batchOf(WeightedAttentionCall call, std::int64_t begin, std::int64_t count) {
    call.attention.queries = rowsFrom(call.attention.queries, begin, count);
    call.attention.queryCount = count;
    call.attention.firstQuery += begin;
    call.reference = rowsFrom(call.reference, begin, count);
    if (call.output) call.output += begin * call.values.width;
    if (call.error) call.error += begin;
    call.logDenominator += begin;
    call.logNorm += begin;
    return call;
}

} // namespace

WeightedAttention weightedAttention(const DeviceMemory& memory, const DeviceRows& queries, const DeviceRows& keys,
                                    const DeviceRows& values, const DeviceRows& reference,
                                    const WeightedAttentionInput& input, Arithmetic arithmetic,
                                    const Checkpoint& checkpoint) {
    const std::int64_t heads = queries.heads, w = queries.rows;
    assert(static_cast<std::int64_t>(input.rule.gqaGroupOf.size()) == heads && input.firstQuery + w <= keys.rows);
    const Groups groups(input);
    CallMemory parts(memory);
    WeightedAttentionCall call;
    describe(call.attention, parts, queries, keys, groups.lists, input.rule, arithmetic);
    call.attention.firstQuery = input.firstQuery;
    call.values = values;
    call.groupCount = std::ssize(groups.kvHeads);
    parts.list(call.kvHeads, groups.kvHeads);
    parts.list(call.offsets, groups.offsets);
    parts.list(call.tokens, groups.tokens);
    parts.list(call.numerator, groups.numerator);
    parts.list(call.denominator, groups.denominator);
    call.mostListed = groups.mostListed;
    call.tail = input.kept.empty() ? 0 : input.cut;
    parts.list(call.sinks, groups.sinks);
    call.reference = reference;
    call.outStride = w;
    const auto pairs = static_cast<std::size_t>(heads * w);
    parts.result(call.output, reference.data ? 0 : pairs * static_cast<std::size_t>(values.width));
    parts.result(call.error, reference.data ? pairs : 0);
    parts.result(call.logDenominator, pairs);
    parts.result(call.logNorm, pairs);
    // A batch of queries: what fits, and no more than one launch should do. The last one is the shortest and may be
    // split into more parts.
    const double perQuery = 2.0 * static_cast<double>(heads * (keys.width + values.width)) *
                            static_cast<double>(groups.mostListed + input.firstQuery + w - call.tail);
    const double fit = std::min(kMostScratchBytes / (8.0 * static_cast<double>(heads * (values.width + 3))),
                                LongWork::kPieceOperations / (perQuery + 1));
    const std::int64_t most = std::clamp(static_cast<std::int64_t>(fit), std::int64_t{1}, w),
                       batches = (w + most - 1) / most;
    const auto batch = [&](std::int64_t index) {
        return batchOf(call, index * most, std::min(most, w - index * most));
    };
    parts.scratch(call.scratch,
                  static_cast<std::size_t>(std::max(weightedScratch(batch(std::max<std::int64_t>(0, batches - 2))),
                                                    weightedScratch(batch(batches - 1)))));
    parts.place();
    LongWork work(memory, checkpoint, perQuery * static_cast<double>(w));
    work.each(batches, perQuery * static_cast<double>(most),
              [&](std::int64_t begin, std::int64_t end, const StopWord& stop) {
                  call.attention.stop = stop;
                  for (std::int64_t index = begin; index < end; ++index)
                      weightedAttention(batch(index), memory.stream());
              });
    work.wait();
    parts.fetch();
    WeightedAttention result{{}, parts.read(call.logDenominator, {heads, w}), parts.read(call.logNorm, {heads, w}), {}};
    if (reference.data)
        result.outputError = parts.read(call.error, {heads, w});
    else
        result.output = parts.read(call.output, {heads, w, values.width});
    return result;
}

} // namespace kvscope::gpu
