// Random numbers by name (RandomKey): computed by the generator, or read from a file of another program so that its run
// can be repeated exactly.
#include "core/base/random_source.h"

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
