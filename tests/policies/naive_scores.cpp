// The scores of every policy as one loop per sum sign of its formula.
#include "core/base/random.h"
#include "tests/policies/naive_policies.h"

#include <algorithm>
#include <cmath>

namespace naive_policies {

namespace {

double dot(const Vector& a, const Vector& b) {
    double sum = 0;
    for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
    return sum;
}

double norm(const Vector& a) { return std::sqrt(dot(a, a)); }

double similarity(const std::string& metric, const Vector& a, const Vector& b) {
    if (metric == "dot") return dot(a, b);
    if (metric == "cosine") return norm(a) * norm(b) > 0 ? dot(a, b) / (norm(a) * norm(b)) : 0;
    Vector difference(a.size());
    for (std::size_t c = 0; c < a.size(); ++c) difference[c] = a[c] - b[c];
    return norm(difference);
}

Vector meanOf(const std::vector<Vector>& keys, bool normalised) {
    Vector mean(keys.front().size(), 0.0);
    for (const Vector& key : keys)
        for (std::size_t c = 0; c < mean.size(); ++c)
            mean[c] += !normalised ? key[c] : norm(key) > 0 ? key[c] / norm(key) : 0;
    for (double& x : mean) x /= static_cast<double>(keys.size());
    return mean;
}

// Half way between the two middle values where their number is even.
Vector medianOf(const std::vector<Vector>& keys) {
    Vector median;
    for (std::size_t c = 0; c < keys.front().size(); ++c) {
        Vector column;
        for (const Vector& key : keys) column.push_back(key[c]);
        std::sort(column.begin(), column.end());
        const std::size_t n = column.size();
        median.push_back((column[(n - 1) / 2] + column[n / 2]) / 2);
    }
    return median;
}

Vector keydiff(const Options& options, const std::vector<Vector>& keys) {
    const std::string anchor = options.at("anchor"), metric = options.at("metric");
    const double sign = metric == "euclidean" ? 1 : -1;
    const Vector mu = anchor == "median" ? medianOf(keys) : meanOf(keys, anchor == "normalised_mean");
    Vector result;
    for (const Vector& key : keys) {
        double total = 0;
        if (anchor == "pairwise")
            for (const Vector& other : keys) total += similarity(metric, key, other);
        else
            total = similarity(metric, mu, key);
        result.push_back(sign * total);
    }
    return result;
}

// Softmax of query r of head q over the cached tokens that it may see; over all of them when nothing is masked.
Vector attention(const Layer& layer, int q, int r, const std::vector<int>& rows, bool masked = true) {
    const int time = layer.firstQuery + r;
    const auto kv = static_cast<std::size_t>(layer.gqaGroupOf[static_cast<std::size_t>(q)]);
    Vector weights;
    double total = 0;
    for (const int token : rows) {
        const bool visible =
            !masked || (token <= time && (layer.slidingWindow == 0 || token > time - layer.slidingWindow));
        double logit = layer.scaling * dot(layer.queries[static_cast<std::size_t>(q)][static_cast<std::size_t>(r)],
                                           layer.keys[kv][static_cast<std::size_t>(token)]);
        if (layer.softcap > 0) logit = layer.softcap * std::tanh(logit / layer.softcap);
        weights.push_back(visible ? std::exp(logit) : 0);
        total += weights.back();
    }
    for (double& weight : weights) weight = total > 0 ? weight / total : 0;
    return weights;
}

// Sum over the last `window` queries before `end` of the attention of query head q.
Vector windowSums(const Layer& layer, int q, int window, const std::vector<int>& rows, int end) {
    Vector sums(rows.size(), 0.0);
    const int captured = static_cast<int>(layer.queries[static_cast<std::size_t>(q)].size());
    for (int time = std::max(end - window, 0); time < end; ++time) {
        const int r = time - layer.firstQuery;
        if (r < 0 || r >= captured) continue;
        const Vector weights = attention(layer, q, r, rows);
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weights[i];
    }
    return sums;
}

Vector pooled(const Vector& profile, bool average, int width) {
    Vector result;
    const int n = static_cast<int>(profile.size());
    for (int i = 0; i < n; ++i) {
        double sum = 0, largest = -1e300;
        for (int j = i - width / 2; j <= i + width / 2; ++j) {
            const bool exists = j >= 0 && j < n;
            sum += exists ? profile[static_cast<std::size_t>(j)] : 0;
            largest = exists ? std::max(largest, profile[static_cast<std::size_t>(j)]) : largest;
        }
        result.push_back(average ? sum / width : largest);
    }
    return result;
}

// Mean of each entry and those before it, at most `width`, none from before the last multiple of `tile`.
Vector trailing(const Vector& profile, int width, int tile) {
    Vector result;
    for (int i = 0; i < static_cast<int>(profile.size()); ++i) {
        double sum = 0, count = 0;
        for (int j = i; j > i - width && j >= 0; --j) {
            sum += profile[static_cast<std::size_t>(j)];
            ++count;
            if (tile > 0 && j % tile == 0) break;
        }
        result.push_back(sum / count);
    }
    return result;
}

// Mean, sum or maximum over the query heads that `belongs` names.
template <class Profile, class Belongs>
Vector overHeads(const Layer& layer, const std::string& rule, Profile profileOf, Belongs belongs) {
    Vector result;
    int heads = 0;
    for (int q = 0; q < static_cast<int>(layer.gqaGroupOf.size()); ++q) {
        if (!belongs(q)) continue;
        const Vector profile = profileOf(q);
        if (heads++ == 0) {
            result = profile;
            continue;
        }
        for (std::size_t i = 0; i < profile.size(); ++i)
            result[i] = rule == "max" ? std::max(result[i], profile[i]) : result[i] + profile[i];
    }
    for (double& x : result) x /= rule == "mean" ? heads : 1;
    return result;
}

Vector snapkv(const Options& options, const Layer& layer, int kv, const std::vector<int>& rows, int end) {
    const int window = std::stoi(options.at("window")), width = std::stoi(options.at("pool_width"));
    const int free = static_cast<int>(rows.size()) - window;
    if (free <= 0) return Vector(rows.size(), 0.0);
    const bool others = options.contains("softmax") && options.at("softmax") == "others";
    const std::vector<int> before(rows.begin(), rows.begin() + free);
    const auto profileOf = [&](int q) {
        Vector sums = windowSums(layer, q, window, others ? before : rows, end);
        sums.resize(static_cast<std::size_t>(free));
        if (options.at("pool") == "trailing") return trailing(sums, width, std::stoi(options.at("pool_tile")));
        return pooled(sums, options.at("pool") == "average", width);
    };
    const auto reads = [&](int q) { return layer.gqaGroupOf[static_cast<std::size_t>(q)] == kv; };
    Vector result = overHeads(layer, options.at("group_rule"), profileOf, reads);
    const double largest = *std::max_element(result.begin(), result.end());
    result.resize(rows.size(), largest); // the window is kept anyway and shown as the best
    return result;
}

Vector tova(const Options& options, const Layer& layer, int kv, const std::vector<int>& rows, int end) {
    const bool perLayer = options.at("scope") == "layer";
    return overHeads(
        layer, "mean", [&](int q) { return windowSums(layer, q, 1, rows, end); },
        [&](int q) { return perLayer || layer.gqaGroupOf[static_cast<std::size_t>(q)] == kv; });
}

// What query head q gave to each token in all visits (first), and how many queries saw it (second).
std::vector<std::pair<double, int>> received(const Options& options, const Layer& layer, int q,
                                             const std::vector<Visit>& visits) {
    const auto kv = static_cast<std::size_t>(layer.gqaGroupOf[static_cast<std::size_t>(q)]);
    std::vector<std::pair<double, int>> result(static_cast<std::size_t>(layer.tokens()), {0, 0});
    for (const Visit& visit : visits) {
        const std::vector<int>& rows = visit.rows[kv];
        for (int time = std::max(visit.begin, layer.firstQuery); time < visit.end; ++time) {
            const bool masked =
                options.at("mask") == "causal" || time >= visit.end - std::stoi(options.at("mask_window"));
            const Vector weights = attention(layer, q, time - layer.firstQuery, rows, masked);
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const bool sees = time >= rows[i] && (layer.slidingWindow == 0 || rows[i] > time - layer.slidingWindow);
                result[static_cast<std::size_t>(rows[i])].first += weights[i];
                result[static_cast<std::size_t>(rows[i])].second += !masked || sees ? 1 : 0;
            }
        }
    }
    return result;
}

Vector h2o(const Options& options, const Layer& layer, int kv, const std::vector<int>& tokens,
           const std::vector<Visit>& visits) {
    const auto profileOf = [&](int q) {
        const auto all = received(options, layer, q, visits);
        Vector profile;
        for (const int token : tokens) {
            const auto [sum, queries] = all[static_cast<std::size_t>(token)];
            profile.push_back(options.at("accumulate") == "sum" ? sum : queries > 0 ? sum / queries : 0);
        }
        return profile;
    };
    const auto reads = [&](int q) { return layer.gqaGroupOf[static_cast<std::size_t>(q)] == kv; };
    return overHeads(layer, options.at("group_rule"), profileOf, reads);
}

double uniform(const Layer& layer, int kv, int token) {
    kvscope::RandomKey key;
    key.seed = layer.seed;
    key.layer = static_cast<std::uint32_t>(layer.layer);
    key.kvHead = static_cast<std::uint32_t>(kv);
    key.token = static_cast<std::uint32_t>(token);
    return std::floor(kvscope::uniformAt(key) * 16777216) / 16777216;
}

Vector scoresOfHead(const std::string& policy, const Options& options, const Layer& layer, int kv,
                    const std::vector<int>& rows, int end, const std::vector<Visit>& visits) {
    std::vector<Vector> keys;
    for (const int token : rows)
        keys.push_back(layer.keys[static_cast<std::size_t>(kv)][static_cast<std::size_t>(token)]);
    if (policy == "keydiff") return keydiff(options, keys);
    if (policy == "snapkv" || policy == "pyramidkv") return snapkv(options, layer, kv, rows, end);
    if (policy == "tova") return tova(options, layer, kv, rows, end);
    if (policy == "h2o") return h2o(options, layer, kv, rows, visits);
    Vector result;
    for (std::size_t i = 0; i < rows.size(); ++i)
        result.push_back(policy == "key_norm"  ? -norm(keys[i])
                         : policy == "uniform" ? uniform(layer, kv, rows[i])
                                               : static_cast<double>(rows[i])); // streaming_llm: later is better
    return result;
}

} // namespace

PerHead<Vector> scores(const std::string& policy, const Options& options, const Layer& layer,
                       const PerHead<std::vector<int>>& rows, int end, const std::vector<Visit>& visits) {
    PerHead<Vector> result;
    for (std::size_t kv = 0; kv < rows.size(); ++kv) {
        result.push_back(scoresOfHead(policy, options, layer, static_cast<int>(kv), rows[kv], end, visits));
        for (double& score : result.back()) score = static_cast<float>(score); // decisions read floats
    }
    return result;
}

} // namespace naive_policies
