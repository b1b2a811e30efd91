#pragma once

#include <string>

namespace kvscope::check {

/// Times the scores whose names match `pattern` of one Llama-3.1-8B layer of 16,384 tokens in exact and in fast
/// arithmetic and, in turn with them, in PyTorch by the formulas of kvpress and BalanceKV (peers.py, run by `python`)
/// on the same float32 tensors. Prints medians of ratios, by CPU time and by the clock. Returns the number of scores
/// whose sums differ. Throws Error where `python` does not answer.
int compareWithPeers(const std::string& python, int threads, const std::string& pattern);

} // namespace kvscope::check
