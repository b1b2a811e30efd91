// The parameter rows of both forms of BalanceKV, each with the disagreement that it decides.
#include "core/policies/balance/balance_parameters.h"

#include "core/parameters/parameter_rows.h"

namespace kvscope {

namespace {

ParameterSpec gammaParameter() {
    return realRow("gamma", "Gain", "γ", {0, 16, 4}, Stage::Select,
                   "p = 1/2 − γ y; in theory 1/(2 c R²), below 1e-13 at the paper's norms, where signs are fair coins; "
                   "at 4 the walk is greedy (B1). 0 tosses coins.",
                   "BalanceKV code: 4.0");
}

/// "clip" or "fail" when p leaves [0, 1] (B2).
ParameterSpec overflowParameter() {
    return choiceRow(
        "on_overflow", "p outside [0, 1]",
        {{"clip", "Clip", "+1 iff u < p, which clips p to [0, 1] (code)"},
         {"fail", "Fail", "the walk FAILs and is repeated with fresh uniforms, at most eight times (paper)"}},
        Stage::Select, "FAIL exists only in the papers (B2). At the code's γ nearly every walk would fail.",
        "BalanceKV Algorithm 2; code: clip");
}

ParameterTable needleParameters() {
    return {
        choiceRow("needle", "Needles",
                  {{"off", "Off", "nothing is protected"},
                   {"detection_layer", "Detection layer", "found in one layer, used from there on (code)"},
                   {"own_layer", "Each layer", "found in the layer itself (paper's wording)"}},
                  Stage::Select,
                  "Protects keys that point away from the mean key of their block. A large common component hides them "
                  "all (B17, B19); more than half cannot be kept (B18).",
                  "BalanceKV 4.3; code: layer index 1"),
        integerRow("detection_layer", "Detection layer", "", "layer", {0, 255, 1}, Stage::Select,
                   "0-based layer that looks for needles; earlier layers protect nothing (B17).", "BalanceKV code: 1"),
        realRow("needle_threshold", "Needle threshold", "", {-1, 1, 0}, Stage::Select,
                "Protected when the mean product with the block is at most this, in units of the mean ||k||² (B17).",
                "BalanceKV code: 0"),
        integerRow("needle_dilation", "Dilation", "", "tokens", {0, 64, 25}, Stage::Select,
                   "This many tokens on each side of a needle are protected too; the paper does not mention it (B17).",
                   "BalanceKV code: 25")};
}

} // namespace

ParameterTable balanceRoundParameters() {
    ParameterTable rows = {
        integerRow("rounds", "Rounds", "T", "rounds", {-1, 6, -1}, Stage::Select,
                   "Each keeps exactly ⌊n/2⌋ of the middle tokens (B11). −1: as many as the budget asks for, the last "
                   "one on a part of the tokens (as in Table 5).",
                   "BalanceKV B.1: 1 to 4, LongBench 2"),
        integerRow("block", "Block", "B", "tokens", {1, 1024, 256}, Stage::Select,
                   "Tokens that are balanced together; the last block is padded with zeros (B10).",
                   "BalanceKV: 256, Fig. 3: 64 to 256; scripts: 128"),
        gammaParameter(),
        realRow("temp", "Temperature", "", {0, 1, 0.1}, Stage::Select,
                "Factor on the logits of the kernel, beside 1/√d.", "Notebook: 0.1; scripts: 1.0"),
        realRow("beta", "Offset", "β", {-5, 5, 0}, Stage::Select,
                "Subtracted from the logits of the kernel; the scripts' flag is ignored.", "BalanceKV code: 0"),
        realRow("value_constant", "Value constant", "", {0, 1, 0.025}, Stage::Select,
                "Added to <v_i, v_j>: numerator and denominator balanced by one walk. Not multiplied by the weights "
                "after round 1 (B8).",
                "BalanceKV code: 0.025; unweighted: 0"),
        choiceRow(
            "shift", "Key shift",
            {{"middle_mean", "Mean of all", "the mean of all tokens between sinks and recents"},
             {"block_mean", "Mean of the block", "each block's own, padding included (code)"},
             {"none", "None", "keys as they are"}},
            Stage::Select,
            "What is subtracted from the keys. The paper reads as the mean of all, the code takes the block's (B9).",
            "BalanceKV B.5; code: block mean"),
        choiceRow("halving", "Who stays",
                  {{"weighted", "Weighted", "weight 2 up to where one sign reaches n/2, then 1"},
                   {"unweighted", "Minus first", "the −1 tokens, topped up by the earliest +1; each stands for two"},
                   {"smaller_group", "Smaller group", "the sign with fewer tokens, topped up; each stands for two"}},
                  Stage::Select,
                  "How signs become exactly ⌊n/2⌋ tokens. Paper: the smaller group; codes differ (B11, B12).",
                  "BalanceKV Algorithm 2; code: weightedbw, bw")};
    rows.push_back(
        flagRow("same_weights", "Same weights both sides", false, Stage::Select,
                "The denominator counts the numerator's weights instead of 2 per round; they differ in the code (B7).",
                "BalanceKV code: off, needle code: on"));
    rows.push_back(choiceRow("partial_subset", "Partial round",
                             {{"random", "Random", "a fair draw"},
                              {"earliest", "Earliest", "the oldest tokens"},
                              {"latest", "Latest", "the newest tokens"}},
                             Stage::Select,
                             "Which 2α of the tokens the last, partial round halves; the paper does not say (Table 5).",
                             "BalanceKV 4.5, Table 5"));
    rows.push_back(overflowParameter());
    rows.push_back(integerRow("sink", "Sinks", "", "tokens", {0, 1024, 256}, Stage::Select,
                              "First tokens, kept exactly. Where sinks and recents overlap each token counts once; the "
                              "code stores it twice (B21).",
                              "BalanceKV B.1: 256; scripts: 32"));
    rows.push_back(integerRow("recent", "Recent", "", "tokens", {0, 1024, 256}, Stage::Select,
                              "Last tokens before the cut, kept exactly (B21).", "BalanceKV B.1: 256; scripts: 32"));
    for (ParameterSpec& row : needleParameters()) rows.push_back(std::move(row));
    return rows;
}

RoundSettings balanceRoundSettings(const ParameterValues& values) {
    RoundSettings settings;
    const std::string &halving = values.choice("halving"), &shift = values.choice("shift"),
                      &subset = values.choice("partial_subset");
    settings.halving = halving == "weighted"     ? Halving::Weighted
                       : halving == "unweighted" ? Halving::Unweighted
                                                 : Halving::SmallerGroup;
    settings.shift = shift == "middle_mean"  ? KeyShift::MiddleMean
                     : shift == "block_mean" ? KeyShift::BlockMean
                                             : KeyShift::None;
    settings.subset = subset == "random"     ? PartialSubset::Random
                      : subset == "earliest" ? PartialSubset::Earliest
                                             : PartialSubset::Latest;
    settings.block = values.integer("block");
    settings.gamma = values.real("gamma");
    settings.temperature = values.real("temp");
    settings.beta = values.real("beta");
    settings.valueConstant = values.real("value_constant");
    settings.failOnOverflow = values.choice("on_overflow") == "fail";
    settings.sameWeights = values.flag("same_weights");
    return settings;
}

ParameterTable balanceStreamParameters() {
    ParameterTable rows = {
        integerRow("batch", "Batch", "t", "tokens", {16, 4096, 256}, Stage::Select,
                   "Tokens of a leaf of the trees; the last incomplete batch stays exact.",
                   "BalanceKV Theorem 3.1: only up to constants"),
        integerRow("levels", "Levels", "T", "levels", {0, 8, 2}, Stage::Select,
                   "How often a set is merged and halved: C^T is never reduced and grows with n. 0: exact but for "
                   "erased values.",
                   "BalanceKV Algorithm 4: log2(n/t)"),
        choiceRow("steps", "Step size",
                  {{"theory", "30 ln(m/δ)", "c of Algorithm 2, m the size of the node's input"},
                   {"manual", "c", "c as given"},
                   {"gain", "γ", "p = 1/2 − γ y with the plain kernel, as in the blocked code"}},
                  Stage::Select,
                  "How strongly the walk leans against what it has summed. At real norms the theory's walk tosses "
                  "coins (B1).",
                  "BalanceKV Algorithm 2"),
        realRow("c", "Step constant", "c", {0.5, 500, 4}, Stage::Select,
                "p = 1/2 − y/(2c), y in units of R² = e^(r²/√d) r_val².", "BalanceKV Algorithm 2"),
        gammaParameter(),
        realRow("delta", "Failure probability", "δ", {0, 0.1, 0}, Stage::Select, "Of a walk; 0 stands for 1/n².",
                "BalanceKV Theorem 3.4: 1/poly(n)"),
        overflowParameter(),
        realRow("radius", "Key radius", "r", {0, 1000, 0}, Stage::Select,
                "Bound on the norm of keys; 0: the largest norm before the cut.", "BalanceKV Algorithm 1"),
        choiceRow("erase", "Erase line",
                  {{"algorithm", "Algorithm 1", "ε/(2n) e^(−r²/√d) v_max"},
                   {"proof", "Proof", "ε/√n v_max"},
                   {"none", "None", "no bucket is dropped"}},
                  Stage::Select,
                  "A bucket of values is dropped when 2^i is at most this (B6). Zero values have no bucket.",
                  "BalanceKV Algorithm 1; proof of Theorem 3.1"),
        realRow("epsilon", "Accuracy", "ε", {0.01, 1, 0.1}, Stage::Select,
                "Accuracy aimed at; here it only moves the erase line.", "BalanceKV Theorem 3.1")};
    rows[3].logarithmic = true;
    return rows;
}

} // namespace kvscope
