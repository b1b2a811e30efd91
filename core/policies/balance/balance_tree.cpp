// Streaming BalanceKV (Algorithms 1 and 4). Tokens go into trees by the octave of their value norm; every tree halves
// its tokens batch by batch and merges two halves into the input of the next level, like a binary counter. The nodes of
// one level are independent, so a whole stream takes one engine call per level.
#include "core/policies/balance/balance_tree.h"

#include "core/engine/engine.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>

namespace kvscope {

namespace {

BalanceNode reduced(std::vector<TokenIndex> input, std::vector<std::int8_t> signs) {
    BalanceNode node{std::move(input), {}, std::move(signs)};
    const auto plus = std::ranges::count(node.signs, std::int8_t{1});
    const std::int8_t smaller = 2 * plus <= static_cast<std::ptrdiff_t>(node.signs.size()) ? 1 : -1;
    for (std::size_t i = 0; i < node.input.size(); ++i)
        if (node.signs[i] == smaller) node.output.push_back(node.input[i]);
    return node;
}

/// Input of node `place` of the next level: a batch, or the outputs of two nodes.
std::vector<TokenIndex> nodeInput(const BalanceTree& tree, std::size_t level, std::size_t place) {
    if (level == 0) {
        const auto begin = tree.rows.begin() + static_cast<std::ptrdiff_t>(place) * tree.batch;
        return {begin, begin + tree.batch};
    }
    const std::vector<BalanceNode>& below = tree.nodes[level - 1];
    std::vector<TokenIndex> input = below[2 * place].output;
    input.insert(input.end(), below[2 * place + 1].output.begin(), below[2 * place + 1].output.end());
    return input;
}

class StreamBuilder {
public:
    StreamBuilder(const PolicyInput& input, BalanceStream& stream, BalanceLog* log)
        : m_input(input), m_stream(stream), m_keyWalks(input, input.keys, {}, {}, log),
          m_valueWalks(input, input.keys, input.values, {}, log) {}

    void plant() {
        const HostTensor norms = m_input.engine.rowNorms(m_input.values, m_input.checkpoint.silent());
        const std::int64_t n = m_stream.tokens;
        for (std::int64_t h = 0; h < m_input.keys.size(0); ++h) {
            m_stream.norms.emplace_back(norms.data.begin() + h * n, norms.data.begin() + (h + 1) * n);
            BalanceTree all = emptyTree(h, false, 0);
            std::map<int, BalanceTree> buckets;
            for (TokenIndex r = 0; r < n; ++r) {
                all.rows.push_back(r);
                const double norm = m_stream.norms.back()[r];
                if (norm > 0) // a zero value adds nothing to any sum
                    buckets.try_emplace(bucketOf(norm), emptyTree(h, true, bucketOf(norm)))
                        .first->second.rows.push_back(r);
            }
            m_stream.trees.push_back(std::move(all));
            for (auto& [bucket, tree] : buckets) m_stream.trees.push_back(std::move(tree));
        }
    }

    void grow() {
        const auto levels = static_cast<std::size_t>(m_stream.settings.levels);
        for (std::size_t level = 0; level < levels; ++level) {
            const double from = double(level) / double(levels), step = 0.5 / double(levels);
            growLevel(level, false, m_input.checkpoint.part(from, from + step));
            growLevel(level, true, m_input.checkpoint.part(from + step, from + 2 * step));
        }
        for (std::int64_t h = 0; h < m_input.keys.size(0); ++h)
            m_stream.margins.push_back(std::min(m_keyWalks.margin(h), m_valueWalks.margin(h)));
        m_stream.repeats = m_keyWalks.repeats() + m_valueWalks.repeats();
    }

private:
    BalanceTree emptyTree(std::int64_t head, bool numerator, int bucket) const {
        BalanceTree tree;
        tree.kvHead = head;
        tree.numerator = numerator;
        tree.bucket = bucket;
        tree.batch = m_stream.settings.batch;
        tree.nodes.resize(static_cast<std::size_t>(m_stream.settings.levels));
        return tree;
    }

    void growLevel(std::size_t level, bool numerator, const Checkpoint& checkpoint) {
        std::vector<PlannedWalk> plans;
        std::vector<BalanceTree*> owners;
        for (BalanceTree& tree : m_stream.trees) {
            if (tree.numerator != numerator) continue;
            const std::size_t below =
                level == 0 ? tree.rows.size() / static_cast<std::size_t>(tree.batch) : tree.nodes[level - 1].size() / 2;
            for (std::size_t place = 0; place < below; ++place) {
                plans.push_back(planned(tree, level, place));
                owners.push_back(&tree);
            }
        }
        auto signs = (numerator ? m_valueWalks : m_keyWalks).run(plans, checkpoint);
        for (std::size_t i = 0; i < plans.size(); ++i)
            owners[i]->nodes[level].push_back(reduced(std::move(plans[i].walk.rows), std::move(signs[i])));
    }

    PlannedWalk planned(const BalanceTree& tree, std::size_t level, std::size_t place) const {
        PlannedWalk plan;
        plan.level = static_cast<std::int64_t>(level) + 1;
        plan.place = static_cast<std::int64_t>(place);
        plan.tree = tree.numerator ? 1 : 0;
        plan.bucket = tree.bucket;
        plan.round = tree.numerator ? 1 : 0; // a token lies in one bucket: (tree, token, level) is unique
        plan.slot = static_cast<std::uint32_t>(level);
        BalancingWalk& walk = plan.walk;
        walk.head = tree.kvHead;
        walk.rows = nodeInput(tree, level, place);
        for (const TokenIndex row : walk.rows)
            plan.places.push_back(static_cast<std::uint32_t>(m_input.tokenAt(walk.head, row)));
        setKernel(tree, walk);
        return plan;
    }

    /// With the paper's step size M is in units of R^2, so that nothing overflows; with a plain gain it is unscaled.
    void setKernel(const BalanceTree& tree, BalancingWalk& walk) const {
        const StreamSettings& settings = m_stream.settings;
        walk.logScale = m_input.attention.scaling;
        walk.valueConstant = tree.numerator ? 0 : 1;
        if (settings.steps == StepSize::Gain) {
            walk.gamma = settings.gamma;
            if (settings.failOnOverflow && settings.gamma > 0) walk.failAbove = 0.5 / settings.gamma;
            return;
        }
        walk.logShift = m_stream.radius * m_stream.radius * m_input.attention.scaling;
        walk.valueScale = std::ldexp(1.0, -2 * tree.bucket);
        const double n = static_cast<double>(m_stream.tokens), m = static_cast<double>(walk.rows.size());
        const double delta = settings.delta > 0 ? settings.delta : 1 / (n * n);
        const double c = settings.steps == StepSize::Manual ? settings.c : 30 * std::log(std::max(2.0, m) / delta);
        walk.gamma = 1 / (2 * c);
        if (settings.failOnOverflow) walk.failAbove = c;
    }

    const PolicyInput& m_input;
    BalanceStream& m_stream;
    BalanceWalks m_keyWalks, m_valueWalks;
};

double largestNorm(const PolicyInput& input) {
    const HostTensor norms = input.engine.rowNorms(input.keys, input.checkpoint.silent());
    return norms.data.empty() ? 0 : double{*std::ranges::max_element(norms.data)};
}

void addSets(const BalanceTree& tree, TokenIndex cursor, std::vector<std::pair<TokenIndex, float>>& sum) {
    const auto sets = tree.setsAt(cursor);
    for (std::size_t level = 0; level < sets.size(); ++level)
        for (const TokenIndex row : sets[level])
            sum.emplace_back(row, static_cast<float>(std::ldexp(1.0, static_cast<int>(level))));
}

} // namespace

int bucketOf(double norm) {
    assert(norm > 0);
    int exponent = 0;
    const double mantissa = std::frexp(norm, &exponent); // in [1/2, 1)
    return mantissa == 0.5 ? exponent - 1 : exponent;
}

std::vector<std::vector<TokenIndex>> BalanceTree::setsAt(TokenIndex cursor) const {
    const auto seen = static_cast<std::size_t>(std::ranges::lower_bound(rows, cursor) - rows.begin());
    std::vector<std::vector<TokenIndex>> sets(nodes.size() + 1);
    const std::size_t size = static_cast<std::size_t>(batch);
    const std::size_t exact = nodes.empty() ? 0 : seen / size * size;
    sets[0].assign(rows.begin() + static_cast<std::ptrdiff_t>(exact), rows.begin() + static_cast<std::ptrdiff_t>(seen));
    for (std::size_t level = 1; level <= nodes.size(); ++level) {
        const std::size_t made = (seen / size) >> (level - 1); // nodes of this level up to the cursor
        // Below the top level, pairs of outputs have been merged upwards and at most one output waits; the top level
        // keeps all.
        const std::size_t first = level == nodes.size() ? 0 : made - made % 2;
        for (std::size_t place = first; place < made; ++place) {
            const std::vector<TokenIndex>& output = nodes[level - 1][place].output;
            sets[level].insert(sets[level].end(), output.begin(), output.end());
        }
    }
    return sets;
}

double BalanceStream::eraseLineAt(std::int64_t kvHead, TokenIndex cursor) const {
    const std::vector<float>& all = norms[kvHead];
    const double largest =
        cursor > 0 ? double{*std::max_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(cursor))} : 0;
    const double n = static_cast<double>(tokens);
    switch (settings.erase) {
    case EraseLine::Algorithm: return settings.epsilon / (2 * n) * decay * largest;
    case EraseLine::Proof: return settings.epsilon / std::sqrt(n) * largest;
    case EraseLine::None: break;
    }
    return 0;
}

StreamSample BalanceStream::sampleAt(std::int64_t kvHead, TokenIndex cursor) const {
    StreamSample sample;
    sample.eraseLine = eraseLineAt(kvHead, cursor);
    std::vector<std::pair<TokenIndex, float>> numerator, denominator;
    for (const BalanceTree& tree : trees) {
        if (tree.kvHead != kvHead) continue;
        const bool arrived = !tree.rows.empty() && tree.rows.front() < cursor;
        if (tree.numerator && std::ldexp(1.0, tree.bucket) <= sample.eraseLine) {
            if (arrived) sample.erasedBuckets.push_back(tree.bucket);
            continue;
        }
        addSets(tree, cursor, tree.numerator ? numerator : denominator);
    }
    std::ranges::sort(numerator);
    std::ranges::sort(denominator);
    for (const auto& [row, weight] : numerator) {
        sample.set.numerator.push_back(row);
        sample.set.numeratorWeights.push_back(weight);
    }
    for (const auto& [row, weight] : denominator) {
        sample.set.denominator.push_back(row);
        sample.set.denominatorWeights.push_back(weight);
    }
    return sample;
}

BalanceStream buildBalanceStream(const PolicyInput& input, const StreamSettings& settings, BalanceLog* log) {
    BalanceStream stream;
    stream.settings = settings;
    stream.tokens = input.rowCount();
    stream.radius = settings.radius > 0 ? settings.radius : largestNorm(input);
    stream.decay = std::exp(-stream.radius * stream.radius * input.attention.scaling);
    StreamBuilder builder(input, stream, log);
    builder.plant();
    builder.grow();
    return stream;
}

} // namespace kvscope
