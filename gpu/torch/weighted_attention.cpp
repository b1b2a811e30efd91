// Attention over a weighted sample of the tokens before the cut: numerator and denominator may be different samples
// with their own weights; from the cut on every token is exact.
#include "gpu/torch/logits.h"
#include "gpu/torch/torch_engine.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cassert>
#include <limits>

namespace kvscope::gpu {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// All terms of one kept set: numerator, denominator where it differs, then tokens [cut, end).
struct Terms {
    std::vector<std::int64_t> tokens;
    std::vector<double> numerator, denominator; ///< weight in each sum, 0 where the token is not in it

    void add(std::int64_t token, double above, double below) {
        tokens.push_back(token);
        numerator.push_back(above);
        denominator.push_back(below);
    }
};

double weightAt(const std::vector<float>& weights, std::size_t i) { return weights.empty() ? 1.0 : double{weights[i]}; }

Terms termsOf(const WeightedAttentionInput& input, std::size_t index, std::int64_t end) {
    Terms terms;
    if (input.kept.empty()) {
        for (std::int64_t i = 0; i < input.cut; ++i) terms.add(i, 1, 1);
    } else {
        const WeightedSet& set = input.kept[index];
        for (std::size_t i = 0; i < set.numerator.size(); ++i)
            terms.add(set.numerator[i], weightAt(set.numeratorWeights, i),
                      set.denominator.empty() ? weightAt(set.denominatorWeights, i) : 0);
        for (std::size_t i = 0; i < set.denominator.size(); ++i)
            terms.add(set.denominator[i], 0, weightAt(set.denominatorWeights, i));
    }
    for (std::int64_t i = input.cut; i < end; ++i) terms.add(i, 1, 1);
    return terms;
}

/// Query heads that attend to the same rows of one KV head.
struct Readers {
    std::int64_t kv = 0;
    std::vector<std::int64_t> queryHeads;
};

std::vector<Readers> readersOf(const WeightedAttentionInput& input) {
    std::vector<Readers> readers;
    for (std::int64_t kv = 0; kv < input.keys.size(0); ++kv) {
        const std::vector<std::int64_t> group = queryHeadsOf(input.rule, kv);
        for (const std::int64_t head : group)
            if (readers.empty() || readers.back().kv != kv ||
                input.setOf(readers.back().queryHeads.front()) != input.setOf(head))
                readers.push_back({kv, {head}});
            else
                readers.back().queryHeads.push_back(head);
    }
    return readers;
}

/// The terms of one kept set on the device, in the type of the products.
struct TermTensors {
    at::Tensor keys, values, tokens, numerator, denominator;
    std::int64_t first = 0, last = -1; ///< smallest and largest token
};

/// Results for some rows, in double.
struct Part {
    at::Tensor output, logDenominator, logNorm;
};

Part attend(at::Tensor logits, const at::Tensor& hidden, const TermTensors& terms) {
    const at::Tensor rowMax = exponentiate(logits, hidden).to(at::kDouble);
    const at::Tensor above = logits * terms.numerator;
    const at::Tensor rowSum = at::matmul(logits, terms.denominator.unsqueeze(-1)).to(at::kDouble);
    const at::Tensor squares = above.square().sum(-1, true).to(at::kDouble);
    const at::Tensor sums = at::matmul(above, terms.values).to(at::kDouble);
    // Written as <= so that NaN passes through; a row that sees no key gives 0 and lse -infinity.
    return {at::where(rowSum <= 0, 0.0, sums / rowSum), at::where(rowSum <= 0, kMinusInfinity, rowSum.log() + rowMax),
            at::where(squares <= 0, kMinusInfinity, squares.log() * 0.5 + rowMax)};
}

} // namespace

WeightedAttention TorchEngine::weightedAttention(const WeightedAttentionInput& input,
                                                 const Checkpoint& checkpoint) const {
    requireNoSinks(input.rule);
    if (!input.reference.empty()) throw NoDeviceCode();
    const at::Tensor queries = numbersOf(input.queries), keys = numbersOf(input.keys), values = numbersOf(input.values);
    const std::int64_t heads = queries.size(0), w = queries.size(1), d = queries.size(2), dv = values.size(2);
    assert(static_cast<std::int64_t>(input.rule.gqaGroupOf.size()) == heads && input.firstQuery + w <= keys.size(1));
    const auto type = m_arithmetic == Arithmetic::Fast ? at::kFloat : at::kDouble;
    const at::Tensor output = at::empty({heads, w, dv}, keys.options());
    const at::Tensor logs = at::empty({heads, w}, keys.options()), norms = at::empty({heads, w}, keys.options());
    Steps steps(m_device, checkpoint, static_cast<double>(heads * w));
    for (const auto& [kv, mine] : readersOf(input)) {
        const auto group = static_cast<std::int64_t>(mine.size());
        const Terms list = termsOf(input, input.setOf(mine.front()), input.firstQuery + w);
        const at::Tensor where = m_device.listOf(mine), own = queries.index_select(0, where);
        TermTensors terms{{},
                          {},
                          m_device.listOf(list.tokens),
                          m_device.listOf(list.numerator).to(type),
                          m_device.listOf(list.denominator).to(type)};
        terms.keys = keys.select(0, kv).index_select(0, terms.tokens).to(type);
        terms.values = values.select(0, kv).index_select(0, terms.tokens).to(type);
        if (!list.tokens.empty()) {
            const auto [least, most] = std::minmax_element(list.tokens.begin(), list.tokens.end());
            terms.first = *least;
            terms.last = *most;
        }
        const double bytes =
            32.0 * static_cast<double>(group * (static_cast<std::int64_t>(list.tokens.size()) + d + dv));
        steps.batches(w, bytes, static_cast<double>(group), [&](std::int64_t begin, std::int64_t count) {
            Visible visible;
            for (std::int64_t row = 0; row < group * count; ++row) // the heads of the group one after the other
                visible.addCausal(input.firstQuery + begin + row % count, input.rule);
            const at::Tensor rows = own.narrow(1, begin, count).to(type).reshape({group * count, d});
            const Part part = attend(logitsOf(rows, terms.keys, input.rule),
                                     hiddenFrom(m_device, visible, terms.tokens, terms.first, terms.last), terms);
            output.narrow(1, begin, count).index_copy_(0, where, part.output.to(at::kFloat).view({group, count, dv}));
            logs.narrow(1, begin, count).index_copy_(0, where, part.logDenominator.to(at::kFloat).view({group, count}));
            norms.narrow(1, begin, count).index_copy_(0, where, part.logNorm.to(at::kFloat).view({group, count}));
        });
    }
    return {hostTensorOf(output), hostTensorOf(logs), hostTensorOf(norms), {}};
}

} // namespace kvscope::gpu
