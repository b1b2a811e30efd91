#pragma once

#include "core/base/random.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// Source of a policy's random numbers: the generator (default), a file of recorded numbers, or another source that is
/// recorded. Every number is requested by its key, so the order does not matter. Thread-safe.
class RandomSource {
public:
    virtual ~RandomSource() = default;

    /// Uniform double in [0, 1).
    virtual double uniform(const RandomKey& key) const { return uniformAt(key); }
    /// A sketch matrix of independent standard normal entries [rows, columns], row by row. Entry (i, j) has token i
    /// and slot j in `key`, which names seed, layer and KV head.
    virtual std::vector<double> sketch(const RandomKey& key, std::int64_t rows, std::int64_t columns) const;
    /// Part of every cache key: what distinguishes this source from another. Empty: the generator.
    virtual std::string id() const { return {}; }
};

/// The generator.
const RandomSource& drawnRandom();

} // namespace kvscope
