// A short list of unused vectors, and the number of SpareMemory objects that keep it.
#include "core/base/spare_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace kvscope {

namespace {

constexpr std::size_t kMost = 4; // keys, values, queries, keys before RoPE

struct Spare {
    std::mutex mutex;
    int users = 0;
    std::vector<std::vector<float>> vectors; ///< oldest first
};

Spare& spare() {
    static Spare all;
    return all;
}

} // namespace

SpareMemory::SpareMemory() {
    const std::lock_guard lock(spare().mutex);
    ++spare().users;
}

SpareMemory::~SpareMemory() {
    std::vector<std::vector<float>> freed; // destroyed after the lock
    const std::lock_guard lock(spare().mutex);
    if (--spare().users == 0) freed.swap(spare().vectors);
}

std::vector<float> SpareMemory::take(std::size_t count) {
    {
        const std::lock_guard lock(spare().mutex);
        auto& vectors = spare().vectors;
        const auto fits = std::ranges::find(vectors, count, &std::vector<float>::size);
        if (fits != vectors.end()) {
            std::vector<float> numbers = std::move(*fits);
            vectors.erase(fits);
            return numbers;
        }
    }
    return std::vector<float>(count);
}

void SpareMemory::give(std::vector<float>&& numbers) {
    std::vector<float> freed = std::move(numbers); // destroyed after the lock
    const std::lock_guard lock(spare().mutex);
    auto& vectors = spare().vectors;
    if (spare().users == 0 || freed.size() < kLeast) return;
    vectors.push_back(std::move(freed));
    if (vectors.size() <= kMost) return;
    freed = std::move(vectors.front());
    vectors.erase(vectors.begin());
}

} // namespace kvscope
