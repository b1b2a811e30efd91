// Attention sums in fixed point. An accumulator starts at an anchor 1.5 2^k, which keeps the size of its last bit; so
// directed rounding cuts every term at the same place, fused or not, whatever was added before.
#include "core/engine/cpu/kept_sums.h"

#include "core/base/portable_math.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace kvscope::cpu {

namespace {

constexpr std::int64_t kShareRows = 5;       // of addShares, below the values
constexpr double kQuantaOfAnchor = 0x1.8p52; // an anchor's last bit is the quantum
constexpr double kLargestShift = 1 << 16;    // a float log-sum-exp this large still has 7 bits after the point
constexpr double kSmallestMass = 1.0 / 64;
constexpr double kFloatUnit = 0x1p-24;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kPanelsPerStep = 128; // some milliseconds between checkpoints

/// The rounding mode of this thread, for as long as this lives.
class DirectedRounding {
public:
    explicit DirectedRounding(unsigned mode) { _mm_setcsr((m_before & ~static_cast<unsigned>(_MM_ROUND_MASK)) | mode); }
    ~DirectedRounding() { _mm_setcsr(m_before); }
    DirectedRounding(const DirectedRounding&) = delete;
    DirectedRounding& operator=(const DirectedRounding&) = delete;

private:
    unsigned m_before = _mm_getcsr();
};

void addRounded(const Kernels& kernels, const Product& product, unsigned mode) {
    const DirectedRounding rounding(mode);
    kernels.exactProduct(product);
}

bool isPlain(const WeightedSet& set) {
    return set.numeratorWeights.empty() && set.denominatorWeights.empty() && set.denominator.empty() &&
           std::ranges::adjacent_find(set.numerator, std::greater_equal{}) == set.numerator.end();
}

std::int64_t blocksPerHead(const WeightedAttentionInput& input) {
    return (input.queries.size(1) + kMaxLanes - 1) / kMaxLanes;
}

std::int64_t blockSize(const WeightedAttentionInput& input) { return (input.values.size(2) + kShareRows) * kMaxLanes; }

std::int64_t stateSize(const WeightedAttentionInput& input) {
    return input.keys.size(0) + input.queries.size(0) * blocksPerHead(input) * blockSize(input);
}

/// The anchor of a head's values: 12 times the power of two at or above the largest. NaN where one is not finite.
double anchorOf(const Tensor& values, std::int64_t kvHead) {
    const HeadRows rows(values, kvHead);
    float largest = 0;
    bool finite = true;
    for (std::int64_t i = 0; i < values.size(1) * values.size(2); ++i) {
        const float size = std::abs(rows.data()[i]);
        largest = size > largest ? size : largest;
        finite &= size <= std::numeric_limits<float>::max();
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    return finite ? std::ldexp(12.0, exponent) : std::numeric_limits<double>::quiet_NaN();
}

std::vector<TokenIndex> inFirstOnly(const std::vector<TokenIndex>& a, const std::vector<TokenIndex>& b) {
    std::vector<TokenIndex> tokens;
    std::ranges::set_difference(a, b, std::back_inserter(tokens));
    return tokens;
}

} // namespace

std::vector<QueryLane> queryLanesOf(const WeightedAttentionInput& input, const QueryBlock& queries,
                                    const HeadRows& rows) {
    std::vector<QueryLane> lanes;
    for (std::int64_t j = queries.begin; j < queries.end; ++j)
        lanes.push_back({rows.data() + (j - queries.begin) * input.queries.size(2), input.firstQuery + j,
                         input.rule.sinkOf(queries.head)});
    return lanes;
}

bool KeptSumsPass::fits(const WeightedAttentionInput& input) {
    if (!input.recent || input.kept.empty() || input.keys.storage()->isOnDemand() ||
        input.values.storage()->isOnDemand())
        return false;
    // -infinity: a query that sees nothing.
    const auto tooLarge = [](float x) { return !(std::abs(x) < kLargestShift) && x != -kInfinity; };
    return std::ranges::all_of(input.kept, isPlain) &&
           std::cmp_less_equal(stateSize(input) * 8, RecentSums::kMostBytes) &&
           std::ranges::none_of(input.recent->logSumExps().data, tooLarge);
}

KeptSumsPass::KeptSumsPass(const Kernels& kernels, const WeightedAttentionInput& input, const Workers& workers)
    : m_kernels(kernels), m_input(input) {
    std::int64_t tokens = 0;
    auto sums = std::make_shared<KeptSums>();
    for (const WeightedSet& set : input.kept) {
        sums->kept.push_back(set.numerator);
        tokens += std::ssize(set.numerator);
    }
    m_before = input.recent->nearest(input.kept, tokens);
    if (m_before) {
        sums->sums = m_before->sums;
    } else {
        const std::int64_t kvHeads = input.keys.size(0);
        sums->sums.assign(static_cast<std::size_t>(stateSize(input)), 0.0);
        workers.each(kvHeads, [&](std::int64_t kv) { sums->sums[kv] = anchorOf(input.values, kv); });
        if (std::any_of(sums->sums.begin(), sums->sums.begin() + kvHeads, [](double x) { return std::isnan(x); }))
            return;
    }
    const std::vector<TokenIndex> none;
    for (std::size_t set = 0; set < input.kept.size(); ++set) {
        const auto& before = m_before ? m_before->kept[set] : none;
        m_differences.push_back(
            {inFirstOnly(sums->kept[set], before), m_before ? inFirstOnly(before, sums->kept[set]) : none});
    }
    m_sums = std::move(sums);
}

double KeptSumsPass::work() const {
    double logits = 0;
    const std::int64_t w = m_input.queries.size(1);
    for (std::int64_t head = 0; head < m_input.queries.size(0); ++head) {
        const Difference& set = m_differences[m_input.setOf(head)];
        logits += static_cast<double>(w * (std::ssize(set.added) + std::ssize(set.removed)));
        if (!m_before) logits += static_cast<double>(w * (m_input.firstQuery + w - m_input.cut));
    }
    return logits;
}

double* KeptSumsPass::blockSums(const QueryBlock& queries) const {
    const std::int64_t block = queries.head * blocksPerHead(m_input) + queries.begin / kMaxLanes;
    return m_sums->sums.data() + m_input.keys.size(0) + block * blockSize(m_input);
}

std::optional<LaneSums> KeptSumsPass::compute(const QueryBlock& queries, const HeadCache& cache,
                                              Progress& progress) const {
    const std::int64_t d = m_input.queries.size(2), dv = m_input.values.size(2), w = m_input.queries.size(1);
    const HeadRows own(m_input.queries, queries.head, queries.begin, queries.end);
    const std::vector<QueryLane> list = queryLanesOf(m_input, queries, own);
    const LaneBlock block(rowsOf(list), d);
    const std::int64_t lanes = block.lanes();
    LaneSums result{lanes, std::vector<double>(static_cast<std::size_t>(dv * lanes)), {}, {}, {}};
    result.shifts.fill(kLargestShift); // padding has no shares
    for (std::size_t lane = 0; lane < list.size(); ++lane)
        result.shifts[lane] =
            m_input.recent->logSumExps().data[queries.head * w + queries.begin + static_cast<std::int64_t>(lane)];

    double* sums = blockSums(queries);
    const double anchor = m_sums->sums[m_input.rule.gqaGroupOf[queries.head]];
    const Difference& set = m_differences[m_input.setOf(queries.head)];
    const auto part = [&](const KeyTerms& terms, double sign) {
        add(block, list, cache, terms, sign, result.shifts, sums, progress);
    };
    if (!m_before) {
        std::fill(sums, sums + dv * lanes, anchor);
        part(
            {cache.keys.data(), m_input.cut, std::max<std::int64_t>(0, m_input.firstQuery + queries.end - m_input.cut)},
            1);
    }
    part({cache.keys.data(), 0, std::ssize(set.removed), set.removed.data()}, -1);
    part({cache.keys.data(), 0, std::ssize(set.added), set.added.data()}, 1);

    const double quantum = anchor / kQuantaOfAnchor;
    const double* shares = sums + dv * lanes; // see Kernels::addShares
    for (std::int64_t lane = 0; lane < std::ssize(list); ++lane) {
        const double *of = shares + lane, sink = list[lane].sink;
        result.denominators[lane] = of[0] + of[lanes];
        if (!(result.denominators[lane] >= kSmallestMass)) return {}; // written so that NaN is refused
        if (std::isfinite(sink)) result.denominators[lane] += portableExp(sink - result.shifts[lane]);
        result.squares[lane] = of[2 * lanes] + of[3 * lanes];
        const double halfQuanta = of[4 * lanes] * 0.5 * quantum; // one for each term
        double square = 0;
        for (std::int64_t c = 0; c < dv; ++c) {
            const double value = sums[c * lanes + lane] - anchor + halfQuanta;
            result.values[c * lanes + lane] = value;
            square += value * value;
        }
        if (!(halfQuanta * std::sqrt(static_cast<double>(dv)) <= kFloatUnit * std::sqrt(square))) return {};
    }
    return result;
}

void KeptSumsPass::add(const LaneBlock& block, const std::vector<QueryLane>& queries, const HeadCache& cache,
                       KeyTerms terms, double sign, const std::array<double, kMaxLanes>& shifts, double* sums,
                       Progress& progress) const {
    const std::int64_t lanes = block.lanes(), dv = m_input.values.size(2);
    Panel keys(m_kernels, m_input.queries.size(2)), values(m_kernels, dv);
    const LogitMask mask(queries, lanes, m_input.rule.slidingWindow);
    std::array<double, kPanelRows * kMaxLanes> shares;
    std::array<double, kMaxLanes> totals{};
    double pending = 0;
    for (std::int64_t first = 0; first < terms.count; first += kPanelRows) {
        const std::int64_t count = std::min(kPanelRows, terms.count - first);
        const TokenIndex* indices = terms.indices ? terms.indices + first : nullptr;
        m_kernels.exactProduct(
            block.against(keys.fill(terms.rows, terms.first + first, count, indices), count, shares.data()));
        m_kernels.shapeLogits(shares.data(), count * lanes, m_input.rule.scaling, m_input.rule.softcap);
        mask.hide(terms, first, count, shares.data());
        m_kernels.exponentials(shares.data(), count, lanes, shifts.data(), nullptr, totals.data());
        m_kernels.addShares(shares.data(), count, lanes, sign, sums + dv * lanes);
        const double* rows = values.fill(cache.values.data(), terms.first + first, count, indices);
        const Product product{.lanes = shares.data(),
                              .laneStride = lanes,
                              .laneCount = lanes,
                              .factors = rows,
                              .factorCount = dv,
                              .factorStride = 1,
                              .depthStride = dv,
                              .depth = count,
                              .out = sums,
                              .outStride = lanes,
                              .accumulate = true};
        addRounded(m_kernels, product, sign > 0 ? _MM_ROUND_DOWN : _MM_ROUND_UP);
        pending += static_cast<double>(count * std::ssize(queries));
        if (first / kPanelRows % kPanelsPerStep == 0) progress.advance(std::exchange(pending, 0.0));
    }
    progress.advance(pending);
}

void KeptSumsPass::remember() const { m_input.recent->replace(m_before.get(), m_sums); }

} // namespace kvscope::cpu
