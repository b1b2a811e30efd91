// Compactor from the formulas: a random matrix entry by entry, leverage and attention by the naive engine, z-scores,
// and a choice that takes the best entry again and again.
#include "tests/policies/compactor_oracle.h"

#include "core/base/random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace kvscope::oracle {

namespace {

using Block = naive::Block;
using Numbers = naive::Numbers;

RandomKey placeOf(const TestLayer& layer, bool shared, std::int64_t head) {
    RandomKey key;
    key.seed = layer.plain.seed;
    key.layer = shared ? 0 : static_cast<std::uint32_t>(layer.plain.layer);
    key.kvHead = static_cast<std::uint32_t>(head);
    return key;
}

/// Entry (row, column) of a Gaussian sketch: Box-Muller over the uniforms of slots `column` and `column` + 2^31.
double gaussianEntry(RandomKey key, std::int64_t row, std::int64_t column) {
    key.token = static_cast<std::uint32_t>(row);
    key.slot = static_cast<std::uint32_t>(column);
    const double first = uniformAt(key);
    key.slot += 2147483648U;
    return std::sqrt(-2 * std::log(1 - first)) * std::cos(2 * 3.14159265358979323846 * uniformAt(key));
}

/// H_1 = (1), H_2m = (H_m H_m; H_m -H_m).
double hadamard(std::int64_t row, std::int64_t column, std::int64_t order) {
    if (order == 1) return 1;
    const std::int64_t half = order / 2;
    const double inner = hadamard(row % half, column % half, half);
    return row >= half && column >= half ? -inner : inner;
}

/// K D H R^T (C4): the k columns whose lots are smallest, in the order of their lots.
Block srhtHead(RandomKey key, std::int64_t d, std::int64_t k) {
    std::int64_t order = 1;
    while (order < d) order *= 2;
    std::multimap<double, std::int64_t> lots;
    key.round = 2;
    for (std::int64_t c = 0; c < order; ++c) {
        key.token = static_cast<std::uint32_t>(c);
        lots.emplace(uniformAt(key), c);
    }
    Block out{1, d, k, {}};
    key.round = 1;
    for (std::int64_t i = 0; i < d; ++i) {
        key.token = static_cast<std::uint32_t>(i);
        const double sign = uniformAt(key) < 0.5 ? -1 : 1;
        auto lot = lots.begin();
        for (std::int64_t j = 0; j < k; ++j, ++lot)
            out.numbers.push_back(
                static_cast<float>(sign * hadamard(i, lot->second, order) / std::sqrt(static_cast<double>(k))));
    }
    return out;
}

Block sketchOf(const TestLayer& layer, const ParameterValues& values) {
    const std::string kind = values.choice("sketch");
    if (kind == "none") return {};
    const bool shared = values.choice("sketch_scope") == "all";
    const std::int64_t d = layer.keys.shape[2], k = std::min(values.integer("sketch_size"), d);
    Block out{shared ? 1 : layer.keys.shape[0], d, k, {}};
    for (std::int64_t h = 0; h < out.heads; ++h) {
        const RandomKey key = placeOf(layer, shared, h);
        Block head{1, d, k, {}};
        for (std::int64_t i = 0; i < d && kind == "gaussian"; ++i)
            for (std::int64_t j = 0; j < k; ++j)
                head.numbers.push_back(
                    static_cast<float>(gaussianEntry(key, i, j) / std::sqrt(static_cast<double>(k))));
        if (kind == "srht") head = srhtHead(key, d, k);
        out.numbers.insert(out.numbers.end(), head.numbers.begin(), head.numbers.end());
    }
    return out;
}

Block floatsOf(const Numbers& x, std::int64_t heads) {
    return {heads, 1, std::int64_t(x.size()) / heads, {x.begin(), x.end()}};
}

} // namespace

Block blockOf(const HostTensor& tensor, std::int64_t begin, std::int64_t end) {
    const std::int64_t heads = tensor.shape[0], n = tensor.shape[1], d = tensor.shape[2];
    Block out{heads, end - begin, d, {}};
    for (std::int64_t h = 0; h < heads; ++h)
        out.numbers.insert(out.numbers.end(), tensor.data.begin() + (h * n + begin) * d,
                           tensor.data.begin() + (h * n + end) * d);
    return out;
}

std::vector<Numbers> compactorScores(const TestLayer& layer, const ParameterValues& values, double lambda) {
    const std::int64_t kvHeads = layer.keys.shape[0], n = layer.keys.shape[1];
    const std::int64_t begin = values.integer("skip_first"), end = n - values.integer("skip_last"), m = end - begin;
    const Block keys = blockOf(layer.preRopeKeys, begin, end);
    const bool ridge = values.choice("regulariser") == "ridge";
    const Numbers leverage =
        kvscope::naive::leverage({keys, sketchOf(layer, values), values.flag("centred"), values.integer("token_chunk"),
                                  ridge ? Regulariser::Ridge : Regulariser::None, values.real("regulariser_strength")});
    kvscope::naive::ChunksCase chunks{
        blockOf(layer.queries, begin, end), blockOf(layer.keys, begin, end), {}, values.integer("chunk")};
    chunks.rule.softcap = layer.plain.softcap;
    chunks.rule.gqaGroupOf.assign(layer.plain.gqaGroupOf.begin(), layer.plain.gqaGroupOf.end());
    const std::int64_t last = m % chunks.chunk;
    if (values.choice("last_chunk") == "kvpress" && last > 0)
        chunks.zeroKeys = chunks.uniformRows = chunks.chunk - last;
    while (values.choice("last_chunk") == "vllm" && last > 0 && (last + chunks.uniformRows) % 64 != 0)
        ++chunks.uniformRows;
    const Numbers perQuery = kvscope::naive::attentionChunkSums(chunks);
    const Block vectors = blockOf(layer.values, begin, end);
    Numbers attention;
    for (std::int64_t h = 0; h < kvHeads; ++h) {
        Numbers head(std::size_t(m), 0.0);
        double queryHeads = 0;
        for (std::size_t q = 0; q < chunks.rule.gqaGroupOf.size(); ++q)
            for (std::int64_t i = 0; chunks.rule.gqaGroupOf[q] == h && i < m; ++i) {
                head[std::size_t(i)] += perQuery[q * std::size_t(m) + std::size_t(i)];
                queryHeads += i == 0 ? 1 : 0;
            }
        for (std::int64_t i = 0; i < m; ++i) {
            double squares = 0;
            for (std::int64_t c = 0; c < vectors.width; ++c) squares += vectors.at(h, i, c) * vectors.at(h, i, c);
            head[std::size_t(i)] *= values.flag("value_norm") ? std::sqrt(squares) : 1;
            head[std::size_t(i)] /= values.choice("group_rule") == "mean" ? queryHeads : 1;
        }
        const std::int64_t width = values.integer("pool_width");
        for (std::int64_t i = 0; i < m; ++i) {
            double sum = 0;
            for (std::int64_t j = std::max<std::int64_t>(0, i - width / 2); j <= std::min(m - 1, i + width / 2); ++j)
                sum += head[std::size_t(j)];
            attention.push_back(sum / double(width));
        }
    }
    Standardisation how{values.choice("z_scope") == "layer", 0, values.flag("z_sample"), values.real("z_floor")};
    const Numbers za = kvscope::naive::standardise(floatsOf(attention, kvHeads), how);
    how.chunk = values.flag("z_chunks") ? values.integer("token_chunk") : 0;
    const Numbers zl = kvscope::naive::standardise(floatsOf(leverage, kvHeads), how);
    std::vector<Numbers> scores(std::size_t(kvHeads), Numbers(std::size_t(n), 0.0));
    double largest = -1e300;
    for (std::size_t i = 0; i < za.size(); ++i) largest = std::max(largest, za[i] + lambda * zl[i]);
    for (std::int64_t h = 0; h < kvHeads; ++h)
        for (std::int64_t i = 0; i < n; ++i) {
            const auto at = std::size_t(h * m + i - begin);
            scores[std::size_t(h)][std::size_t(i)] = i < begin || i >= end ? largest : za[at] + lambda * zl[at];
        }
    return scores;
}

std::vector<TokenIndex> chosenBy(const Numbers& scores, const ParameterValues& values, std::int64_t count) {
    const auto n = std::int64_t(scores.size());
    std::vector<TokenIndex> kept;
    for (std::int64_t left = count; left > 0; --left) {
        std::int64_t best = -1;
        const auto rank = [&](std::int64_t i) {
            const bool guarded = i < values.integer("protect_first") || i >= n - values.integer("protect_last");
            return std::pair(guarded, float(scores[std::size_t(i)])); // decisions read floats
        };
        for (std::int64_t i = 0; i < n; ++i)
            if (std::find(kept.begin(), kept.end(), i) == kept.end() && (best < 0 || rank(i) > rank(best))) best = i;
        kept.push_back(TokenIndex(best));
    }
    std::sort(kept.begin(), kept.end());
    return kept;
}

std::vector<std::vector<TokenIndex>> chosenJointly(const std::vector<Numbers>& scores, const ParameterValues& values,
                                                   double retention) {
    const auto heads = std::int64_t(scores.size()), n = std::int64_t(scores.front().size());
    const std::int64_t first = values.integer("protect_first"), last = values.integer("protect_last");
    const double exact = retention * double(std::max<std::int64_t>(0, n - first - last) * heads);
    std::vector<std::vector<bool>> taken(std::size_t(heads), std::vector<bool>(std::size_t(n), false));
    const auto betterThan = [&](std::int64_t h, std::int64_t i, std::int64_t bestHead, std::int64_t best) {
        const auto rank = [&](std::int64_t head,
                              std::int64_t row) { // of equals the earlier token, then the earlier head
            const bool guarded = row < first || row >= n - last;
            return std::tuple(guarded, guarded ? 0.0F : float(scores[std::size_t(head)][std::size_t(row)]), -row,
                              -head);
        };
        return best < 0 || rank(h, i) > rank(bestHead, best);
    };
    const auto takeBest = [&](std::int64_t from, std::int64_t to) { // of the heads [from, to)
        std::int64_t best = -1, bestHead = 0;
        for (std::int64_t h = from; h < to; ++h)
            for (std::int64_t i = 0; i < n; ++i)
                if (!taken[std::size_t(h)][std::size_t(i)] && betterThan(h, i, bestHead, best)) best = i, bestHead = h;
        if (best >= 0) taken[std::size_t(bestHead)][std::size_t(best)] = true;
    };
    const auto entries = std::max<std::int64_t>(1, std::int64_t(std::nearbyint(exact)));
    for (std::int64_t e = 0; e < std::min(entries, heads * n); ++e) takeBest(0, heads);
    std::vector<std::vector<TokenIndex>> kept;
    for (std::int64_t h = 0; h < heads; ++h) {
        auto& own = taken[std::size_t(h)];
        while (std::count(own.begin(), own.end(), true) % values.integer("page") != 0 &&
               std::count(own.begin(), own.end(), true) < n)
            takeBest(h, h + 1);
        kept.emplace_back();
        for (std::int64_t i = 0; i < n; ++i)
            if (own[std::size_t(i)]) kept.back().push_back(TokenIndex(i));
    }
    return kept;
}

} // namespace kvscope::oracle
