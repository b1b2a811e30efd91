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

constexpr std::int64_t kShareRows = 5;       // sums of addShares, after those of the values
constexpr double kQuantaOfAnchor = 0x1.8p52; // an anchor's last bit is the quantum
constexpr double kLargestShift = 1 << 16;    // a float log-sum-exp this large still has 7 bits after the point
constexpr double kSmallestMass = 1.0 / 64;
constexpr double kFloatUnit = 0x1p-24;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Sets the rounding mode of this thread while the object lives.
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

/// The anchor of a head's values: 12 times the smallest power of two above the largest. NaN where one is not finite.
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
    // A query that sees nothing has -infinity.
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

/// The queries of a block side by side, and their sums.
struct KeptSumsPass::Block {
    std::vector<QueryLane> queries;
    QueryBlock of;
    LaneBlock lanes;
    LogitMask mask;
    double anchor;
    double* sums; ///< [dv + 5, lanes]
    std::array<double, kMaxLanes> shifts;
};

KeptSumsPass::Block KeptSumsPass::blockOf(const QueryBlock& queries) const {
    const HeadRows own(m_input.queries, queries.head, queries.begin, queries.end);
    const std::vector<QueryLane> list = queryLanesOf(m_input, queries, own);
    LaneBlock lanes(rowsOf(list), m_input.queries.size(2));
    LogitMask mask(list, lanes.lanes(), m_input.rule.slidingWindow);
    Block block{list,
                queries,
                std::move(lanes),
                std::move(mask),
                m_sums->sums[m_input.rule.gqaGroupOf[queries.head]],
                blockSums(queries),
                {}};
    block.shifts.fill(kLargestShift); // padding lanes get weights of 0
    const std::int64_t first = queries.head * m_input.queries.size(1) + queries.begin;
    std::copy_n(m_input.recent->logSumExps().data.begin() + first, std::ssize(list), block.shifts.begin());
    return block;
}

std::vector<std::optional<LaneSums>> KeptSumsPass::compute(std::span<const QueryBlock> queries, const HeadCache& cache,
                                                           Progress& progress) const {
    std::vector<Block> blocks;
    for (const QueryBlock& some : queries) blocks.push_back(blockOf(some));
    for (std::size_t i = 0; !m_before && i < blocks.size(); ++i) {
        std::fill_n(blocks[i].sums, m_input.values.size(2) * blocks[i].lanes.lanes(), blocks[i].anchor);
        const std::int64_t visible = m_input.firstQuery + queries[i].end;
        add({&blocks[i], 1}, cache, {cache.keys.data(), m_input.cut, std::max<std::int64_t>(0, visible - m_input.cut)},
            1, progress);
    }
    const Difference& set = m_differences[m_input.setOf(queries.front().head)];
    add(blocks, cache, {cache.keys.data(), 0, std::ssize(set.removed), set.removed.data()}, -1, progress);
    add(blocks, cache, {cache.keys.data(), 0, std::ssize(set.added), set.added.data()}, 1, progress);
    std::vector<std::optional<LaneSums>> sums;
    for (const Block& block : blocks) sums.push_back(sumsOf(block));
    return sums;
}

std::optional<LaneSums> KeptSumsPass::sumsOf(const Block& block) const {
    const std::int64_t dv = m_input.values.size(2), lanes = block.lanes.lanes();
    LaneSums result{lanes, std::vector<double>(static_cast<std::size_t>(dv * lanes)), {}, {}, block.shifts};
    const double quantum = block.anchor / kQuantaOfAnchor;
    const double* shares = block.sums + dv * lanes; // see Kernels::addShares
    for (std::int64_t lane = 0; lane < std::ssize(block.queries); ++lane) {
        const double *of = shares + lane, sink = block.queries[lane].sink;
        result.denominators[lane] = of[0] + of[lanes];
        if (!(result.denominators[lane] >= kSmallestMass)) return {}; // written so that NaN is refused
        if (std::isfinite(sink)) result.denominators[lane] += portableExp(sink - result.shifts[lane]);
        result.squares[lane] = of[2 * lanes] + of[3 * lanes];
        const double halfQuanta = of[4 * lanes] * 0.5 * quantum; // one for each term
        double square = 0;
        for (std::int64_t c = 0; c < dv; ++c) {
            const double value = block.sums[c * lanes + lane] - block.anchor + halfQuanta;
            result.values[c * lanes + lane] = value;
            square += value * value;
        }
        if (!(halfQuanta * std::sqrt(static_cast<double>(dv)) <= kFloatUnit * std::sqrt(square))) return {};
    }
    return result;
}

void KeptSumsPass::add(std::span<Block> blocks, const HeadCache& cache, const KeyTerms& terms, double sign,
                       Progress& progress) const {
    const std::int64_t step = stepOf(blocks.size());
    Panel keys(m_kernels, m_input.queries.size(2)), values(m_kernels, m_input.values.size(2));
    double pending = 0;
    for (std::int64_t first = 0; first < terms.count; first += step) {
        const std::int64_t count = std::min(step, terms.count - first);
        const TokenIndex* indices = terms.indices ? terms.indices + first : nullptr;
        const double* ofKeys = keys.fill(terms.rows, terms.first + first, count, indices);
        const double* ofValues = values.fill(cache.values.data(), terms.first + first, count, indices);
        for (Block& block : blocks) {
            addTile(block, terms, first, first + count, ofKeys, ofValues, sign);
            pending += static_cast<double>(count * std::ssize(block.queries));
        }
        if (pending >= kLogitsPerStep) progress.advance(std::exchange(pending, 0.0));
    }
    progress.advance(pending);
}

void KeptSumsPass::addTile(Block& block, const KeyTerms& terms, std::int64_t begin, std::int64_t end,
                           const double* keys, const double* values, double sign) const {
    const std::int64_t lanes = block.lanes.lanes(), d = m_input.queries.size(2), dv = m_input.values.size(2);
    std::array<double, kPanelRows * kMaxLanes> shares;
    std::array<double, kMaxLanes> totals{};
    for (std::int64_t first = begin; first < end; first += kPanelRows) {
        const std::int64_t count = std::min(kPanelRows, end - first);
        m_kernels.exactProduct(block.lanes.against(keys + (first - begin) * d, count, shares.data()));
        m_kernels.shapeLogits(shares.data(), count * lanes, m_input.rule.scaling, m_input.rule.softcap);
        block.mask.hide(terms, first, count, shares.data());
        m_kernels.exponentials(shares.data(), count, lanes, block.shifts.data(), nullptr, totals.data());
        m_kernels.addShares(shares.data(), count, lanes, sign, block.sums + dv * lanes);
        const Product product{.lanes = shares.data(),
                              .laneStride = lanes,
                              .laneCount = lanes,
                              .factors = values + (first - begin) * dv,
                              .factorCount = dv,
                              .factorStride = 1,
                              .depthStride = dv,
                              .depth = count,
                              .out = block.sums,
                              .outStride = lanes,
                              .accumulate = true};
        addRounded(m_kernels, product, sign > 0 ? _MM_ROUND_DOWN : _MM_ROUND_UP);
    }
}

void KeptSumsPass::remember() const { m_input.recent->replace(m_before.get(), m_sums); }

} // namespace kvscope::cpu
