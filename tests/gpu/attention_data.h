#pragma once

#include "core/engine/requests.h"
#include "gpu/kernels/attention_call.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/larger_error.h"

#include <algorithm>
#include <cmath>

namespace kvscope::gpu {

inline AttentionCall callOf(const TestRows& queries, const TestRows& keys, const SlotLists& lists,
                            const AttentionRule& rule, std::int64_t firstQuery) {
    AttentionCall call;
    call.queries = queries.device();
    call.keys = keys.device();
    call.heads = lists.heads.data();
    call.groups = lists.groups.data();
    call.slotCount = static_cast<std::int64_t>(lists.heads.size());
    call.largestGroup = lists.largest;
    call.queryCount = call.queries.rows;
    call.firstQuery = firstQuery;
    call.scaling = rule.scaling;
    call.softcap = rule.softcap;
    call.mask.slidingWindow = rule.slidingWindow;
    return call;
}

/// Largest |got - expected| / (|expected| + share of the largest expected); infinity for another length or NaN.
inline double largestError(const std::vector<float>& got, const std::vector<float>& expected, double share) {
    double top = 0, worst = got.size() == expected.size() ? 0 : std::numeric_limits<double>::infinity();
    for (const float x : expected) top = std::max(top, std::abs(double{x}));
    for (std::size_t i = 0; i < got.size() && i < expected.size(); ++i) {
        const double error = std::abs(double{got[i]} - expected[i]);
        worst = testing::larger(worst, error == 0 ? 0 : error / (std::abs(double{expected[i]}) + share * top));
    }
    return worst;
}

} // namespace kvscope::gpu
