#pragma once

#include <cstddef>
#include <vector>

namespace kvscope {

/// Keeps the memory of destroyed large tensors for later ones of the same size, so that work that goes from layer to
/// layer reads each layer into the memory of an earlier one. The first write to fresh pages costs more than reading a
/// cached file into them. Memory is kept while a SpareMemory lives, at most that of a layer's tensors. Thread-safe.
class SpareMemory {
public:
    SpareMemory();
    ~SpareMemory();
    SpareMemory(const SpareMemory&) = delete;
    SpareMemory& operator=(const SpareMemory&) = delete;

    static constexpr std::size_t kLeast = 1 << 22; ///< numbers; smaller vectors are not kept

    /// `count` numbers to overwrite: those of an earlier tensor, or zeros. Throws std::bad_alloc.
    static std::vector<float> take(std::size_t count);
    static void give(std::vector<float>&& numbers);
};

} // namespace kvscope
