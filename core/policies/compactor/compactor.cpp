// Compactor: adds two standardised scores of a token, the leverage of its key and the non-causal attention that it
// receives inside its chunk. Neither needs the question.
#include "core/engine/engine.h"
#include "core/engine/leverage.h"
#include "core/policies/common/joint_selection.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/compactor/compactor_card.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/compactor/leverage_features.h"
#include "core/policies/fraction_removed.h"

#include "core/base/error.h"
#include "core/policies/keep_best.h"
#include "core/policies/policy_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace kvscope {

namespace {

/// The rows that are scored: all but skip_first and skip_last.
struct Middle {
    std::int64_t begin = 0, end = 0;
    bool empty() const { return begin >= end; }
};

Middle middleOf(const PolicyInput& input, const ParameterValues& values) {
    return {values.integer("skip_first"), input.rowCount() - values.integer("skip_last")};
}

[[noreturn]] void refuseMissingQueries(const PolicyInput& input, std::int64_t first) {
    throw Error({fmt::format("Compactor needs the query of token {}, and none before token {} was captured", first,
                             input.queries.empty() ? std::int64_t{input.end} : std::int64_t{input.firstQuery}),
                 "layer " + std::to_string(input.layer.value),
                 "Capture the queries of all tokens, or use policy leverage, which needs none"});
}

/// [Hq, rows of the middle, d]: the query of every scored row.
Tensor queriesOf(const PolicyInput& input, const Middle& middle) {
    const auto rowOf = [&](TokenIndex token) {
        if (input.queries.empty() || token < input.firstQuery) refuseMissingQueries(input, token);
        return token - input.firstQuery;
    };
    if (input.positions.empty()) {
        const std::int64_t first = rowOf(static_cast<TokenIndex>(middle.begin));
        return input.engine.rows(input.queries, first, first + middle.end - middle.begin);
    }
    RowPositions rows;
    for (const std::int32_t kvHead : input.attention.gqaGroupOf) {
        rows.emplace_back();
        for (std::int64_t row = middle.begin; row < middle.end; ++row)
            rows.back().push_back(rowOf(input.tokenAt(kvHead, row)));
    }
    if (input.queries.empty()) refuseMissingQueries(input, 0);
    return input.engine.gatherRows(input.queries, rows);
}

HostTensor attentionOf(const PolicyInput& input, const ParameterValues& values, const Middle& middle) {
    AttentionChunksInput chunks;
    chunks.queries = queriesOf(input, middle);
    chunks.keys = input.engine.rows(input.keys, middle.begin, middle.end);
    chunks.rule = input.attention;
    if (values.choice("logit_scale") == "one") chunks.rule.scaling = 1;
    chunks.chunk = values.integer("chunk");
    const std::int64_t last = (middle.end - middle.begin) % chunks.chunk; // tokens of a short last chunk
    if (last > 0 && values.choice("last_chunk") == "kvpress")
        chunks.zeroKeys = chunks.uniformRows = chunks.chunk - last;
    if (last > 0 && values.choice("last_chunk") == "vllm") chunks.uniformRows = (64 - last % 64) % 64;
    return input.engine.attentionChunkSums(chunks, input.checkpoint);
}

class Compactor : public Policy {
public:
    Compactor() : Policy(compactorCard()) {}

    Features features(const PolicyInput& input, const ParameterValues& values) const override {
        if (values.choice("selection") == "joint" && !isOneShot(values))
            throw Error({"a joint choice gives heads caches of different length, which blocks cannot continue",
                         "parameter selection", "Choose selection=head, or prompt_block=0 and decode_tokens=0"});
        const Middle middle = middleOf(input, values);
        if (middle.empty()) return {};
        Features out;
        const Tensor rows = input.engine.rows(input.values, middle.begin, middle.end);
        out["leverage"] = leverageOf(input, values, middle.begin, middle.end, LeverageParts::Scores).scores;
        out["attention"] = attentionOf(input, values, middle);
        out["value_norm"] = input.engine.rowNorms(rows, input.checkpoint);
        return out;
    }

    Scores combine(const PolicyInput& input, const Features& features, const ParameterValues& values) const override {
        const Middle middle = middleOf(input, values);
        if (middle.empty()) return {filledTable(input.keys.size(0), input.rowCount(), 0), {}};
        HostTensor attention =
            reduceGroups(features.at("attention"), input.attention.gqaGroupOf, input.keys.size(0), groupRuleOf(values));
        if (values.flag("value_norm")) attention = multiply(std::move(attention), features.at("value_norm"));
        attention = pool(attention, PoolKind::Average, values.integer("pool_width"));
        Standardisation how;
        how.jointly = values.choice("z_scope") == "layer";
        how.sample = values.flag("z_sample");
        how.floor = values.real("z_floor");
        const HostTensor zAttention = standardise(attention, how);
        how.chunk = values.flag("z_chunks") ? values.integer("token_chunk") : 0;
        const HostTensor zLeverage = standardise(features.at("leverage"), how);
        Scores scores{blended(input, zAttention, zLeverage, values.real("lambda"), middle), {}};
        constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
        using Part = std::pair<const char*, const HostTensor*>;
        for (const auto& [name, part] : {Part{"attention", &attention}, Part{"leverage", &features.at("leverage")},
                                         Part{"z_attention", &zAttention}, Part{"z_leverage", &zLeverage}})
            scores.parts[name] = padColumns(*part, middle.begin, input.rowCount(), kNone);
        return scores;
    }

    RowSelection select(const PolicyInput& input, const Scores& given, const ParameterValues& values,
                        std::int64_t count) const override {
        const Middle middle = middleOf(input, values);
        Scores scores = given;
        double lambda = values.real("lambda");
        const bool remade = values.choice("lambda_rule") == "removed" && !middle.empty();
        if (remade) {
            lambda =
                fractionRemoved(input.retention < 0 ? static_cast<double>(count) / static_cast<double>(input.rowCount())
                                                    : input.retention);
            const auto part = [&](const char* name) {
                return columnRange(given.parts.at(name), middle.begin, middle.end);
            };
            scores.total = blended(input, part("z_attention"), part("z_leverage"), lambda, middle);
        }
        RowSelection out = values.choice("selection") == "joint"
                               ? chosenJointly(input, scores, values, count)
                               : keepBest(input, scores.total, protection(values, count), count);
        if (remade) out.total = scores.total;
        if (input.recordSteps && !middle.empty()) out.steps = logOf(input, scores, values, lambda);
        return out;
    }

    std::vector<std::string> notes(const PolicyInput& input, const ParameterValues& values) const override {
        std::vector<std::string> notes = leverageNotes(input, values);
        if (middleOf(input, values).empty())
            notes.push_back("all tokens are among the skipped first and last ones: none has a score (C10)");
        return notes;
    }

private:
    /// Rows that are not scored get the largest score of the layer, as kvpress pads them (C10).
    static HostTensor blended(const PolicyInput& input, const HostTensor& zAttention, const HostTensor& zLeverage,
                              double lambda, const Middle& middle) {
        const HostTensor total = blend(zAttention, zLeverage, lambda);
        if (middle.begin == 0 && middle.end == input.rowCount()) return total;
        return padColumns(total, middle.begin, input.rowCount(), *std::ranges::max_element(total.data));
    }

    RowSelection chosenJointly(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                               std::int64_t count) const {
        const std::int64_t heads = input.keys.size(0), rows = input.rowCount();
        JointRequest request{scores.total, count * heads, protection(values, count), values.integer("page")};
        if (values.choice("entries") == "vllm" && input.retention >= 1) {
            request.entries = heads * rows; // compactor-vllm does not compress at r = 1
        } else if (values.choice("entries") == "vllm" && input.retention >= 0) {
            const std::int64_t free =
                std::max<std::int64_t>(0, rows - request.protection.first - request.protection.last);
            const double share = input.retention * static_cast<double>(free * heads);
            request.entries = std::max<std::int64_t>(1, std::llrint(share)); // halves to even, as Python rounds
        }
        return keepBestJointly(request);
    }

    static std::shared_ptr<const StepLog> logOf(const PolicyInput& input, const Scores& scores,
                                                const ParameterValues& values, double lambda) {
        const Middle middle = middleOf(input, values);
        auto log = std::make_shared<LeverageLog>();
        Leverage leverage = leverageOf(input, values, middle.begin, middle.end, LeverageParts::ScoresAndSpectrum);
        log->spectrum = std::move(leverage.spectrum);
        log->rank = std::move(leverage.rank);
        log->lambda = lambda;
        const auto part = [&](const char* name) { return scores.parts.at(name); };
        log->leverage = part("leverage");
        log->attention = part("attention");
        log->zLeverage = part("z_leverage");
        log->zAttention = part("z_attention");
        return log;
    }
};

} // namespace

const Policy& compactorPolicy() {
    static const Compactor policy;
    return policy;
}

} // namespace kvscope
