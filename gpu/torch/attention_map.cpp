// The attention map at screen resolution: logits of some rows over all the keys that they see, softmax, and the largest
// cell of every pixel by a scattered maximum. Nothing of size n x n ever exists.
#include "core/engine/map_keys.h"
#include "gpu/primitives/attention_lists.h"
#include "gpu/torch/kernel_calls.h"
#include "gpu/torch/logits.h"
#include "gpu/torch/map_rows.h"
#include "gpu/torch/torch_engine.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

namespace kvscope::gpu {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class MapWork {
public:
    MapWork(const TorchDevice& device, const AttentionMapInput& input, at::ScalarType type, AttentionMap& map)
        : m_device(device), m_input(input), m_map(map), m_heads(static_cast<std::int64_t>(input.queryHeads.size())) {
        const at::Tensor keys = numbersOf(input.keys);
        const std::int32_t kv = input.rule.gqaGroupOf[static_cast<std::size_t>(input.queryHeads.front())];
        m_keys = keys.select(0, kv).to(type);
        m_queries = numbersOf(input.queries).index_select(0, device.listOf(input.queryHeads));
        const auto wide = keys.options().dtype(at::kDouble);
        m_cells = at::full({input.height, input.width}, kMinusInfinity, wide);
        m_columns = at::zeros({keys.size(1)}, wide);
        const at::Tensor offsets = at::arange(input.keyEnd - input.keyBegin, keys.options().dtype(at::kLong));
        // Inverts the cut of the keys into `width` pieces.
        m_pixelOfKey = ((offsets + 1) * input.width - 1).floor_divide(input.keyEnd - input.keyBegin);
    }

    void add(const MapRow* rows, std::int64_t count) {
        const bool known = m_input.value == MapValue::Logit || allKnown(rows, count);
        KeySpan keys = keysSeenBy(m_input, rows[0].position);
        keys.end = keysSeenBy(m_input, rows[count - 1].position).end;
        if (known) keys = keys.and_({m_input.keyBegin, m_input.keyEnd});
        if (keys.count() == 0) return;
        std::vector<std::int64_t> places;
        Visible perRow, perLane;
        for (std::int64_t r = 0; r < count; ++r) {
            const KeySpan seen = keysSeenBy(m_input, rows[r].position);
            places.push_back(rows[r].position - m_input.firstQuery);
            perRow.add(seen.begin, seen.end);
            for (std::int64_t head = 0; head < m_heads; ++head) perLane.add(seen.begin, seen.end);
        }
        const at::Tensor positions = at::arange(keys.begin, keys.end, m_pixelOfKey.options());
        const at::Tensor queries =
            m_queries.index_select(1, m_device.listOf(places)).transpose(0, 1).to(m_keys.dtype());
        at::Tensor values =
            logitsOf(queries.reshape({count * m_heads, -1}), m_keys.narrow(0, keys.begin, keys.count()), m_input.rule);
        const auto hidden = [&](const Visible& visible) {
            return hiddenFrom(m_device, visible, positions, keys.begin, keys.end - 1);
        };
        if (m_input.value == MapValue::Weight) makeWeights(values, hidden(perLane), rows, count, known);
        pool(combined(values.to(at::kDouble), count), hidden(perRow), rows, count, keys);
    }

    void finish() {
        const at::Tensor cells = at::where(m_cells == kMinusInfinity, double{kNaN}, m_cells);
        m_map.cells = hostTensorOf(cells);
        const KeySpan shown{m_input.keyBegin, m_input.keyEnd};
        const std::vector<double> columns = doublesOf(m_columns.narrow(0, shown.begin, shown.count()));
        std::vector<double> sums(static_cast<std::size_t>(m_input.width));
        for (std::int64_t i = 0; i < shown.count(); ++i)
            sums[static_cast<std::size_t>(((i + 1) * m_input.width - 1) / shown.count())] +=
                columns[static_cast<std::size_t>(i)];
        m_map.columnSums = {{m_input.width}, std::vector<float>(sums.begin(), sums.end())};
    }

private:
    float& logSumExp(std::int64_t head, std::int64_t position) const {
        const std::int64_t w = m_input.queries.size(1);
        return m_map.rowLogSumExps.data[static_cast<std::size_t>(head * w + position - m_input.firstQuery)];
    }

    bool allKnown(const MapRow* rows, std::int64_t count) const {
        for (std::int64_t r = 0; r < count; ++r)
            for (std::int64_t head = 0; head < m_heads; ++head)
                if (std::isnan(logSumExp(head, rows[r].position))) return false;
        return true;
    }

    /// Turns logits [rows heads, m] into softmax weights in place; stores the row sums that were not known.
    void makeWeights(at::Tensor& values, const at::Tensor& hidden, const MapRow* rows, std::int64_t count, bool known) {
        const at::Tensor rowMax = exponentiate(values, hidden);
        const at::Tensor rowSums = values.sum(-1, true);
        if (known) {
            std::vector<double> sums;
            for (std::int64_t r = 0; r < count; ++r)
                for (std::int64_t head = 0; head < m_heads; ++head)
                    sums.push_back(double{logSumExp(head, rows[r].position)});
            const at::Tensor factors = (rowMax - m_device.listOf(sums).unsqueeze(1).to(rowMax.dtype())).exp();
            values.mul_(at::where(rowSums <= 0, 0.0, factors));
            return;
        }
        values.mul_(inverseSumsOf(rowSums));
        const std::vector<double> logs = doublesOf(rowSums.log() + rowMax), all = doublesOf(rowSums);
        for (std::int64_t r = 0; r < count; ++r)
            for (std::int64_t head = 0; head < m_heads; ++head) {
                const auto lane = static_cast<std::size_t>(r * m_heads + head);
                if (all[lane] > 0) logSumExp(head, rows[r].position) = static_cast<float>(logs[lane]);
            }
    }

    /// Cells [rows, m]: the weights of the query heads combined.
    at::Tensor combined(const at::Tensor& values, std::int64_t count) const {
        const at::Tensor perHead = values.view({count, m_heads, -1});
        if (m_heads == 1) return perHead.squeeze(1);
        if (m_input.combine == GroupRule::Max) return perHead.amax(1);
        const at::Tensor sum = perHead.sum(1);
        return m_input.combine == GroupRule::Mean ? sum / static_cast<double>(m_heads) : sum;
    }

    void pool(at::Tensor cells, const at::Tensor& hidden, const MapRow* rows, std::int64_t count, KeySpan keys) {
        const KeySpan shown = keys.and_({m_input.keyBegin, m_input.keyEnd});
        if (shown.count() == 0) return;
        if (m_input.value == MapValue::Weight) // masked cells weigh 0
            m_columns.narrow(0, keys.begin, keys.count()).add_(cells.sum(0));
        if (hidden.defined()) // NaN marks a masked cell; an unmasked weight of 0 stays 0
            cells = cells.masked_fill(hidden, kMinusInfinity);
        cells = cells.narrow(1, shown.begin - keys.begin, shown.count());
        const at::Tensor columns = m_pixelOfKey.narrow(0, shown.begin - m_input.keyBegin, shown.count());
        const at::Tensor pixels = at::full({count, m_input.width}, kMinusInfinity, cells.options())
                                      .scatter_reduce(1, columns.unsqueeze(0).expand({count, -1}), cells, "amax");
        std::vector<std::int64_t> lines;
        for (std::int64_t r = 0; r < count; ++r) lines.push_back(rows[r].pixel);
        const at::Tensor places = m_device.listOf(lines).unsqueeze(1).expand({count, m_input.width});
        m_cells = m_cells.scatter_reduce(0, places, pixels, "amax");
    }

    const TorchDevice& m_device;
    const AttentionMapInput& m_input;
    AttentionMap& m_map;
    std::int64_t m_heads;
    at::Tensor m_queries, m_keys, m_cells, m_columns, m_pixelOfKey;
};

} // namespace

AttentionMap TorchEngine::attentionMap(const AttentionMapInput& input, const Checkpoint& checkpoint) const {
    requireNoSinks(input.rule);
    assert(!input.queryHeads.empty() && input.rowBegin < input.rowEnd && input.keyBegin < input.keyEnd);
    assert(input.rowBegin >= input.firstQuery && input.rowEnd <= input.firstQuery + input.queries.size(1));
    if constexpr (KVSCOPE_HAS_KERNELS)
        if (m_device.runsKernels() && std::cmp_less_equal(input.queryHeads.size(), kMostMapHeads))
            return kernels::attentionMap(m_device, input, m_arithmetic, checkpoint);
    const auto heads = static_cast<std::int64_t>(input.queryHeads.size());
    const std::vector<MapRow> rows = mapRowsOf(input);
    AttentionMap map = emptyMapFor(input, static_cast<std::int64_t>(rows.size()));
    MapWork work(m_device, input, m_arithmetic == Arithmetic::Fast ? at::kFloat : at::kDouble, map);
    Steps steps(m_device, checkpoint, static_cast<double>(rows.size()));
    const double bytes = 40.0 * static_cast<double>(heads * input.keys.size(1));
    steps.batches(map.rows, bytes, 1,
                  [&](std::int64_t begin, std::int64_t count) { work.add(rows.data() + begin, count); });
    work.finish();
    return map;
}

} // namespace kvscope::gpu
