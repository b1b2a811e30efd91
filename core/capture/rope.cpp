// Rotary position embedding and its inverse. A pair of coordinates is rotated by position times frequency; the layout
// (halves in Hugging Face models, neighbours elsewhere) says which two coordinates form a pair.
#include "core/capture/rope.h"

#include <cassert>
#include <cmath>
#include <cstddef>

namespace kvscope {

namespace {

/// In float32, as the model computes it.
double angleAt(std::int64_t position, float frequency) {
    return static_cast<double>(static_cast<float>(position) * frequency);
}

RopeRotation rotationAt(std::int64_t position, std::span<const float> frequencies, double direction) {
    RopeRotation rotation;
    for (const float frequency : frequencies) {
        rotation.cosine.push_back(std::cos(angleAt(position, frequency)));
        rotation.sine.push_back(direction * std::sin(angleAt(position, frequency)));
    }
    return rotation;
}

void apply(const RopeRotation& rotation, float* row, bool interleaved, double factor) {
    const std::size_t pairs = rotation.cosine.size();
    for (std::size_t i = 0; i < pairs; ++i) {
        float& first = row[interleaved ? 2 * i : i];
        float& second = row[interleaved ? 2 * i + 1 : i + pairs];
        const double a = first, b = second;
        first = static_cast<float>(factor * (a * rotation.cosine[i] - b * rotation.sine[i]));
        second = static_cast<float>(factor * (b * rotation.cosine[i] + a * rotation.sine[i]));
    }
}

void rotate(HostTensor& tensor, std::span<const std::int64_t> positions, std::span<const float> frequencies,
            const RopeInfo& rope, double direction, double factor) {
    const std::int64_t heads = tensor.shape[0], rows = tensor.shape[1], d = tensor.shape[2];
    assert(static_cast<std::int64_t>(positions.size()) == rows);
    assert(rope.rotaryBegin + 2 * static_cast<std::int64_t>(frequencies.size()) <= d);
    for (std::int64_t r = 0; r < rows; ++r) {
        const RopeRotation rotation = rotationAt(positions[r], frequencies, direction);
        for (std::int64_t h = 0; h < heads; ++h)
            apply(rotation, tensor.data.data() + (h * rows + r) * d + rope.rotaryBegin, rope.interleaved, factor);
    }
    tensor.stored = StoredType::Float32;
}

} // namespace

void rotateBack(HostTensor& tensor, std::span<const std::int64_t> positions, std::span<const float> frequencies,
                const RopeInfo& rope) {
    rotate(tensor, positions, frequencies, rope, -1, 1 / rope.attentionScaling);
}

RopeRotation rotationBetween(std::int64_t from, std::int64_t to, std::span<const float> frequencies) {
    RopeRotation rotation;
    for (const float frequency : frequencies) {
        const double angle = angleAt(to, frequency) - angleAt(from, frequency);
        rotation.cosine.push_back(std::cos(angle));
        rotation.sine.push_back(std::sin(angle));
    }
    return rotation;
}

void rotateRow(std::span<float> row, const RopeRotation& rotation, const RopeInfo& rope) {
    assert(static_cast<std::size_t>(rope.rotaryBegin) + 2 * rotation.cosine.size() <= row.size());
    apply(rotation, row.data() + rope.rotaryBegin, rope.interleaved, 1);
}

void rotateForward(HostTensor& tensor, std::span<const std::int64_t> positions, std::span<const float> frequencies,
                   const RopeInfo& rope) {
    rotate(tensor, positions, frequencies, rope, +1, rope.attentionScaling);
}

} // namespace kvscope
