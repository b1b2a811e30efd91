// SubGen's radius delta: typed, taken as a quantile of key distances, or searched so that the clusters fit a budget. In
// every case the same pass over the keys makes the clusters.
#include "core/policies/subgen/subgen_radius.h"

#include "core/base/error.h"
#include "core/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kBisections = 12;

/// Per head, an upper bound on the distance of two keys: twice the largest distance to the first key.
std::vector<double> diameterBounds(const PolicyInput& input, const Checkpoint& checkpoint) {
    const Tensor first = input.engine.rows(input.keys, 0, 1);
    HostTensor anchor = input.engine.download(first);
    anchor.shape = {input.keys.size(0), input.keys.size(2)};
    const HostTensor distances =
        input.engine.similarity(input.keys, anchor, SimilarityMetric::Euclidean, checkpoint.silent());
    std::vector<double> bounds;
    const std::int64_t n = input.rowCount();
    for (std::int64_t h = 0; h < input.keys.size(0); ++h)
        bounds.push_back(
            2.001 * double{*std::max_element(distances.data.begin() + h * n, distances.data.begin() + (h + 1) * n)});
    return bounds;
}

/// Summed in the order of the engine's clustering, so that a radius equal to the distance of two keys reaches from one
/// to the other.
double squaredDistance(const float* a, const float* b, std::int64_t d) {
    std::array<double, 8> part{};
    for (std::int64_t c = 0; c < d; ++c) {
        const double difference = double{a[c]} - double{b[c]};
        part[static_cast<std::size_t>(c) % 8] += difference * difference;
    }
    return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

/// Squared distances of all pairs of rows [count, d].
std::vector<double> squaredDistances(const float* rows, std::int64_t count, std::int64_t d) {
    std::vector<double> squares;
    for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < i; ++j) squares.push_back(squaredDistance(rows + i * d, rows + j * d, d));
    return squares;
}

/// Keys that `tokens` tokens, a key of d and a value of dv numbers each, have room for.
std::int64_t keysInPlaceOf(std::int64_t tokens, const PolicyInput& input) {
    const std::int64_t d = input.keys.size(2), dv = input.values.size(2);
    return std::max<std::int64_t>(0, tokens) * (d + dv) / d;
}

/// The remedy when `count` tokens have no room for one cluster of t slots beside s value slots.
std::string remedyOf(const PolicyInput& input, std::int64_t count, std::int64_t t, std::int64_t s) {
    const auto hasRoom = [&](std::int64_t tokens, std::int64_t slots, std::int64_t valueSlots) {
        return keysInPlaceOf(tokens - valueSlots, input) >= slots + 1;
    };
    std::string remedy = hasRoom(count, t, 1)   ? "Lower value_slots" // this one alone to 1 suffices
                         : hasRoom(count, 1, s) ? "Lower cluster_slots"
                                                : "Lower value_slots and cluster_slots";
    std::int64_t least = 1, needed = s;
    while (!hasRoom(least, 1, 1)) ++least;
    while (!hasRoom(needed, t, s)) ++needed;
    if (count < least) remedy += fmt::format(" and keep at least {} tokens", least);
    return needed > input.rowCount() ? remedy : remedy + fmt::format(", or keep at least {} tokens", needed);
}

/// The most clusters that a budget of `count` tokens has room for: m (t + 1) keys and s pairs.
std::int64_t clustersThatFit(const PolicyInput& input, const ParameterValues& values, std::int64_t count) {
    const std::int64_t t = values.integer("cluster_slots"), s = values.integer("value_slots");
    const std::int64_t clusters = keysInPlaceOf(count - s, input) / (t + 1);
    if (clusters == 0)
        throw Error({fmt::format("{} token{} cannot store {} value slot{} and one cluster of {}", count,
                                 count == 1 ? "" : "s", s, s == 1 ? "" : "s", t),
                     "budget", remedyOf(input, count, t, s)});
    return clusters;
}

SubgenClusters searchRadii(const PolicyInput& input, std::int64_t most) {
    SubgenClusters best;
    std::vector<double> low(static_cast<std::size_t>(input.keys.size(0)), 0);
    best.radii = diameterBounds(input, input.checkpoint);
    best.heads = input.engine.streamClusters(input.keys, best.radii, most, input.checkpoint.part(0, 0.05));
    std::vector<double> tried = low;
    for (int step = 0; step <= kBisections; ++step) {
        const Checkpoint part =
            input.checkpoint.part(0.05 + 0.95 * step / (kBisections + 1), 0.05 + 0.95 * (step + 1) / (kBisections + 1));
        auto clusters = input.engine.streamClusters(input.keys, tried, most, part);
        for (std::size_t h = 0; h < tried.size(); ++h) {
            if (clusters[h].full) {
                low[h] = tried[h];
            } else {
                best.radii[h] = tried[h];
                best.heads[h] = std::move(clusters[h]);
            }
            tried[h] = (low[h] + best.radii[h]) / 2;
        }
    }
    return best;
}

} // namespace

std::vector<double> distanceQuantiles(const Engine& engine, const Tensor& rows, double quantile) {
    const std::int64_t heads = rows.size(0), n = rows.size(1), d = rows.size(2);
    const std::int64_t sampled = std::min(n, kSampledRows);
    RowPositions chosen(static_cast<std::size_t>(heads));
    for (auto& list : chosen)
        for (std::int64_t i = 0; i < sampled; ++i) list.push_back(static_cast<TokenIndex>(i * n / sampled));
    const HostTensor keys = engine.download(engine.gatherRows(rows, chosen));
    std::vector<double> result;
    for (std::int64_t h = 0; h < heads; ++h) {
        std::vector<double> squares = squaredDistances(keys.data.data() + h * sampled * d, sampled, d);
        if (squares.empty()) {
            result.push_back(0);
            continue;
        }
        const auto wanted = static_cast<std::ptrdiff_t>(std::ceil(quantile * static_cast<double>(squares.size())));
        const auto at = squares.begin() + std::max<std::ptrdiff_t>(wanted - 1, 0);
        std::nth_element(squares.begin(), at, squares.end());
        result.push_back(std::sqrt(*at));
    }
    return result;
}

SubgenClusters clusterKeys(const PolicyInput& input, const ParameterValues& values, std::int64_t count) {
    const std::string& rule = values.choice("delta_rule");
    if (rule == "budget") return searchRadii(input, clustersThatFit(input, values, count));
    const auto make = [&] {
        SubgenClusters made;
        made.radii = rule == "given"
                         ? std::vector<double>(static_cast<std::size_t>(input.keys.size(0)), values.real("delta"))
                         : distanceQuantiles(input.engine, input.keys, values.real("delta_quantile"));
        made.heads = input.engine.streamClusters(input.keys, made.radii, input.rowCount(), input.checkpoint);
        return made;
    };
    if (!input.memo) return make();
    const std::lock_guard lock(input.memo->mutex);
    if (!input.memo->work) input.memo->work = std::make_shared<const SubgenClusters>(make());
    return *std::static_pointer_cast<const SubgenClusters>(input.memo->work);
}

} // namespace kvscope
