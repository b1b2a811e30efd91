#pragma once

#include "core/capture/capture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace kvscope::view_fixture {

/// Softmax of one row over the keys before it, in plain loops.
inline std::vector<double> causalRow(const CaptureReader& capture, int layer, int queryHead, std::int64_t row) {
    const LayerInfo& info = capture.info().layerInfo(LayerIndex(layer));
    const HostTensor q = capture.read(LayerIndex(layer), TensorRole::Queries, {});
    const HostTensor k = capture.read(LayerIndex(layer), TensorRole::Keys, {});
    const std::int64_t n = k.shape[1], d = k.shape[2], first = n - q.shape[1];
    const float* query = q.data.data() + (queryHead * q.shape[1] + row - first) * d;
    const float* keys = k.data.data() + info.gqaGroupOf[static_cast<std::size_t>(queryHead)] * n * d;
    std::vector<double> weights;
    double top = -INFINITY, sum = 0;
    for (std::int64_t i = 0; i <= row; ++i) {
        double product = 0;
        for (std::int64_t c = 0; c < d; ++c) product += double(query[c]) * double(keys[i * d + c]);
        weights.push_back(info.scaling * product);
        top = std::max(top, weights.back());
    }
    for (double& w : weights) sum += w = std::exp(w - top);
    for (double& w : weights) w /= sum;
    return weights;
}

} // namespace kvscope::view_fixture
