#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace kvscope {

/// Sizes of a tensor of rank 0 to 4, row-major (last index fastest).
class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<std::int64_t> sizes);

    int rank() const { return m_rank; }
    std::int64_t operator[](int axis) const { return m_sizes[static_cast<std::size_t>(axis)]; }
    std::int64_t count() const; ///< number of elements; 0 for rank 0
    friend bool operator==(const Shape&, const Shape&) = default;

private:
    std::array<std::int64_t, 4> m_sizes{};
    int m_rank = 0;
};

/// The type in which numbers are stored in a file. Widening them to float loses nothing.
enum class StoredType : std::uint8_t { Bfloat16, Float16, Float32 };

/// Float numbers in host memory, contiguous, row-major.
struct HostTensor {
    Shape shape;
    std::vector<float> data;                 ///< size shape.count()
    StoredType stored = StoredType::Float32; ///< a 16-bit type: it holds every number exactly, so narrowing is exact

    bool empty() const { return data.empty(); }
    static HostTensor filled(const Shape& shape, float value = 0);
};

} // namespace kvscope
