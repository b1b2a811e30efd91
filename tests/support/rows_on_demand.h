#pragma once

#include "core/base/row_source.h"
#include "core/engine/forwarding_engine.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace kvscope::testing {

/// Numbers in memory that pretend to lie in a file; notes the most rows that were asked for at once.
class MemoryRows final : public RowSource {
public:
    explicit MemoryRows(HostTensor numbers) : m_numbers(std::move(numbers)) {}

    Shape shape() const override { return m_numbers.shape; }
    StoredType stored() const override { return m_numbers.stored; }
    void read(std::int64_t head, std::int64_t begin, std::int64_t count, float* out) const override {
        std::int64_t before = mostRows;
        while (before < count && !mostRows.compare_exchange_weak(before, count)) {
        }
        const std::int64_t width = shape()[2];
        std::copy_n(m_numbers.data.begin() + (head * shape()[1] + begin) * width, count * width, out);
    }

    mutable std::atomic<std::int64_t> mostRows{0};

private:
    HostTensor m_numbers;
};

/// Uploads what has three axes as rows that are read on demand.
class OnDemandEngine final : public ForwardingEngine {
public:
    explicit OnDemandEngine(const Engine& engine) : ForwardingEngine(engine), m_engine(engine) {}

    Tensor upload(HostTensor tensor) const override {
        if (tensor.shape.rank() != 3 || tensor.empty()) return m_engine.upload(std::move(tensor));
        return m_engine.onDemand(std::make_shared<const MemoryRows>(std::move(tensor)));
    }

private:
    const Engine& m_engine;
};

} // namespace kvscope::testing
