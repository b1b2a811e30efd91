// The step log of BalanceKV as JSON, for export and for step-by-step views.
#include "core/policies/balance/balance_log.h"

#include "core/base/json/json_text.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace kvscope {

namespace {

using nlohmann::json;

json walkJson(const BalanceWalkLog& walk) {
    return {{"kv_head", walk.kvHead},
            {"level", walk.level},
            {"place", walk.place},
            {"tree", walk.tree == 0 ? "denominator" : "numerator"},
            {"bucket", walk.bucket},
            {"repeats", walk.repeats},
            {"tokens", walk.tokens},
            {"uniforms", walk.walk.uniforms},
            {"y_eta", walk.products},
            {"p", walk.probabilities},
            {"signs", walk.signs},
            {"imbalance", walk.imbalance},
            {"Q", walk.quadratic},
            {"sum_M_jj", walk.fairCoins},
            {"discrepancy", walk.discrepancy()}};
}

json setJson(const BalanceSetLog& set) {
    return {{"kv_head", set.kvHead}, {"level", set.level},   {"tree", set.tree == 0 ? "denominator" : "numerator"},
            {"bucket", set.bucket},  {"tokens", set.tokens}, {"weights", set.weights}};
}

} // namespace

double BalanceWalkLog::discrepancy() const {
    return quadratic.empty() ? 0 : std::sqrt(std::max(0.0, quadratic.back()));
}

std::string BalanceLog::json() const {
    nlohmann::json all = {{"walks", nlohmann::json::array()}, {"sets", nlohmann::json::array()}};
    for (const BalanceWalkLog& walk : walks) all["walks"].push_back(walkJson(walk));
    for (const BalanceSetLog& set : sets) all["sets"].push_back(setJson(set));
    if (!rho.empty()) all["needle"] = {{"rho", rho}, {"raw", raw}, {"dilated", dilated}};
    return jsonLine(all);
}

} // namespace kvscope
