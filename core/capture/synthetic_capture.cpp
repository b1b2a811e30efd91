// Synthetic captures with a known geometry, so that the right choice of a policy is known. All numbers are
// counter-based. Directions that must survive RoPE over the whole prompt (the common one, the sinks', the needle's) lie
// in the slowest coordinate pairs, as in real models.
#include "core/capture/synthetic_capture.h"

#include "core/base/parallel.h"
#include "core/base/random.h"
#include "core/capture/capture_writer.h"
#include "core/capture/rope.h"
#include "core/capture/synthetic_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

enum Draw : std::uint32_t { DirectionDraw = 1, CentreDraw, KeyNoise, ValueNoise, QueryNoise, ValueCentre };

constexpr double kSinkLength = 0.4;   // relative to a usual key: sinks are short, as Key norm assumes
constexpr double kSinkValue = 0.05;   // and have small values
constexpr double kNeedleShare = 0.85; // of a needle key's length lies along the needle's direction
constexpr double kCentreShare = 0.5;  // of the part that is not common to all keys belongs to the cluster

using Direction = std::vector<double>;

double dot(const Direction& a, const Direction& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

void normalise(Direction& a) {
    const double length = std::sqrt(dot(a, a));
    for (double& x : a) x /= length;
}

void addScaled(Direction& out, const Direction& a, double factor) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += factor * a[i];
}

/// `count` standard normal numbers at the slots of `key`; neighbouring slots share a Box-Muller pair.
Direction gaussians(RandomKey key, int count) {
    Direction numbers(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < numbers.size(); i += 2) {
        key.slot = static_cast<std::uint32_t>(i);
        const auto [a, b] = gaussianPairAt(key);
        numbers[i] = a;
        if (i + 1 < numbers.size()) numbers[i + 1] = b;
    }
    return numbers;
}

/// The geometry of one KV head of one layer.
class HeadGeometry {
public:
    HeadGeometry(const SyntheticSpec& spec, LayerIndex layer, int kvHead)
        : m_spec(spec), m_plan(planOf(spec)), m_key{.seed = spec.seed,
                                                    .layer = static_cast<std::uint32_t>(layer.value),
                                                    .kvHead = static_cast<std::uint32_t>(kvHead)},
          m_needleStrength(kvHead == layer.value % spec.kvHeads ? 1 : 0.4), m_length(std::sqrt(spec.headDim)) {
        Direction* const slow[] = {&m_common, &m_sink, &m_needle};
        for (std::uint32_t i = 0; i < 3; ++i) {
            *slow[i] = slowDirection(i);
            for (std::uint32_t j = 0; j < i; ++j) addScaled(*slow[i], *slow[j], -dot(*slow[i], *slow[j]));
            normalise(*slow[i]);
        }
    }

    bool isSink(std::int64_t t) const { return t < m_spec.sinks; }
    bool isNeedle(std::int64_t t) const { return t >= m_plan.needleBegin && t < m_plan.needleEnd; }

    Direction key(std::int64_t t) const {
        Direction k = noise(KeyNoise, t, 0);
        if (isSink(t)) {
            scale(k, 0.05);
            addScaled(k, m_sink, kSinkLength * m_length);
            return k;
        }
        const double own = std::sqrt(1 - m_spec.collinearity), share = m_spec.clusters > 0 ? kCentreShare : 0;
        scale(k, own * std::sqrt(1 - share));
        if (isNeedle(t)) {
            scale(k, 1 - kNeedleShare);
            addScaled(k, m_needle, kNeedleShare * m_length);
            return k;
        }
        addScaled(k, centre(CentreDraw, clusterOf(m_spec, t)), own * std::sqrt(share));
        addScaled(k, m_common, std::sqrt(m_spec.collinearity) * m_length);
        return k;
    }

    Direction value(std::int64_t t) const {
        Direction v = noise(ValueNoise, t, 0);
        if (isSink(t)) {
            scale(v, kSinkValue);
            return v;
        }
        scale(v, 0.5);
        addScaled(v, centre(ValueCentre, isNeedle(t) ? m_spec.clusters : clusterOf(m_spec, t)), 1);
        return v;
    }

    /// To outweigh n tokens of logits near zero a logit must be about ln n.
    Direction query(std::int64_t t, int queryHead) const {
        const double beat = std::log(static_cast<double>(m_spec.tokens)) + 1;
        const bool asks = m_spec.needleLength > 0 && t >= m_plan.contextEnd;
        Direction q = noise(QueryNoise, t, queryHead);
        scale(q, 0.5);
        addScaled(q, centre(CentreDraw, clusterOf(m_spec, t)), 0.3);
        addScaled(q, m_common, -0.5 * m_length); // queries point away from the keys' mean, as in KeyDiff's Figure 4
        addScaled(q, m_sink, (asks ? 0.5 : 1) * beat / kSinkLength);
        if (asks) addScaled(q, m_needle, m_needleStrength * beat / kNeedleShare);
        return q;
    }

private:
    static void scale(Direction& a, double factor) {
        for (double& x : a) x *= factor;
    }
    Direction noise(Draw what, std::int64_t token, int queryHead) const {
        RandomKey key = m_key;
        key.round = what + (static_cast<std::uint32_t>(queryHead) << 8);
        key.token = static_cast<std::uint32_t>(token);
        return gaussians(key, m_spec.headDim);
    }
    Direction centre(Draw what, int cluster) const { return noise(what, cluster, 0); }
    // Coordinates i and i + d/2 form a pair; the last pairs rotate slowest.
    Direction slowDirection(std::uint32_t number) const {
        const int pairs = m_spec.headDim / 2, slowPairs = std::max(2, m_spec.headDim / 16);
        Direction drawn = noise(DirectionDraw, number, 0);
        for (int i = 0; i < pairs - slowPairs; ++i) drawn[i] = drawn[i + pairs] = 0;
        return drawn;
    }

    SyntheticSpec m_spec;
    SyntheticPlan m_plan;
    RandomKey m_key;
    double m_needleStrength;
    double m_length; ///< of a usual key: sqrt(d)
    Direction m_common, m_sink, m_needle;
};

// Long prompts need slower rotation, which models trained on long prompts have.
double thetaOf(const SyntheticSpec& spec) { return std::max(10'000.0, 20.0 * static_cast<double>(spec.tokens)); }

std::int64_t queryCountOf(const SyntheticSpec& spec) { return spec.queryWindow > 0 ? spec.queryWindow : spec.tokens; }

class SyntheticRows final : public RowSource {
public:
    SyntheticRows(const SyntheticSpec& spec, LayerIndex layer, TensorRole role)
        : m_spec(spec), m_info(syntheticInfo(spec)), m_role(role) {
        assert(role == TensorRole::Keys || role == TensorRole::Values || role == TensorRole::Queries);
        for (int head = 0; head < spec.kvHeads; ++head) m_geometry.emplace_back(spec, layer, head);
        if (role != TensorRole::Values) m_frequencies = syntheticFrequencies(spec);
    }

    Shape shape() const override {
        const bool queries = m_role == TensorRole::Queries;
        return {queries ? m_spec.queryHeads : m_spec.kvHeads, queries ? queryCountOf(m_spec) : m_spec.tokens,
                m_spec.headDim};
    }
    StoredType stored() const override { return StoredType::Float32; }
    void read(std::int64_t head, std::int64_t begin, std::int64_t count, float* out) const override {
        const int queryHead = static_cast<int>(head), group = m_spec.queryHeads / m_spec.kvHeads;
        const bool queries = m_role == TensorRole::Queries;
        const HeadGeometry& geometry = m_geometry[static_cast<std::size_t>(queries ? queryHead / group : queryHead)];
        const std::int64_t first = m_spec.tokens - shape()[1] + begin;
        HostTensor rows = HostTensor::filled({1, count, m_spec.headDim});
        std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
        forEachPiece(count, [&](std::int64_t row) {
            const std::int64_t t = positions[row] = first + row;
            const Direction drawn = queries                      ? geometry.query(t, queryHead)
                                    : m_role == TensorRole::Keys ? geometry.key(t)
                                                                 : geometry.value(t);
            std::ranges::transform(drawn, rows.data.begin() + row * m_spec.headDim,
                                   [](double x) { return static_cast<float>(x); });
        });
        if (!m_frequencies.empty()) rotateForward(rows, positions, m_frequencies, m_info.rope);
        std::ranges::copy(rows.data, out);
    }

private:
    SyntheticSpec m_spec;
    CaptureInfo m_info;
    TensorRole m_role;
    std::vector<HeadGeometry> m_geometry;
    std::vector<float> m_frequencies;
};

} // namespace

CaptureInfo syntheticInfo(const SyntheticSpec& spec) {
    CaptureInfo info;
    info.modelId = "kvscope/synthetic";
    info.tool = "kvscope synth";
    info.notes = fmt::format("Made up: seed {}, {} clusters, {} sinks, collinearity {:g}, needle of {} {}", spec.seed,
                             spec.clusters, spec.sinks, spec.collinearity, spec.needleLength,
                             spec.needleLength == 1 ? "token" : "tokens");
    info.numLayers = spec.layers;
    info.numQueryHeads = spec.queryHeads;
    info.numKvHeads = spec.kvHeads;
    info.headDim = info.valueDim = spec.headDim;
    info.numTokens = spec.tokens;
    info.rope = {.type = spec.rope ? "default" : "none",
                 .theta = thetaOf(spec),
                 .attentionScaling = 1,
                 .rotaryDim = spec.headDim,
                 .interleaved = false};
    for (int l = 0; l < spec.layers; ++l) {
        LayerInfo layer;
        layer.layer = LayerIndex(l);
        layer.scaling = 1 / std::sqrt(static_cast<double>(spec.headDim));
        layer.hasRope = spec.rope;
        layer.attentionType = "full_attention";
        layer.stage = "post_qk_norm_post_rope_pre_scale";
        layer.queryCount = queryCountOf(spec);
        layer.storedType = spec.storedType;
        for (int h = 0; h < spec.queryHeads; ++h) layer.gqaGroupOf.push_back(h / (spec.queryHeads / spec.kvHeads));
        info.layers.push_back(std::move(layer));
    }
    return info;
}

std::vector<float> syntheticFrequencies(const SyntheticSpec& spec) {
    std::vector<float> frequencies;
    for (int i = 0; spec.rope && i < spec.headDim / 2; ++i)
        frequencies.push_back(static_cast<float>(std::pow(thetaOf(spec), -2.0 * i / spec.headDim)));
    return frequencies;
}

std::unique_ptr<RowSource> syntheticRows(const SyntheticSpec& spec, LayerIndex layer, TensorRole role) {
    return std::make_unique<SyntheticRows>(spec, layer, role);
}

void writeSyntheticCapture(const SyntheticSpec& spec, const std::string& path, int deflateLevel, bool sparse,
                           const Checkpoint& checkpoint) {
    const TokenTable tokens = syntheticTokens(spec); // checks the spec
    CaptureWriter writer(path, syntheticInfo(spec), tokens, {.deflateLevel = deflateLevel, .withHash = !sparse});
    if (spec.rope) writer.writeInverseFrequencies("", syntheticFrequencies(spec));
    const double steps = spec.layers + 1.0; // the last one is the hash
    for (int l = 0; l < spec.layers; ++l) {
        const Checkpoint part = checkpoint.part(l / steps, (l + 1) / steps);
        for (const TensorRole role : kSyntheticRoles) {
            if (sparse)
                writer.reserve(LayerIndex(l), role);
            else
                writer.write(LayerIndex(l), role, SyntheticRows(spec, LayerIndex(l), role), part);
        }
    }
    writer.finish(checkpoint.part(spec.layers / steps, 1));
}

} // namespace kvscope
