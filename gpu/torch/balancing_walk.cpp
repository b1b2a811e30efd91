// Self-balancing walks (BalanceKV): each row in turn gets the sign that opposes the signed sum of the rows before it.
// Walks of equal length step together, so that a step is one operation for all heads and blocks; the kernel matrix is
// computed in panels of columns and never stored whole.
#include "gpu/torch/kernel_calls.h"
#include "gpu/torch/refusals.h"
#include "gpu/torch/torch_engine.h"
#include "gpu/torch/torch_tensor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <map>

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kPanel = 128; // columns of the kernel matrix at a time
constexpr double kLargestExponent = 500;

using Walks = std::vector<const BalancingWalk*>;

/// One number per walk as [W, 1, 1].
at::Tensor perWalk(const TorchDevice& device, const Walks& walks,
                   const std::function<double(const BalancingWalk&)>& of) {
    std::vector<double> numbers;
    for (const BalancingWalk* walk : walks) numbers.push_back(of(*walk));
    return device.listOf(numbers).view({-1, 1, 1});
}

/// One list per walk as [W, B]; `missing` fills walks without a list.
template <class List>
at::Tensor perRow(const TorchDevice& device, const Walks& walks, const List& list, double missing) {
    std::vector<double> numbers;
    for (const BalancingWalk* walk : walks) {
        const auto& own = list(*walk);
        if (own.empty())
            numbers.insert(numbers.end(), walk->rows.size(), missing);
        else
            numbers.insert(numbers.end(), own.begin(), own.end());
    }
    return device.listOf(numbers).view({static_cast<std::int64_t>(walks.size()), -1});
}

/// Walks of one length with the inputs of their steps.
class WalkBatch {
public:
    WalkBatch(const TorchDevice& device, const BalancingWalks& input, Walks walks, Arithmetic arithmetic)
        : m_device(device), m_walks(std::move(walks)) {
        const auto number = [&](const auto& of) { return perWalk(device, m_walks, of); };
        const auto type = arithmetic == Arithmetic::Fast ? at::kFloat : at::kDouble;
        m_keys = gathered(input.keys);
        m_keyFactors = m_keys.to(type);
        if (!input.values.empty()) m_valueFactors = gathered(input.values).to(type);
        m_uniforms = perRow(
            device, m_walks, [](const BalancingWalk& w) -> const auto& { return w.uniforms; }, 0);
        m_weights = perRow(
            device, m_walks, [](const BalancingWalk& w) -> const auto& { return w.weights; }, 1);
        m_silent = perRow(
                       device, m_walks, [](const BalancingWalk& w) -> const auto& { return w.silent; }, 0) != 0;
        m_gamma = number([](const BalancingWalk& w) { return w.gamma; }).view(-1);
        m_failAbove = number([](const BalancingWalk& w) { return w.failAbove; }).view(-1);
        m_firstIsPlus = number([](const BalancingWalk& w) { return w.firstIsPlus ? 1.0 : 0.0; }).view(-1) != 0;
        m_logScale = number([](const BalancingWalk& w) { return w.logScale; });
        m_logShift = number([](const BalancingWalk& w) { return w.logShift; });
        m_valueScale = number([](const BalancingWalk& w) { return w.valueScale; });
        m_valueConstant = number([](const BalancingWalk& w) { return w.valueConstant; });
        centre(input);
    }

    void run(Steps& steps) {
        const std::int64_t walks = m_keys.size(0), rows = m_keys.size(1);
        const auto wide = m_keys.options();
        m_signs = at::zeros({walks, rows}, wide);
        m_products = at::zeros({walks, rows}, wide);
        m_diagonal = at::zeros({walks, rows}, wide);
        m_lean = at::zeros({walks, rows}, wide);
        for (std::int64_t begin = 0; begin < rows; begin += kPanel) {
            const std::int64_t end = std::min(rows, begin + kPanel);
            walkPanel(begin, end, kernel(begin, end));
            steps.advance(static_cast<double>(walks * end * (end - begin)));
        }
    }

    /// Writes the results in the order of the walks. Throws Error for a number that is not finite.
    void deliver(const std::vector<std::size_t>& places, std::vector<BalancingSteps>& results) const {
        const std::vector<double> signs = doublesOf(m_signs), products = doublesOf(m_products),
                                  diagonal = doublesOf(m_diagonal), lean = doublesOf(m_lean);
        const std::size_t rows = signs.size() / m_walks.size();
        for (std::size_t w = 0; w < m_walks.size(); ++w) {
            BalancingSteps& steps = results[places[w]];
            const BalancingWalk& walk = *m_walks[w];
            for (std::size_t i = 0; i < rows; ++i) {
                const std::size_t at = w * rows + i;
                if (!std::isfinite(products[at]) || !std::isfinite(diagonal[at]))
                    refuseWalkRow(walk.head, walk.rows[i]);
                if (std::abs(products[at]) > walk.failAbove) {
                    steps.failedAt = static_cast<std::int64_t>(i);
                    break;
                }
                steps.signs.push_back(static_cast<std::int8_t>(signs[at]));
                steps.products.push_back(products[at]);
                steps.diagonal.push_back(diagonal[at]);
                const bool drawn = signs[at] != 0 && !(i == 0 && walk.firstIsPlus);
                if (drawn) steps.margin = std::min(steps.margin, std::abs(lean[at]));
            }
        }
    }

private:
    at::Tensor gathered(const Tensor& tensor) const {
        const at::Tensor all = numbersOf(tensor);
        std::vector<std::int64_t> places; // row indices into [H n]
        for (const BalancingWalk* walk : m_walks)
            for (const TokenIndex row : walk->rows) places.push_back(walk->head * all.size(1) + row);
        return all.flatten(0, 1)
            .index_select(0, m_device.listOf(places))
            .to(at::kDouble)
            .view({static_cast<std::int64_t>(m_walks.size()), -1, all.size(2)});
    }

    /// <k_i, c> - <c, c> / 2 per row, so that <k_i - c, k_j - c> = <k_i, k_j> - term_i - term_j.
    void centre(const BalancingWalks& input) {
        const at::Tensor over = perWalk(m_device, m_walks, [](const BalancingWalk& w) { return double(w.meanOver); });
        at::Tensor centres = m_keys.sum(1, true) / over.clamp_min(1);
        if (input.centres.empty()) {
            centres = at::where(over > 0, centres, 0.0);
        } else {
            std::vector<std::int64_t> heads;
            for (const BalancingWalk* walk : m_walks) heads.push_back(walk->head);
            const at::Tensor given =
                m_device.upload(input.centres).to(at::kDouble).index_select(0, m_device.listOf(heads));
            centres = at::where(over > 0, centres, given.unsqueeze(1));
        }
        m_terms = at::matmul(m_keys, centres.transpose(1, 2)) - centres.square().sum(-1, true) / 2; // [W, B, 1]
    }

    /// M of rows [0, end) against rows [begin, end): [W, end, end - begin].
    at::Tensor kernel(std::int64_t begin, std::int64_t end) const {
        const auto products = [&](const at::Tensor& rows) {
            return at::matmul(rows.narrow(1, 0, end), rows.narrow(1, begin, end - begin).transpose(1, 2))
                .to(at::kDouble);
        };
        const auto before = [&](const at::Tensor& list) { return list.narrow(1, 0, end); };
        const auto across = [&](const at::Tensor& list) { return list.narrow(1, begin, end - begin).transpose(1, 2); };
        at::Tensor matrix = products(m_keyFactors).sub_(before(m_terms)).sub_(across(m_terms));
        matrix.mul_(m_logScale).sub_(m_logShift).clamp_max_(kLargestExponent).exp_();
        if (!m_valueFactors.defined()) return matrix.mul_(m_valueConstant);
        const at::Tensor weights = m_weights.unsqueeze(2);
        return matrix.mul_(products(m_valueFactors)
                               .mul_(before(weights))
                               .mul_(across(weights))
                               .mul_(m_valueScale)
                               .add_(m_valueConstant));
    }

    void walkPanel(std::int64_t begin, std::int64_t end, const at::Tensor& matrix) {
        // y of the panel's rows: first the sum over rows before the panel, then each row as it gets its sign.
        at::Tensor y = at::matmul(m_signs.narrow(1, 0, begin).unsqueeze(1), matrix.narrow(1, 0, begin)).squeeze(1);
        for (std::int64_t i = begin; i < end; ++i) {
            const at::Tensor row = matrix.select(1, i), product = y.select(1, i - begin);
            const at::Tensor lean = m_uniforms.select(1, i) - (0.5 - m_gamma * product); // > 0 when the sign is -1
            at::Tensor sign = at::where(lean < 0, at::ones_like(lean), at::full_like(lean, -1.0));
            if (i == 0) sign.masked_fill_(m_firstIsPlus, 1.0);
            sign.masked_fill_(m_silent.select(1, i), 0.0);
            m_signs.select(1, i).copy_(sign);
            m_products.select(1, i).copy_(product);
            m_diagonal.select(1, i).copy_(row.select(1, i - begin));
            m_lean.select(1, i).copy_(lean);
            y.addcmul_(row, sign.unsqueeze(1));
        }
    }

    const TorchDevice& m_device;
    Walks m_walks;
    at::Tensor m_keyFactors, m_valueFactors; ///< factors of the products, in float when fast, else double
    at::Tensor m_keys, m_terms, m_uniforms, m_weights, m_silent, m_gamma, m_failAbove, m_firstIsPlus;
    at::Tensor m_logScale, m_logShift, m_valueScale, m_valueConstant;
    at::Tensor m_signs, m_products, m_diagonal, m_lean;
};

} // namespace

std::vector<BalancingSteps> TorchEngine::balancingWalks(const BalancingWalks& input,
                                                        const Checkpoint& checkpoint) const {
    double work = 1;
    std::map<std::size_t, std::vector<std::size_t>> byLength;
    for (std::size_t w = 0; w < input.walks.size(); ++w) {
        const std::size_t rows = input.walks[w].rows.size();
        assert(input.walks[w].uniforms.size() == rows);
        work += static_cast<double>(rows) * static_cast<double>(rows);
        if (rows > 0) byLength[rows].push_back(w);
    }
    Steps steps(m_device, checkpoint, work);
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels() && !input.walks.empty())
            return kernels::balancingWalks(m_device, input, m_arithmetic, checkpoint);
    std::vector<BalancingSteps> results(input.walks.size());
    const std::int64_t width = input.keys.size(2) + (input.values.empty() ? 0 : input.values.size(2));
    for (const auto& [rows, places] : byLength) {
        const double bytes = 8.0 * static_cast<double>(rows) * static_cast<double>(3 * kPanel + width);
        steps.batches(static_cast<std::int64_t>(places.size()), bytes, 0, [&](std::int64_t begin, std::int64_t count) {
            const std::vector<std::size_t> mine(places.begin() + begin, places.begin() + begin + count);
            Walks walks;
            for (const std::size_t place : mine) walks.push_back(&input.walks[place]);
            WalkBatch batch(m_device, input, std::move(walks), m_arithmetic);
            batch.run(steps);
            batch.deliver(mine, results);
        });
    }
    return results;
}

} // namespace kvscope::gpu
