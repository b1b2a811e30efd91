// The numbered parts of the papers that texts of the product cite. A line is a kind, a number, and words that, among
// the parts of this kind, only a sentence about this one uses.
#include "core/policies/citations.h"

#include <algorithm>
#include <cassert>

namespace kvscope {

namespace {

constexpr const char* kBalanceKv = R"(Algorithm 1: erase line
Algorithm 2: SoftmaxBalance, c = 30 ln
Algorithm 3: walk on vectors
Algorithm 4: MergeAndReduce, merge-and-reduce tree, log2(n/t)
Theorem 3.1: whole estimator
Theorem 3.2: lower bound, memory of any algorithm
Theorem 3.3: discrepancy, against fair coins
Theorem 3.4: batch t
Equation 1: attention output
Equation 2: Frobenius
Figure 1: output error against retention
Figure 2: tree of MergeAndReduce, merge-and-reduce tree
Figure 3: block size
Figure 4: needle in a haystack
Table 1: LongBench-E
Table 2: time of the policies
Table 3: norms
Table 4: captions
Table 5: part of the tokens
Table 6: ClusterGen, k-center
Section 2.2: two sums
Section 3: theorem
Section 3.1: SoftmaxBalance
Section 3.2: MergeAndReduce
Section 4: its experiments
Section 4.1: single layer
Section 4.2: LongBench-E
Section 4.3: protected tokens
Section 4.4: efficiency
Section 4.5: low error
Section A: proofs
Section A.1: proof of Theorem 3.1
Section A.2: proof of Theorem 3.3
Section A.3: MergeAndReduce
Section B: experimental details
Section B.1: relative error of a layer
Section B.2: LongBench-E
Section B.3: haystack heat map
Section B.4: times
Section B.5: more experiments
Section C: lower bound)";

constexpr const char* kSubGen = R"(Algorithm 1: streaming attention
Theorem 1: slots t, reservoir s
Lemma 1: reservoir
Lemma 2: partition
Corollary 1: growth
Definition 1: clusterability
Equation 1: attention output
Equation 2: stacked keys
Equation 3: operator norm
Equation 4: data structure
Equation 5: denominator
Equation 6: numerator
Figure 1: t-SNE
Table 1: line retrieval
Section 1.3: contributions
Section 2: data structures
Section 2.1: data structure
Section 2.2: matrix product
Section 2.3: partition function
Section 2.4: main theorem
Section 3: experiments on question answering
Section 3.1: RoPE is the cause
Section 3.2: recent tokens and k-center)";

constexpr const char* kKeyDiff = R"(Lemma 3.1: limit for many tokens
Theorem 3.2: cosine of the mean key and k*
Theorem C.1: number of tokens
Lemma C.2: squared cosines
Theorem C.3: cosine of the mean key and k* again
Equation 1: transformer block
Equation 2: attention output
Equation 3: decoding
Equation 4: eviction
Equation 5: attention-based eviction
Equation 6: block prompt processing
Equation 7: pairwise
Equation 8: efficient
Equation 9: bound of Theorem 3.2
Figure 1: block prompt processing
Figure 2: cosines and attention
Figure 3: anchor, similarity and what is kept
Figure 4: PCA of keys and queries
Figure 5: PCA of kept and evicted
Figure 6: needle in a haystack
Figure 7: time to first token
Figure 8: PCA of kept and evicted
Figure 9: PCA of kept and evicted
Figure 10: PCA of kept and evicted
Figure 11: PCA of keys and queries
Figure 12: log det
Figure 13: narrow cones
Figure 14: mean key and mean query
Figure 15: norms
Figure 16: most distinct key
Figure 17: time to first token
Figure 18: prompt lengths
Figure 19: needle in a haystack
Table 1: English tasks
Table 2: complexity
Table 7: lengths of the prompts
Table 8: share of a prompt
Table 9: whole prompt at once
Table 10: all tasks
Table 11: Qwen
Table 12: blocks of 64 and 256
Table 13: share of recent tokens
Table 14: by anchor
Table 15: similarity metric
Section 2.2: caching
Section 2.3: eviction
Section 2.4: block prompt processing
Section 3.1: negative correlation
Section 3.2: anchor
Section 3.3: theory
Section 4: evaluation
Section 4.4: ablation
Section 4.5: latency
Section A.1: carried-over scores
Section B.1: FLOP count
Section C.1: more PCA
Section C.2: optimisation
Section C.3: collinearity
Section D: time to first token
Section E: Math-500
Section F.1: how figures were made
Section F.2: baselines
Section F.3: corpora
Section G: ablation)";

constexpr const char* kCompactor = R"(Algorithm 1: sketched leverage
Theorem 1: drawn rows
Theorem 2: sketched over exact
Definition 1: leverage score
Definition 2: subspace embedding
Equation 1: diag(UUᵀ)
Equation 2: eigenvectors
Equation 3: accumulated attention
Equation 4: observation window
Equation 5: chunks
Equation 6: blending
Figure 1: retention that keeps a quality
Figure 2: non-causal
Figure 3: time of selection
Figure 4: tasks of RULER
Figure 5: RULER
Figure 6: NLL ratio
Figure 7: retention that keeps a quality
Figure 8: top 5 % of a head
Table 1: LongBench
Table 2: λ
Table 3: SVD, QR
Table 4: SRHT
Table 5: code completion
Section 3: method
Section 3.1: exact leverage
Section 3.2: sketching
Section 3.3: non-causal attention
Section 3.4: blending
Section 3.5: calibration
Section 4: evaluation
Section 5.4: ANOVA
Section 5.5: ablations
Section A: proof
Section B: separators
Section C: decompositions
Section D: Hadamard
Section E: code completion)";

std::vector<CitedItem> itemsOf(std::string_view lines) {
    std::vector<CitedItem> items;
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        const std::size_t space = line.find(' '), colon = line.find(':');
        items.push_back({line.substr(0, space), line.substr(space + 1, colon - space - 1), line.substr(colon + 2)});
        lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    }
    return items;
}

} // namespace

const std::vector<CitedPaper>& citedPapers() {
    static const std::vector<CitedPaper> papers = {
        {"BalanceKV", "Kochetkova et al., Streaming Attention Approximation via Discrepancy Theory (NeurIPS 2025)",
         itemsOf(kBalanceKv)},
        {"SubGen", "Zandieh et al., SubGen: Token Generation in Sublinear Time and Memory (2024)", itemsOf(kSubGen)},
        {"KeyDiff", "Park et al., KeyDiff: Key Similarity-Based KV Cache Eviction (2025)", itemsOf(kKeyDiff)},
        {"Compactor",
         "Chari and Van Durme, Compactor: Calibrated Query-Agnostic KV Cache Compression with Approximate "
         "Leverage Scores (2025)",
         itemsOf(kCompactor)},
        // Of the papers below, H2O and StreamingLLM were looked up; the numbers of the others were not checked against
        // the papers.
        {"H2O", "Zhang et al., H2O: Heavy-Hitter Oracle for Efficient Generative Inference of LLMs (NeurIPS 2023)",
         itemsOf("Algorithm 1: eviction")},
        {"SnapKV", "Li et al., SnapKV: LLM Knows What You are Looking for Before Generation (NeurIPS 2024)",
         itemsOf("Section 4: observation window")},
        {"PyramidKV",
         "Cai et al., PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling (2024)",
         itemsOf("Section 4: budgets of layers")},
        {"StreamingLLM", "Xiao et al., Efficient Streaming Language Models with Attention Sinks (ICLR 2024)",
         itemsOf("Section 3.2: rolling cache")},
        {"Vaswani", "Vaswani et al., Attention Is All You Need (NeurIPS 2017)", itemsOf("Equation 1: output")},
        {"van der Maaten", "van der Maaten, Accelerating t-SNE using Tree-Based Algorithms (JMLR 15, 2014)",
         itemsOf("Section 4.1: input similarities")}};
    return papers;
}

const CitedPaper& citedPaper(std::string_view name) {
    const auto& papers = citedPapers();
    const auto found = std::ranges::find(papers, name, &CitedPaper::name);
    assert(found != papers.end());
    return *found;
}

std::string citation(std::string_view name, std::string_view places) {
    return std::string(citedPaper(name).reference) + ", " + std::string(places);
}

} // namespace kvscope
