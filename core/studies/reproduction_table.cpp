// Which tables and figures of the papers can be made from captures, each as policies, budgets and measures. A further
// one is a row here.
#include "core/studies/reproduction_table.h"
#include "core/base/error.h"
#include "core/base/nearest_name.h"

namespace kvscope {

namespace {

using enum ReproductionAxis;

const std::vector<std::string> kBudgets = reproductionBudgets();
const std::vector<std::string> kKeyDiffRivals = {"keydiff", "snapkv", "tova", "streaming_llm", "h2o"};

Reproduction lengthRow(const char* id, const char* item, const char* paperData, const char* measure,
                       ReproductionMethod method) {
    Reproduction row;
    row.id = id;
    row.item = item;
    row.paperData = paperData;
    row.measures = {measure};
    row.method = method;
    return row;
}

/// Memory from a thirty-second of the cache to a quarter, in steps of the root of 2, and batches that store about as
/// much of a prompt of a thousand tokens.
Reproduction memoryRow() {
    Reproduction row;
    row.id = "balancekv-memory";
    row.item = "BalanceKV Thms 3.1, 3.4: memory against epsilon, balancing and sampling";
    row.paperData = "theorems; no run in the paper: memory goes with 1/eps for balancing and with 1/eps^2 for "
                    "sampling, so eps with "
                    "memory to the power -1 and -0.5, up to logarithms";
    row.caveat = "eps is the error of the numerator that MergeAndReduce bounds, the mean of these queries and not the "
                 "worst case; eps "
                 "of the quotient depends on a second tree, whose sum can come near 0; nothing is kept exactly but the "
                 "last incomplete "
                 "batches; where norms are large the theory's walk tosses coins (B1) and gain 4 balances greedily; a "
                 "share k/n drawn "
                 "without repetition errs by sqrt(1 - k/n) less than the law says, and where few tokens carry the sum "
                 "the mean falls more "
                 "slowly than the root mean square that the law is about";
    row.policies = {"balancekv_stream,levels=8,steps=gain", "balancekv_stream,levels=8",
                    "balancekv,sink=0,recent=0,halving=smaller_group", "uniform:reweighted"};
    row.budgets = {"0.03125", "0.0442", "0.0625", "0.0884", "0.125", "0.1768", "0.25"};
    row.varied = {"batch", {"16", "23", "32", "45", "64", "91", "128"}};
    row.measures = {"numerator_error"};
    row.axis = Memory;
    row.seeds = 5;
    row.method = ReproductionMethod::PowerLaw;
    row.powers = {-1, -0.5};
    return row;
}

/// B.1: exact are the first 256 tokens and those from 256 before the end on, which are the ones after the cut. What is
/// halved lies between, by BalanceKV or by a draw whose tokens stand for as many.
Reproduction besideSinks(Reproduction row) {
    row.exactFirst = 256;
    row.caveat = "exact are the first 256 tokens and the last 256 with those that follow, as in B.1; a drawn token "
                 "counts for all that it "
                 "was drawn from, as a balanced one does";
    return row;
}

std::vector<Reproduction> balanceRows() {
    return {
        besideSinks(
            {"balancekv-fig1",
             "BalanceKV Fig. 1: output error against retention",
             "Llama-3.1-8B and Ministral-8B, TriviaQA (LongBench-E), layers 0, 1, 4, sink = recent = 256, B = 256, 10 "
             "seeds",
             "",
             {"balancekv,recent=0", "uniform:reweighted,protect_first=256"},
             {"0.5", "0.25", "0.125", "0.0625"},
             {},
             {"output_error"},
             Retention,
             "last:256",
             10}),
        besideSinks({"balancekv-fig3",
                     "BalanceKV Fig. 3: output error against retention and block size",
                     "Llama-3.1-8B, TriviaQA, layers 1 and 15, sink = recent = 256; 10.4 to 28.6 % in layer 1. The "
                     "notebook divides "
                     "by the positive part of the output (B14), so its numbers are larger",
                     "",
                     {"balancekv:notebook,recent=0"},
                     {"0.5", "0.25", "0.125"},
                     {"block", {"64", "128", "256"}},
                     {"output_error"},
                     Retention,
                     "last:256",
                     10}),
        besideSinks({"balancekv-fig3-time",
                     "BalanceKV Fig. 3: time against retention and block size",
                     "A100 80GB, Llama-3.1-8B, TriviaQA, layer 1: 19 to 179 ms; unsynchronised clock in layer 15 (B15)",
                     "",
                     {"balancekv:notebook,recent=0"},
                     {"0.5", "0.25", "0.125"},
                     {"block", {"64", "128", "256"}},
                     {"policy_ms"},
                     Retention,
                     "last:256",
                     3}),
        {"balancekv-table2",
         "BalanceKV Table 2: time of the policies against length",
         "RTX A6000, 16,384 tokens in, whole model: prefill 3.032 s exact, 3.66 to 3.76 s compressed",
         "",
         {"snapkv", "pyramidkv", "streaming_llm", "balancekv"},
         {"0.25"},
         {},
         {"policy_ms"},
         Tokens},
        {"balancekv-table6",
         "BalanceKV Table 6: against SubGen's k-center",
         "Llama-3.1-8B, LongBench-E accuracy at a quarter: BalanceKV 46.77, k-center 46.62; scripts keep 32 sinks and "
         "recents",
         "",
         {"balancekv:longbench", "subgen_kcenter"},
         {"0.125", "0.25", "0.5", "0.75"},
         {},
         {"output_error"},
         Retention,
         "default",
         3},
        {"balancekv-table3",
         "BalanceKV Table 3: norms against prompt length",
         "Llama-3.1-8B, prompts of 2,281 to 21,274 tokens, all layers and heads; q 14.5-15.2, shifted k 15.4-16.0, v "
         "3.34-3.37",
         "",
         {"exact"},
         {},
         {},
         {"query_norm", "shifted_key_norm", "value_norm"},
         Tokens,
         "last:256",
         1,
         true},
        {"balancekv-eps",
         "BalanceKV (2): epsilon achieved against retention",
         "a theorem; no run in the paper",
         "",
         {"balancekv,sink=0,recent=0", "uniform:reweighted", "keydiff", "snapkv"},
         kBudgets,
         {},
         {"eps_f"},
         Retention,
         "default",
         3},
        memoryRow(),
        {"balancekv-theory", "BalanceKV Thms 3.2 to 3.4: demanded sizes and errors over their bounds",
         "theorems; no run in the paper", "kvscope plot theory CAPTURE --policy balancekv"},
        {"balancekv-thm33", "BalanceKV Thm 3.3: the walk against fair coins", "a theorem; no run in the paper",
         "kvscope plot walk CAPTURE --policy balancekv"},
        {"balancekv-fig4", "BalanceKV Fig. 4: needle in a haystack", "Llama-3.1-8B", "needs the model's answers"},
        {"balancekv-fig2", "BalanceKV Fig. 2: the tree of MergeAndReduce", "any stream",
         "kvscope plot merge_tree CAPTURE --policy balancekv_stream"},
    };
}

/// KeyDiff's accuracies and log dets come from prompts processed in blocks; the rows about blocks vary prompt_block.
Reproduction oneShot(Reproduction row) {
    row.caveat = "chosen in one shot; the paper's runs process blocks of 128 tokens";
    return row;
}

std::vector<Reproduction> keyDiffRows() {
    const std::string model = "Llama-3.2-3B";
    return {
        oneShot({"keydiff-fig12",
                 "KeyDiff Fig. 12: log det of the kept keys",
                 model + ", 100 Qasper prompts, N = 2048, B = 128, all layers and heads",
                 "",
                 kKeyDiffRivals,
                 {"0.25"},
                 {},
                 {"log_det"},
                 Layer,
                 "default",
                 1,
                 true}),
        {"keydiff-fig14",
         "KeyDiff Figs. 14, 16: cosines of means and of the most distinct key",
         model + ", all layers and heads",
         "",
         {"exact"},
         {},
         {},
         {"cos_means", "cos_distinct"},
         Layer,
         "default",
         1,
         true},
        {"keydiff-fig15",
         "KeyDiff Fig. 15: norms of keys and queries",
         model + ", all layers and heads",
         "",
         {"exact"},
         {},
         {},
         {"key_norm", "query_norm", "value_norm"},
         Layer,
         "default",
         1,
         true},
        {"keydiff-blocks",
         "KeyDiff Tables 9, 10, 12: output error against block size",
         "LongBench accuracy at B = 64, 128, 256",
         "",
         kKeyDiffRivals,
         {"0.25"},
         {"prompt_block", {"64", "128", "256", "512"}},
         {"output_error"},
         Parameter},
        oneShot({"keydiff-table13",
                 "KeyDiff Table 13: share of recent tokens",
                 "LongBench accuracy at 0, 10 and 20 %",
                 "",
                 {"keydiff"},
                 {"0.25"},
                 {"window_share", {"0", "0.1", "0.2", "0.5"}},
                 {"output_error"},
                 Parameter}),
        oneShot({"keydiff-table14",
                 "KeyDiff Table 14: output error and overlap of lists by anchor",
                 model + ", LongBench accuracy",
                 "",
                 {"keydiff"},
                 {"0.25"},
                 {"anchor", {"mean", "normalised_mean", "median", "pairwise"}},
                 {"output_error", "overlap"},
                 Parameter,
                 "default",
                 1,
                 false,
                 "mean"}),
        oneShot({"keydiff-table15",
                 "KeyDiff Table 15: output error and overlap of lists by similarity metric",
                 model + ", LongBench accuracy",
                 "",
                 {"keydiff"},
                 {"0.25"},
                 {"metric", {"cosine", "dot", "euclidean"}},
                 {"output_error", "overlap"},
                 Parameter,
                 "default",
                 1,
                 false,
                 "cosine"}),
        lengthRow("keydiff-table8", "KeyDiff Table 8: share of a prompt that a cache of N tokens holds",
                  "LongBench, 4,120 prompts by the Llama tokenizer, N = 2K, 4K, 6K, 8K: 0.31, 0.53, 0.67, 0.77 as a "
                  "mean over 21 corpora",
                  "kept_share", ReproductionMethod::KeptShares),
        lengthRow("keydiff-fig18", "KeyDiff Fig. 18, Table 7: lengths of the prompts",
                  "LongBench, 4,120 prompts: 230 up to 2K, 514 up to 4K, 628 up to 6K, 418 up to 8K, 2,330 longer",
                  "prompts", ReproductionMethod::Lengths),
        {"keydiff-c2",
         "KeyDiff C.2: sum of cosines of the kept set and its minimum by exchange",
         "a derivation; no run in the paper",
         "",
         {"keydiff", "snapkv"},
         kBudgets,
         {},
         {"cosine_sum", "cosine_sum_min"},
         Retention},
        {"keydiff-fig7",
         "KeyDiff Figs. 7, 17: time of the policy against block size",
         "A100 80GB, TTFT of the whole model",
         "",
         kKeyDiffRivals,
         {"0.25"},
         {"prompt_block", {"64", "128", "256"}},
         {"policy_ms"},
         Parameter},
        {"keydiff-decoding",
         "KeyDiff App. E: tokens decoded one by one after the prompt",
         "tokens are evicted one at a time while decoding",
         "",
         {"keydiff", "tova", "streaming_llm"},
         {"0.25"},
         {"decode_tokens", {"0", "8", "32", "128"}},
         {"output_error"},
         Parameter},
        {"keydiff-fig3", "KeyDiff Fig. 3: anchor, similarity and what is kept", model,
         "kvscope plot token_profile CAPTURE --policy keydiff@0.25"},
        {"keydiff-fig13", "KeyDiff Fig. 13, Lemma 3.1, Theorem 3.2: cosines of keys and queries, and two bounds", model,
         "kvscope plot geometry CAPTURE"},
        {"keydiff-fig2", "KeyDiff Fig. 2: cosines and attention of 64 tokens", model,
         "kvscope plot attention_map CAPTURE"},
        {"keydiff-fig5", "KeyDiff Figs. 4, 5, 8-11: PCA of kept and evicted keys", model,
         "kvscope plot key_projection CAPTURE"},
        {"keydiff-ttft", "KeyDiff Figs. 7, 17: time to first token", "A100 80GB", "needs the model"},
    };
}

} // namespace

const std::vector<Reproduction>& allReproductions() {
    static const std::vector<Reproduction> rows = [] {
        std::vector<Reproduction> all = balanceRows();
        for (const auto& more : {keyDiffRows(), subGenReproductions(), compactorReproductions()})
            all.insert(all.end(), more.begin(), more.end());
        return all;
    }();
    return rows;
}

const Reproduction& reproductionById(std::string_view id) {
    std::vector<std::string> known;
    for (const Reproduction& row : allReproductions()) {
        if (row.id == id)
            return row;
        known.push_back(row.id);
    }
    throw Error({.sentence = "nothing to reproduce is called '" + std::string(id) + "'",
                 .place = {},
                 .remedy = suggestName(id, known)});
}

} // namespace kvscope
