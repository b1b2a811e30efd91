// Choosing and block processing as plain loops: take the best one, again and again; let a block in, cut back.
#include "tests/policies/naive_policies.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace naive_policies {

namespace {

int number(const Options& options, const std::string& id, int otherwise = 0) {
    const auto found = options.find(id);
    return found == options.end() ? otherwise : std::stoi(found->second);
}

int protectedFirst(const std::string& policy, const Options& options) {
    return policy == "streaming_llm" ? number(options, "sinks") : number(options, "protect_first");
}

int protectedLast(const std::string& policy, const Options& options, int budget) {
    int last = number(options, "protect_last");
    if (policy == "snapkv" || policy == "pyramidkv") last = std::max(last, number(options, "window"));
    if (policy == "h2o")
        while (last + 1 <= std::stod(options.at("recent_share")) * budget + 1e-9) ++last;
    if (policy == "keydiff") {
        int window = 0; // the largest whole number that is at most w N
        while (window + 1 <= std::stod(options.at("window_share")) * budget + 1e-9) ++window;
        last = std::max(last, window);
    }
    return last;
}

// Rows kept of one head: the first ones, the last ones backwards, then the best free one at a time.
std::vector<int> choose(const Vector& score, int count, int first, int last, double& closest) {
    const int m = static_cast<int>(score.size());
    std::vector<bool> kept(score.size(), false);
    int left = count;
    for (int i = 0; i < m && i < first && left > 0; ++i, --left) kept[static_cast<std::size_t>(i)] = true;
    for (int i = m - 1; i >= 0 && i >= m - last && left > 0; --i) {
        left -= kept[static_cast<std::size_t>(i)] ? 0 : 1;
        kept[static_cast<std::size_t>(i)] = true;
    }
    double worstKept = std::numeric_limits<double>::infinity();
    for (; left > 0; --left) {
        std::size_t best = score.size();
        for (std::size_t i = 0; i < score.size(); ++i)
            if (!kept[i] && (best == score.size() || score[i] > score[best])) best = i;
        kept[best] = true;
        worstKept = score[best];
    }
    std::vector<int> rows;
    for (std::size_t i = 0; i < score.size(); ++i) {
        if (kept[i])
            rows.push_back(static_cast<int>(i));
        else if (std::isfinite(worstKept) && score[i] < worstKept) // equal scores are decided by their place
            closest = std::min(closest, (worstKept - score[i]) / std::max(1e-30, std::abs(worstKept)));
    }
    return rows;
}

std::vector<int> blockEnds(const Options& options, int tokens, int budget) {
    const int prompt = tokens - number(options, "decode_tokens");
    const int block = number(options, "prompt_block") > 0 ? number(options, "prompt_block") : tokens;
    int begin =
        options.count("prompt_alignment") && options.at("prompt_alignment") == "kvpress" ? std::min(budget, prompt) : 0;
    std::vector<int> ends;
    for (int token = 1; token <= tokens; ++token) {
        const bool promptBlockEnds = token <= prompt && token > begin && (token - begin) % block == 0;
        const bool decodeBlockEnds = token > prompt && (token - prompt) % number(options, "decode_block", 1) == 0;
        if (promptBlockEnds || decodeBlockEnds || token == prompt || token == tokens) ends.push_back(token);
    }
    return ends;
}

} // namespace

// The ratio for kvpress, digit by digit: "0.07" -> "0.93". The last digit typed is not 0.
double fractionRemoved(std::string digits) {
    if (digits == "1") return 0;
    for (std::size_t i = digits.find('.') + 1; i < digits.size(); ++i)
        digits[i] = static_cast<char>('0' + (i + 1 == digits.size() ? 10 : 9) - (digits[i] - '0'));
    return std::stod(digits);
}

int budgetTokens(const std::string& budget, int n, const std::string& rounding) {
    if (budget.back() == 't') return std::stoi(budget);
    const double kept = std::stod(budget);
    int tokens = 0;
    if (rounding == "floor") {
        tokens = static_cast<int>(n * (1 - fractionRemoved(budget)));
    } else if (rounding == "round") {
        tokens = static_cast<int>(std::lround(kept * n - 1e-9)); // no test case lies on a half
    } else {
        while (tokens < kept * n - 1e-9) ++tokens;
    }
    return std::max(1, std::min(n, tokens));
}

// A straight line from `most` in layer 0 to `least` in the last one, once in whole numbers and once in fractions.
int pyramidTokens(const Options& options, const Layer& layer, int n, int rounded, const std::string& budget) {
    const bool once = options.at("schedule") == "real" && options.at("rounding") == "round" && budget.back() != 't';
    const double mean = once ? n * (1 - fractionRemoved(budget)) : rounded;
    const int window = number(options, "window");
    const double beta = std::stod(options.at("beta"));
    const int gaps = options.at("slope") == "layers" ? layer.numLayers : layer.numLayers - 1;
    if (layer.numLayers == 1 || mean <= window) return rounded;
    if (options.at("schedule") == "integer") {
        const int free = rounded - window;
        if (n < 2 * free) return rounded;
        int least = 0, fall = 0;
        while ((least + 1) * beta <= free) ++least;
        int most = 2 * free - least;
        if (most + window >= n) {
            most = n - window;
            least = 2 * free - most;
        }
        while ((fall + 1) * gaps <= most - least) ++fall;
        return most - layer.layer * fall + window;
    }
    double least = mean / beta, most = 2.0 * mean - least;
    if (most + window >= n) {
        most = n - window;
        least = 2.0 * mean - most;
    }
    if (most > n || least > most || least < window) return rounded;
    const double exact = most - layer.layer * (most - least) / gaps;
    int tokens = 1; // Python's round: a half goes to the even side
    while (tokens + 0.5 < exact || (tokens + 0.5 == exact && tokens % 2 == 1)) ++tokens;
    return tokens;
}

namespace {

// As the authors' code does it: keys are repeated to all query heads, and every one of them is a KV head then.
Result runRepeated(const std::string& policy, Options options, const Layer& layer, const std::string& budget) {
    Layer repeated = layer;
    repeated.keys.clear();
    for (std::size_t q = 0; q < layer.gqaGroupOf.size(); ++q) {
        repeated.keys.push_back(layer.keys[static_cast<std::size_t>(layer.gqaGroupOf[q])]);
        repeated.gqaGroupOf[q] = static_cast<int>(q);
    }
    options["copies"] = "kv_head";
    Result result = run(policy, options, layer, budget);
    const Result alone = run(policy, options, repeated, budget);
    result.closest = alone.closest;
    result.queryHeads = alone.kept;
    for (std::size_t h = 0; h < result.kept.size(); ++h) {
        result.kept[h].clear();
        for (int token = 0; token < layer.tokens(); ++token) {
            bool any = false;
            for (std::size_t q = 0; q < alone.kept.size(); ++q)
                any = any || (layer.gqaGroupOf[q] == static_cast<int>(h) &&
                              std::find(alone.kept[q].begin(), alone.kept[q].end(), token) != alone.kept[q].end());
            if (any) result.kept[h].push_back(token);
        }
    }
    return result;
}

} // namespace

Result run(const std::string& policy, const Options& options, const Layer& layer, const std::string& budget) {
    if (options.contains("copies") && options.at("copies") == "query_head")
        return runRepeated(policy, options, layer, budget);
    const int n = layer.tokens();
    int limit = budgetTokens(budget, n, options.count("rounding") ? options.at("rounding") : "ceil");
    if (policy == "pyramidkv") limit = pyramidTokens(options, layer, n, limit, budget);
    Result result;
    result.kept.resize(layer.keys.size());
    int begin = 0;
    std::vector<Visit> visits;
    for (const int end : blockEnds(options, n, limit)) {
        for (auto& rows : result.kept)
            for (int token = begin; token < end; ++token) rows.push_back(token);
        visits.push_back({begin, end, result.kept});
        begin = end;
        const int cached = static_cast<int>(result.kept.front().size());
        if (cached <= limit && end < n) continue;
        result.rows = result.kept;
        result.scores = scores(policy, options, layer, result.rows, end, visits);
        Step step{end, cached, {}};
        for (std::size_t h = 0; h < result.kept.size(); ++h) {
            const int count = std::min(limit, cached);
            std::vector<int> kept, evicted;
            for (const int row : choose(result.scores[h], count, protectedFirst(policy, options),
                                        protectedLast(policy, options, count), result.closest))
                kept.push_back(result.rows[h][static_cast<std::size_t>(row)]);
            for (const int token : result.rows[h])
                if (std::find(kept.begin(), kept.end(), token) == kept.end()) evicted.push_back(token);
            result.kept[h] = kept;
            step.evicted.push_back(evicted);
        }
        if (cached > limit) result.steps.push_back(step);
    }
    return result;
}

} // namespace naive_policies
