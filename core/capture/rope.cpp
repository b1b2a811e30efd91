// Rotary position embedding, forwards and back. A pair of coordinates turns by position times frequency; which two
// coordinates form a pair depends on the layout (halves in Hugging Face models, neighbours elsewhere).
#include "core/capture/rope.h"

#include <cassert>
#include <cmath>
#include <vector>

namespace kvscope {

namespace {

struct Turn {
    std::vector<double> cosine, sine;
};

Turn turnAt(std::int64_t position, std::span<const float> frequencies, double direction) {
    Turn turn;
    for (const float frequency : frequencies) {
        const float angle = static_cast<float>(position) * frequency; // float32, as the model computes it
        turn.cosine.push_back(std::cos(static_cast<double>(angle)));
        turn.sine.push_back(direction * std::sin(static_cast<double>(angle)));
    }
    return turn;
}

void turnRow(float* row, const Turn& turn, bool interleaved, double factor) {
    const std::size_t pairs = turn.cosine.size();
    for (std::size_t i = 0; i < pairs; ++i) {
        float& first = row[interleaved ? 2 * i : i];
        float& second = row[interleaved ? 2 * i + 1 : i + pairs];
        const double a = first, b = second;
        first = static_cast<float>(factor * (a * turn.cosine[i] - b * turn.sine[i]));
        second = static_cast<float>(factor * (b * turn.cosine[i] + a * turn.sine[i]));
    }
}

void rotate(HostTensor& tensor, std::span<const std::int64_t> positions, std::span<const float> frequencies,
            const RopeInfo& rope, double direction, double factor) {
    const std::int64_t heads = tensor.shape[0], rows = tensor.shape[1], d = tensor.shape[2];
    assert(static_cast<std::int64_t>(positions.size()) == rows);
    assert(2 * static_cast<std::int64_t>(frequencies.size()) <= d);
    for (std::int64_t r = 0; r < rows; ++r) {
        const Turn turn = turnAt(positions[static_cast<std::size_t>(r)], frequencies, direction);
        for (std::int64_t h = 0; h < heads; ++h)
            turnRow(tensor.data.data() + (h * rows + r) * d, turn, rope.interleaved, factor);
    }
}

} // namespace

void rotateBack(HostTensor& tensor, std::span<const std::int64_t> positions, std::span<const float> frequencies,
                const RopeInfo& rope) {
    rotate(tensor, positions, frequencies, rope, -1, 1 / rope.attentionScaling);
}

void rotateForward(HostTensor& tensor, std::span<const std::int64_t> positions, std::span<const float> frequencies,
                   const RopeInfo& rope) {
    rotate(tensor, positions, frequencies, rope, +1, rope.attentionScaling);
}

} // namespace kvscope
