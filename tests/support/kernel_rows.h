#pragma once

#include "gpu/kernels/device_data.h"
#include "gpu/kernels/elements.h"
#include "tests/support/half_float.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace kvscope::gpu {

/// Rows of heads as the kernels take them and, widened, as the CPU engine takes them. The buffer ends where the last
/// element does, so that a sanitizer sees what reads beyond it; a gap between heads holds NaN.
class TestRows {
public:
    TestRows(unsigned seed, ElementType type, std::int64_t heads, std::int64_t rows, std::int64_t width,
             std::int64_t gap = 0, double spread = 1, double shift = 0)
        : m_type(type), m_heads(heads), m_rows(rows), m_width(width), m_stride(rows * width + gap) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal(static_cast<float>(shift), static_cast<float>(spread));
        m_bytes.assign(static_cast<std::size_t>((m_stride * heads - gap) * bytesOf(type)), 0xff);
        for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t i = 0; i < rows * width; ++i) m_wide.push_back(put(h * m_stride + i, normal(random)));
    }

    /// As if host memory were the device's.
    DeviceRows device() const { return {m_bytes.data(), m_type, m_heads, m_rows, m_width, m_stride}; }
    const std::vector<unsigned char>& bytes() const { return m_bytes; }
    const std::vector<float>& wide() const { return m_wide; } ///< [heads, rows, width], what the elements stand for

    void set(std::int64_t head, std::int64_t row, std::int64_t column, float value) {
        m_wide[static_cast<std::size_t>((head * m_rows + row) * m_width + column)] =
            put(head * m_stride + row * m_width + column, value);
    }

private:
    /// Stores the value rounded to the type and returns what is stored.
    float put(std::int64_t index, float value) {
        unsigned char* to = m_bytes.data() + index * bytesOf(m_type);
        if (m_type == ElementType::Float32) {
            std::memcpy(to, &value, 4);
            return value;
        }
        if (m_type == ElementType::BFloat16) {
            const BFloat16 x{static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)};
            std::memcpy(to, &x, 2);
            return widened(x);
        }
        const std::uint16_t half = testing::halfBits(value);
        std::memcpy(to, &half, 2);
        return testing::halfOf(half);
    }

    ElementType m_type;
    std::int64_t m_heads, m_rows, m_width, m_stride;
    std::vector<unsigned char> m_bytes;
    std::vector<float> m_wide;
};

/// The heads of a call in the order of their KV heads, as the kernels want them listed.
struct SlotLists {
    std::vector<std::int32_t> heads, groups{0};
    std::int32_t largest = 1;

    SlotLists(const std::vector<std::int32_t>& gqaGroupOf, std::int64_t kvHeads) {
        for (std::int32_t kv = 0; kv < kvHeads; ++kv) {
            for (std::size_t h = 0; h < gqaGroupOf.size(); ++h)
                if (gqaGroupOf[h] == kv) heads.push_back(static_cast<std::int32_t>(h));
            groups.push_back(static_cast<std::int32_t>(heads.size()));
            largest = std::max(largest, groups.back() - groups[groups.size() - 2]);
        }
    }
};

} // namespace kvscope::gpu
