// Compactor: adds two standardised scores of a token, the leverage of its key and the non-causal attention that it
// receives inside its chunk. Neither needs the question.
#include "core/engine/engine.h"
#include "core/engine/leverage.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/compactor/leverage_features.h"
#include "core/policies/fraction_removed.h"

#include "core/base/error.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/citations.h"
#include "core/policies/common_parameters.h"
#include "core/policies/keep_best.h"
#include "core/policies/policy.h"
#include "core/policies/policy_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kvscope {

namespace {

ParameterSpec skipRow(std::string id, std::string label, std::string source) {
    return tokensRow(std::move(id), std::move(label), "", {0, 4096, 0}, Stage::Features,
                     "This many tokens take no part in the scores: leverage, chunks and z-scores are those of the "
                     "others. They show the largest score; protect them if they are to be kept for certain (C10).",
                     std::move(source));
}

ParameterTable attentionRows() {
    return {
        tokensRow("chunk", "Attention chunk", "C", {1, 1 << 20, 256}, Stage::Features,
                  "Every query sees all keys of its own chunk, before and after it, and no others. C = n is the full "
                  "non-causal map. Chunks are cut after the skipped first tokens.",
                  "Compactor 3.3: 256, searched 64 to 512; kvpress 256; compactor-vllm 128"),
        choiceRow(
            "logit_scale", "Logits",
            {{"one", "Unscaled", "q·k, as the paper's formula and both codes have it"},
             {"model", "Scaled", "the model's factor, 1/√d as a rule"}},
            Stage::Features,
            "Unscaled logits make rows of the softmax nearly one-hot: the score almost counts how often a key wins.",
            "Compactor 3.3; compactor-vllm passes 1.0"),
        choiceRow(
            "last_chunk", "Short last chunk",
            {{"exact", "Exact", "a shorter chunk, nothing else"},
             {"kvpress", "kvpress", "zero keys up to C take their share, zero queries give (C − L)/C to every token"},
             {"vllm", "compactor-vllm", "zero queries up to a multiple of 64 rows give 1/C each"}},
            Stage::Features, "What the padding of the last chunk does to its tokens (C8).",
            "kvpress 8bb29b9: masks with -1e-9; compactor-vllm 8bbac3a"),
        skipRow("skip_first", "Skip first", "kvpress: 8"), skipRow("skip_last", "Skip last", "kvpress: 4")};
}

ParameterTable scoreRows() {
    return {groupRuleParameter("How the query heads of a KV head add up, before value norm and pooling.",
                               "Compactor: not stated; kvpress mean; compactor-vllm sum"),
            flagRow("value_norm", "Times value norm", true, Stage::Combine,
                    "Multiplies the attention part by the length of the value, before pooling.",
                    "Compactor 3.3 and kvpress: yes; compactor-vllm: no"),
            integerRow("pool_width", "Pooling width", "", "tokens", {1, 15, 3, 2}, Stage::Combine,
                       "Average of the attention part along the tokens, zero-padded and divided by the full width at "
                       "the edges. Odd; 1 leaves it as it is.",
                       "Compactor 3.3: mean, width not stated; kvpress 3; compactor-vllm none")};
}

ParameterTable standardiseRows() {
    return {
        choiceRow(
            "z_scope", "z-score over",
            {{"head", "Head", "mean and deviation of each KV head"},
             {"layer", "Layer",
              "of all KV heads together: a head with a wide spread weighs its parts differently (C11)"}},
            Stage::Combine,
            "Over what the two parts are standardised before they are added. Changes the ranking inside heads (C11).",
            "Compactor 3.4: per head; kvpress and compactor-vllm: all heads"),
        flagRow("z_chunks", "z-score in token chunks", false, Stage::Combine,
                "Standardises leverage inside every token chunk instead of over all tokens.",
                "compactor-vllm: chunks of 512"),
        flagRow("z_sample", "Sample deviation", false, Stage::Combine,
                "Divides the squared deviations by count − 1 instead of count.",
                "kvpress: sample; compactor-vllm: population"),
        realRow("z_floor", "Smallest deviation", "", {0, 1e-2, 0, 0, true}, Stage::Combine,
                "The standard deviation is raised to it. Constant scores have z = 0 in any case (C3).",
                "kvpress: 1e-6; Compactor, compactor-vllm: none"),
        realRow("lambda", "Weight of leverage", "λ", {0, 3, 0.3, 0.01}, Stage::Combine,
                "score = z(attention) + λ z(leverage). The text says 0.3, the Full row of Table 2 0.35 (C12).",
                "Compactor 4: 0.3, searched 0.15 to 0.6; compactor-vllm 0.5"),
        choiceRow("lambda_rule", "λ is",
                  {{"fixed", "As set", "the value of λ"},
                   {"removed", "The fraction removed", "1 − retention, as kvpress has it"}},
                  Stage::Select, "kvpress takes its compression ratio as λ; its fallback of 0.35 is never reached.",
                  "kvpress compactor_press")};
}

ParameterTable selectionRows() {
    return {choiceRow("selection", "Chosen",
                      {{"head", "Per head", "every KV head keeps the same number"},
                       {"joint", "Jointly", "one ranking over all KV heads of the layer"}},
                      Stage::Select,
                      "Jointly, heads keep different numbers of tokens; the budget is their average. Not in blocks.",
                      "Compactor and kvpress: per head; compactor-vllm: jointly"),
            choiceRow("entries", "Joint budget",
                      {{"all", "Tokens times heads", "the budget counts every token"},
                       {"vllm", "compactor-vllm", "round(r (n − first − last) heads), the protected ones included"}},
                      Stage::Select,
                      "compactor-vllm counts the protected tokens in the budget, which is a share of the other tokens, "
                      "so less than r is kept (C9). Its formula is used for a budget that is a fraction: at r = 1 "
                      "everything is kept, and a budget in tokens is kept as given.",
                      "compactor-vllm 8bbac3a"),
            integerRow("page", "Page", "", "tokens", {1, 1024, 1}, Stage::Select,
                       "Of a joint choice: every head is filled up to a multiple of this with its next best tokens, "
                       "beyond the budget (C9).",
                       "compactor-vllm: 128")};
}

ParameterTable ownParameters() {
    ParameterTable all = leverageParameters();
    for (const ParameterTable& rows : {attentionRows(), scoreRows(), standardiseRows(), selectionRows()})
        std::ranges::copy(rows, std::back_inserter(all));
    return all;
}

std::vector<PolicyVariant> variants() {
    return {{"paper", "Paper", "k 64, C 256, λ 0.3, z-scores per head", {}},
            kvpressVariant("k 48 by Cholesky, centred, λ = fraction removed, z-scores over the layer",
                           {{"sketch_size", "48"},
                            {"centred", "true"},
                            {"route", "cholesky"},
                            {"regulariser", "ridge"},
                            {"regulariser_strength", "0.01"},
                            {"last_chunk", "kvpress"},
                            {"skip_first", "8"},
                            {"skip_last", "4"},
                            {"z_scope", "layer"},
                            {"z_sample", "true"},
                            {"z_floor", "1e-06"},
                            {"lambda_rule", "removed"},
                            {"protect_first", "8"},
                            {"protect_last", "4"}}),
            {"compactor_vllm",
             "compactor-vllm",
             "k 48 in chunks of 512, C 128, λ 0.5, chosen over all heads in pages of 128",
             {{"sketch_size", "48"},   {"sketch_scope", "all"},  {"centred", "true"},
              {"token_chunk", "512"},  {"regulariser", "ridge"}, {"regulariser_strength", "0.005"},
              {"chunk", "128"},        {"last_chunk", "vllm"},   {"group_rule", "sum"},
              {"value_norm", "false"}, {"pool_width", "1"},      {"z_scope", "layer"},
              {"z_chunks", "true"},    {"lambda", "0.5"},        {"selection", "joint"},
              {"entries", "vllm"},     {"page", "128"},          {"protect_first", "16"},
              {"protect_last", "64"},  {"rounding", "round"}}}};
}

PolicyCard compactorCard() {
    return {.id = "compactor",
            .name = "Compactor",
            .summary = "Keeps tokens whose keys stick out before RoPE or are attended to inside their chunk, in both "
                       "directions of time; no question needed.",
            .paper = citation("Compactor", "Algorithm 1, sections 3.1 to 3.4"),
            .needs = {Need::Keys, Need::Values, Need::Queries, Need::PreRopeKeys},
            .variants = variants(),
            .parameters = withCommonParameters(ownParameters(), CommonParameters::All,
                                               {"lambda", "sketch_size", "chunk", "protect_first"}),
            .family = PolicyFamily::Compactor,
            .usesSeed = true,
            .scoreLabel = "score z(attention) + λ z(leverage)"};
}

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
    return input.engine.gatherRows(input.queries, rows);
}

HostTensor attentionOf(const PolicyInput& input, const ParameterValues& values, const Middle& middle) {
    AttentionChunksInput chunks;
    chunks.queries = queriesOf(input, middle);
    chunks.keys = input.engine.rows(input.keys, middle.begin, middle.end);
    chunks.rule = input.attention;
    if (values.choice("logit_scale") == "one") chunks.rule.scaling = 1;
    if (input.attention.slidingWindow > 0) // a cache has gaps, and a window counts tokens
        for (const std::vector<TokenIndex>& tokens : input.positions)
            chunks.positions.emplace_back(tokens.begin() + middle.begin, tokens.begin() + middle.end);
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
        if (middle.empty()) return {HostTensor::filled({input.keys.size(0), input.rowCount()}), {}};
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
        constexpr float kNone = NAN;
        using Part = std::pair<const char*, const HostTensor*>;
        for (const auto& [name, part] : {Part{"attention", &attention}, Part{"leverage", &features.at("leverage")},
                                         Part{"z_attention", &zAttention}, Part{"z_leverage", &zLeverage}})
            scores.parts[name] = padColumns(*part, middle.begin, input.rowCount(), kNone);
        return scores;
    }

    RowSelection select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                        std::int64_t count) const override {
        const Middle middle = middleOf(input, values);
        HostTensor remadeTotal;
        double lambda = values.real("lambda");
        const bool remade = values.choice("lambda_rule") == "removed" && !middle.empty();
        if (remade) {
            lambda =
                fractionRemoved(input.retention < 0 ? static_cast<double>(count) / static_cast<double>(input.rowCount())
                                                    : input.retention);
            const auto part = [&](const char* name) {
                return columnRange(scores.parts.at(name), middle.begin, middle.end);
            };
            remadeTotal = blended(input, part("z_attention"), part("z_leverage"), lambda, middle);
        }
        const HostTensor& total = remade ? remadeTotal : scores.total;
        RowSelection out = values.choice("selection") == "joint"
                               ? chosenJointly(input, total, values, count)
                               : keepBest(input, total, protection(values, count), count);
        out.total = std::move(remadeTotal);
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

    RowSelection chosenJointly(const PolicyInput& input, const HostTensor& total, const ParameterValues& values,
                               std::int64_t count) const {
        const std::int64_t heads = input.keys.size(0), rows = input.rowCount();
        JointRequest request{total, count * heads, protection(values, count), values.integer("page")};
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

const Policy& compactorPolicy() { return onlyPolicy<Compactor>(); }

} // namespace kvscope
