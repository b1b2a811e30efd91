// Asks two engines for the same choices and counts the lists that differ.
#include "tests/bench/gpu_check/kernel_parity.h"

#include "core/engine/score_arithmetic.h"
#include "tests/bench/engine_check/engine_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace kvscope::check {

namespace {

constexpr std::int64_t kKvHeads = 4, kQueryHeads = 16, kWidth = 128, kWindow = 32, kBudgets = 15, kBlock = 256;

/// What is chosen by some scores at several budgets.
std::vector<TopKHead> choices(const HostTensor& scores) {
    std::vector<TopKHead> all;
    const std::int64_t m = scores.shape[1];
    for (std::int64_t budget = 1; budget <= kBudgets; ++budget) {
        const std::vector<std::int64_t> counts(static_cast<std::size_t>(scores.shape[0]), m * budget / (kBudgets + 1));
        for (TopKHead& head : topK(scores, counts, 4, kWindow)) all.push_back(std::move(head));
    }
    return all;
}

ParityRow compared(const std::string& name, const std::vector<TopKHead>& a, const std::vector<TopKHead>& b) {
    ParityRow row{name, static_cast<int>(a.size()), 0, std::numeric_limits<double>::infinity()};
    for (std::size_t i = 0; i < a.size(); ++i) {
        row.differing += a[i].kept != b[i].kept;
        row.smallestMargin = std::min(row.smallestMargin, double{a[i].margin});
    }
    return row;
}

struct Layer {
    Tensor keys, queries;
    AttentionRule rule{1 / std::sqrt(double(kWidth)), 0, 0, {}};
    TokenIndex firstQuery;

    Layer(const Engine& engine, std::int64_t n, StoredType type)
        : keys(uploadRows(engine, storedAs(type, randomBlock(71, kKvHeads, n, kWidth, 1, 0.1)))),
          queries(uploadRows(engine, storedAs(type, randomBlock(72, kQueryHeads, kWindow, kWidth, 1, 0.1)))),
          firstQuery(static_cast<TokenIndex>(n - kWindow)) {
        for (std::int32_t h = 0; h < kQueryHeads; ++h) rule.gqaGroupOf.push_back(h / (kQueryHeads / kKvHeads));
    }
};

HostTensor keyDiffScores(const Engine& e, const Layer& layer) {
    return scale(
        e.similarity(layer.keys, e.anchor(layer.keys, AnchorKind::NormalisedMean, {}), SimilarityMetric::Cosine, {}),
        -1);
}

HostTensor windowScores(const Engine& e, const Layer& layer) {
    const HostTensor sums = e.attentionColumnSums({layer.queries, layer.keys, layer.firstQuery, {}, layer.rule}, {});
    return reduceGroups(sums, layer.rule.gqaGroupOf, kKvHeads, GroupRule::Mean);
}

std::vector<BalancingSteps> walks(const Engine& e, const Layer& layer, std::int64_t n) {
    BalancingWalks input{layer.keys, layer.keys, {}, {}};
    for (std::int64_t head = 0; head < kKvHeads; ++head)
        for (std::int64_t begin = 0; begin < n; begin += kBlock) {
            BalancingWalk walk;
            walk.head = head;
            for (std::int64_t i = begin; i < std::min(n, begin + kBlock); ++i) {
                walk.rows.push_back(static_cast<TokenIndex>(i));
                walk.uniforms.push_back(std::fmod(0.6180339887498949 * static_cast<double>(i + 1), 1.0));
            }
            walk.meanOver = kBlock;
            walk.gamma = 4;
            walk.logScale = 0.1 / std::sqrt(double(kWidth));
            walk.valueConstant = 0.025;
            walk.firstIsPlus = true;
            input.walks.push_back(std::move(walk));
        }
    return e.balancingWalks(input, {});
}

ParityRow walkParity(const std::vector<BalancingSteps>& a, const std::vector<BalancingSteps>& b) {
    ParityRow row{"BalanceKV walks", static_cast<int>(a.size()), 0, std::numeric_limits<double>::infinity()};
    for (std::size_t i = 0; i < a.size(); ++i) {
        row.differing += a[i].signs != b[i].signs;
        row.smallestMargin = std::min(row.smallestMargin, a[i].margin);
    }
    return row;
}

ParityRow centerParity(const Engine& first, const Engine& second, const Layer& a, const Layer& b, std::int64_t n) {
    CentersRequest request;
    request.count = std::min<std::int64_t>(256, n);
    request.first.assign(kKvHeads, 0);
    const auto runs = first.greedyCenters(a.keys, request, {}), others = second.greedyCenters(b.keys, request, {});
    ParityRow row{"greedy k-center", static_cast<int>(kKvHeads), 0, std::numeric_limits<double>::infinity()};
    for (std::size_t h = 0; h < runs.size(); ++h) {
        row.differing += runs[h].order != others[h].order;
        row.smallestMargin =
            std::min(row.smallestMargin, *std::min_element(runs[h].closest.begin(), runs[h].closest.end()));
    }
    return row;
}

} // namespace

std::vector<ParityRow> kernelParity(const Engine& first, const Engine& second, std::int64_t n) {
    std::vector<ParityRow> rows;
    for (const auto& [stored, suffix] : kRowTypes) {
        const Layer a(first, n, stored), b(second, n, stored);
        for (ParityRow row :
             {compared("key norm", choices(first.rowNorms(a.keys, {})), choices(second.rowNorms(b.keys, {}))),
              compared("KeyDiff", choices(keyDiffScores(first, a)), choices(keyDiffScores(second, b))),
              compared("SnapKV, 32 queries", choices(windowScores(first, a)), choices(windowScores(second, b))),
              walkParity(walks(first, a, n), walks(second, b, n)), centerParity(first, second, a, b, n)}) {
            row.name += suffix;
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

} // namespace kvscope::check
