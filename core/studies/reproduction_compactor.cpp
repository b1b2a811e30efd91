// The rows of SubGen and Compactor.
#include "core/studies/reproduction_table.h"

namespace kvscope {

namespace {

using enum ReproductionAxis;

const std::vector<std::string> kTableBudgets = {"0.75", "0.5", "0.25", "0.1", "0.05"};
const std::string kRuler = "Llama-3.1-8B, mean score of 13 RULER tasks";

} // namespace

std::vector<std::string> reproductionBudgets() { return {"0.05", "0.1", "0.25", "0.5", "0.75"}; }

std::vector<Reproduction> subGenReproductions() {
    return {
        {"subgen-eps",
         "SubGen (3): epsilon in the operator norm against retention",
         "a theorem; no run in the paper",
         "",
         {"subgen_kcenter", "uniform", "keydiff"},
         reproductionBudgets(),
         {},
         {"eps_op"},
         Retention},
        {"subgen-table1", "SubGen Table 1: accuracy of line retrieval", "longchat-7B", "needs the model's answers"},
        {"subgen-fig1", "SubGen Fig. 1: keys with greedy centres", "Llama-2-7B, MT-Bench, 16 centres",
         "kvscope plot key_projection CAPTURE --policy subgen_kcenter@16t"},
        {"subgen-def1", "SubGen Def. 1, Cor. 1: clusters against their radius, and their growth with the stream",
         "longchat-7B, keys before RoPE cluster best", "kvscope plot clustering CAPTURE --policy subgen"},
    };
}

std::vector<Reproduction> compactorReproductions() {
    return {
        {"compactor-fig3",
         "Compactor Fig. 3: time of selection against length",
         "H100 80GB, one layer of Llama 3.1, 1e4 to 1e6 tokens",
         "",
         {"compactor", "snapkv", "h2o"},
         {"0.25"},
         {},
         {"policy_ms"},
         Tokens},
        {"compactor-thm1",
         "Compactor Theorem 1: spectral distortion of drawn leverage against retention",
         "a theorem; no run in the paper",
         "",
         {"leverage:sampling"},
         reproductionBudgets(),
         {},
         {"spectral_drawn", "spectral_top"},
         Retention,
         "default",
         3,
         true},
        {"compactor-ranks",
         "Compactor 3: score against later attention",
         "one-way ANOVA, p = 0.53 over 20 trials",
         "",
         {"compactor", "snapkv", "keydiff", "key_norm"},
         {"0.25"},
         {},
         {"score_correlation"},
         Layer,
         "default",
         1,
         true},
        {"compactor-fig2", "Compactor Figs. 2, 8: non-causal attention maps", "Llama-3.1-8B, passage retrieval",
         "kvscope plot attention_map CAPTURE"},
        {"compactor-table2",
         "Compactor Table 2: output error and overlap of lists against lambda",
         kRuler + ": 0.15 to 0.4 change the mean by at most 2.1",
         "",
         {"compactor"},
         kTableBudgets,
         {"lambda", {"0.15", "0.2", "0.3", "0.35", "0.4"}},
         {"output_error", "overlap"},
         Retention,
         "default",
         1,
         false,
         "0.3"},
        {"compactor-table2-parts",
         "Compactor Table 2: with and without the attention part",
         kRuler + ": 77.5 against 60.2 at a quarter",
         "",
         {"compactor", "leverage"},
         kTableBudgets,
         {},
         {"output_error"},
         Retention,
         "default",
         3},
        {"compactor-table3",
         "Compactor Table 3: output error and overlap of lists by SVD, QR and eigendecomposition",
         kRuler + "; the codes decompose in float or less, where they differ; here all run in double (C6)",
         "",
         {"compactor"},
         kTableBudgets,
         {"route", {"svd", "qr", "gram"}},
         {"output_error", "overlap"},
         Retention,
         "default",
         1,
         false,
         "svd"},
        {"compactor-table4",
         "Compactor Tables 2, 4: output error and overlap of lists by Gaussian sketch, SRHT and exact leverage",
         kRuler + ", k = 64 of d = 128; here k = 32, since a sketch as wide as the keys is exact",
         "",
         {"compactor,sketch_size=32"},
         kTableBudgets,
         {"sketch", {"gaussian", "srht", "none"}},
         {"output_error", "overlap"},
         Retention,
         "default",
         3,
         false,
         "none"},
        {"compactor-thm2", "Compactor Theorem 2: sketched over exact leverage, against its bound",
         "a theorem; no run in the paper", "kvscope plot leverage CAPTURE --policy leverage"},
        {"compactor-appb", "Compactor App. B: separators and the diagonal of non-causal maps", "Llama-3.1-8B",
         "kvscope plot attention_map CAPTURE --view-set map=chunks"},
        {"compactor-fig1", "Compactor Figs. 1, 7: the retention that keeps a quality", "Llama-3.1-8B, RULER",
         "kvscope plot calibration CAPTURE"},
        {"compactor-fig6", "Compactor Fig. 6: NLL ratio against retention", "13 RULER sub-tasks",
         "needs the model's likelihoods; with them in the capture: kvscope plot calibration CAPTURE"},
        {"compactor-table1", "Compactor Tables 1, 5: LongBench; RULER scores of Tables 2-4", "Llama-3.1-8B, Qwen 2.5",
         "needs the model's answers"},
    };
}

} // namespace kvscope
