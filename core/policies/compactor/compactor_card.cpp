// The parameters of Compactor, and the settings of its paper and of two public codes.
#include "core/policies/compactor/compactor_card.h"
#include "core/policies/citations.h"

#include "core/parameters/parameter_rows.h"
#include "core/policies/common/policy_tools.h"
#include "core/policies/common_parameters.h"
#include "core/policies/compactor/leverage_features.h"

#include <iterator>

namespace kvscope {

namespace {

ParameterSpec skipRow(std::string id, std::string label, std::string source) {
    return tokensRow(std::move(id), std::move(label), "", {0, 4096, 0}, Stage::Features,
                     "So many tokens take no part in the scores: leverage, chunks and z-scores are those of the "
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
                      "compactor-vllm counts the protected tokens in the budget but not in what it is a share of, so "
                      "less than r is kept (C9). Its formula is used for a budget in fractions: at r = 1 everything is "
                      "kept, and tokens are kept as they are given.",
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
            {"kvpress",
             "kvpress",
             "k 48 by Cholesky, centred, λ = fraction removed, z-scores over the layer",
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
              {"protect_last", "4"},
              {"rounding", "floor"}}},
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

} // namespace

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

} // namespace kvscope
