#pragma once

#include "core/base/checkpoint.h"
#include "core/base/row_source.h"
#include "core/engine/tensor.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace kvscope::cpu {

/// A tensor that stays in its file. The first primitive that needs the whole tensor reads it, and it stays in memory.
struct OnDemand {
    std::shared_ptr<const RowSource> source;
    std::once_flag once;
    std::vector<float> all; ///< empty until then
};

/// Float numbers in memory, or on demand. Engine::rows shares the numbers: head h starts at offset + h * headStride.
struct CpuStorage : TensorStorage {
    bool isOnDemand() const override { return demand != nullptr; }

    std::shared_ptr<const std::vector<float>> data; ///< null: on demand
    std::shared_ptr<OnDemand> demand;
    StoredType stored = StoredType::Float32;
    std::int64_t offset = 0;
    std::int64_t headStride = 0;
};

/// All numbers of a tensor, for reading; the rows of one head are contiguous.
struct TensorView {
    const float* data = nullptr;
    std::int64_t headStride = 0;

    const float* head(std::int64_t h) const { return data + h * headStride; }
};

TensorView viewOf(const Tensor& tensor);

/// Rows [begin, end) of one head, contiguous, valid while this object lives: already in memory, or read from the file.
class HeadRows {
public:
    /// Throws Error of the file, and Cancelled between the blocks of rows that it reads.
    HeadRows(const Tensor& tensor, std::int64_t head, std::int64_t begin, std::int64_t end,
             const Checkpoint& checkpoint = {});
    HeadRows(const Tensor& tensor, std::int64_t head, const Checkpoint& checkpoint = {})
        : HeadRows(tensor, head, 0, tensor.size(1), checkpoint) {}

    const float* data() const { return m_data; }

private:
    std::unique_ptr<float[]> m_read;
    const float* m_data;
};

/// Takes ownership of the numbers.
Tensor makeTensor(HostTensor numbers);
Tensor makeTensor(std::shared_ptr<const RowSource> source);

} // namespace kvscope::cpu
