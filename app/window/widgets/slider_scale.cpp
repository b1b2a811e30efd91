// A slider has integer positions. Few steps get one position each; many or none share 2,000, which is finer than a
// pixel. Exact values are typed.
#include "app/window/widgets/slider_scale.h"

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {
constexpr int kFinest = 2000;
} // namespace

SliderScale SliderScale::of(const ParameterSpec& spec, std::int64_t tokens) {
    SliderScale scale{spec.min, spec.max, spec.step, spec.logarithmic};
    if (spec.kind == ParameterKind::Integer && scale.step == 0) scale.step = 1;
    if (spec.maxIsTokens && tokens > 0)
        scale.max = std::max(scale.min, std::min(scale.max, static_cast<double>(tokens)));
    return scale;
}

int SliderScale::positions() const {
    if (max <= min) return 1;
    const double steps = step > 0 && !logarithmic ? std::round((max - min) / step) : kFinest;
    return static_cast<int>(std::clamp<double>(steps, 1, kFinest));
}

int SliderScale::positionOf(double value) const {
    if (max <= min) return 0;
    value = std::clamp(value, min, max);
    const double along =
        logarithmic ? std::log((value + offset()) / (min + offset())) / std::log((max + offset()) / (min + offset()))
                    : (value - min) / (max - min);
    return static_cast<int>(std::lround(along * positions()));
}

double SliderScale::valueAt(int position) const {
    if (position <= 0 || max <= min) return min;
    if (position >= positions()) return max;
    const double along = static_cast<double>(position) / positions();
    double value = logarithmic ? (min + offset()) * std::pow((max + offset()) / (min + offset()), along) - offset()
                               : min + along * (max - min);
    if (step > 0) value = min + std::round((value - min) / step) * step;
    return std::clamp(value, min, max);
}

} // namespace kvscope
