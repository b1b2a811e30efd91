// Policies ask for random numbers by name. The usual source computes them from that name; others look them up in a
// file that somebody else's program wrote, so that its run can be repeated exactly.
#include "core/base/random_source.h"

#include "core/base/gaussian.h"

namespace kvscope {

std::vector<double> RandomSource::sketch(const RandomKey& key, std::int64_t rows, std::int64_t columns) const {
    std::vector<double> entries;
    entries.reserve(static_cast<std::size_t>(rows * columns));
    RandomKey place = key;
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            place.token = static_cast<std::uint32_t>(i);
            place.slot = static_cast<std::uint32_t>(j);
            entries.push_back(gaussianAt(place));
        }
    }
    return entries;
}

const RandomSource& drawnRandom() {
    static const RandomSource source;
    return source;
}

} // namespace kvscope
