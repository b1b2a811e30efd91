#pragma once

#include <cstddef>
#include <vector>

namespace kvscope {

/// Memory of large tensors that are gone, for later ones of the same size: whoever goes from layer to layer reads each
/// into the memory of an earlier one. The first write to memory fresh from the system costs more than reading a cached
/// file into it does. Memory is kept while a SpareMemory lives, at most that of a layer's tensors. Thread-safe.
class SpareMemory {
public:
    SpareMemory();
    ~SpareMemory();
    SpareMemory(const SpareMemory&) = delete;
    SpareMemory& operator=(const SpareMemory&) = delete;

    static constexpr std::size_t kLeast = 1 << 22; ///< numbers; of fewer nothing is kept

    /// So many numbers, to be overwritten: those of an earlier tensor, or zeros. Throws std::bad_alloc.
    static std::vector<float> take(std::size_t count);
    static void give(std::vector<float>&& numbers);
};

} // namespace kvscope
