// The papers that texts of the product cite, each in one version.
#include "core/policies/citations.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace kvscope {

namespace {

constexpr auto kPapers = std::to_array<CitedPaper>({
    {"BalanceKV", "Kochetkova et al., Streaming Attention Approximation via Discrepancy Theory (NeurIPS 2025)"},
    {"SubGen", "Zandieh et al., SubGen: Token Generation in Sublinear Time and Memory (2024)"},
    {"KeyDiff", "Park et al., KeyDiff: Key Similarity-Based KV Cache Eviction (2025)"},
    {"Compactor", "Chari and Van Durme, Compactor: Calibrated Query-Agnostic KV Cache Compression with Approximate "
                  "Leverage Scores (2025)"},
    {"H2O", "Zhang et al., H2O: Heavy-Hitter Oracle for Efficient Generative Inference of LLMs (NeurIPS 2023)"},
    {"SnapKV", "Li et al., SnapKV: LLM Knows What You are Looking for Before Generation (NeurIPS 2024)"},
    {"PyramidKV",
     "Cai et al., PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling (2024)"},
    {"StreamingLLM", "Xiao et al., Efficient Streaming Language Models with Attention Sinks (ICLR 2024)"},
    {"Vaswani", "Vaswani et al., Attention Is All You Need (NeurIPS 2017)"},
    {"van der Maaten", "van der Maaten, Accelerating t-SNE using Tree-Based Algorithms (JMLR 15, 2014)"},
});

} // namespace

std::span<const CitedPaper> citedPapers() { return kPapers; }

const CitedPaper& citedPaper(std::string_view name) {
    const auto found = std::ranges::find(kPapers, name, &CitedPaper::name);
    assert(found != kPapers.end());
    return *found;
}

std::string citation(std::string_view name, std::string_view places) {
    return std::string(citedPaper(name).reference) + ", " + std::string(places);
}

} // namespace kvscope
