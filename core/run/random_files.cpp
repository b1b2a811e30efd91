// Random numbers read from a file or recorded into one. A number is identified by (layer, head, round, token, slot),
// its place in the array, so the order of requests does not matter.
#include "core/run/random_files.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/h5_writer.h"
#include "core/capture/named_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <utility>

namespace kvscope {

namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 27; // of a recorded table: 1 GiB
constexpr std::size_t kMostDrawn = std::size_t{1} << 25;
constexpr const char* kFewerNumbers =
    "Name fewer layers (--layers) or an earlier cut (--cut), or lower what the policy draws for a token";

std::vector<int> layersOf(const CaptureInfo& capture) {
    std::vector<int> layers;
    for (const LayerInfo& info : capture.layers) layers.push_back(info.layer.value);
    return layers;
}

/// A sketch that all layers share is drawn for layer 0. Where the capture lacks that layer, its place is the first.
std::int64_t placeOf(const std::vector<int>& layers, std::uint32_t layer) {
    const auto at = std::ranges::find(layers, static_cast<int>(layer));
    return at == layers.end() ? 0 : at - layers.begin();
}

class ReplayedRandom final : public RandomSource {
public:
    ReplayedRandom(const std::string& uniforms, const std::string& sketch, const CaptureInfo& capture)
        : m_layers(layersOf(capture)), m_kvHeads(capture.numKvHeads) {
        if (!uniforms.empty()) readUniforms(uniforms);
        if (!sketch.empty()) readSketch(sketch);
    }

    double uniform(const RandomKey& key) const override {
        if (m_uniforms.shape.empty()) return RandomSource::uniform(key);
        const std::vector<std::int64_t>& s = m_uniforms.shape;
        const std::int64_t slot = slotOf(key.slot);
        if (key.round >= s[2] || key.token >= s[3] || slot >= s[4]) failBeyond(key);
        const std::int64_t row = (placeOf(m_layers, key.layer) * s[1] + key.kvHead) * s[2] + key.round;
        const double value = m_uniforms.numbers[(row * s[3] + key.token) * s[4] + slot];
        if (!(value >= 0 && value < 1))
            fail(m_uniformsFrom, fmt::format("the uniform of {} is {}", nameOf(key), value), "Write numbers in [0, 1)");
        return value;
    }

    std::vector<double> sketch(const RandomKey& key, std::int64_t rows, std::int64_t columns) const override {
        if (m_sketch.shape.empty()) return RandomSource::sketch(key, rows, columns);
        const std::size_t axes = m_sketch.shape.size();
        if (m_sketch.shape[axes - 2] != rows || m_sketch.shape[axes - 1] != columns)
            fail(m_sketchFrom, fmt::format("the sketch has shape [{}]", fmt::join(m_sketch.shape, ", ")),
                 fmt::format("The policy needs [{}, {}], one for all or one per layer and KV head", rows, columns));
        const std::int64_t which = axes == 2 ? 0 : placeOf(m_layers, key.layer) * m_kvHeads + key.kvHead;
        const auto from = m_sketch.numbers.begin() + which * rows * columns;
        const std::vector<double> entries(from, from + rows * columns);
        if (!std::ranges::all_of(entries, [](double x) { return std::isfinite(x); }))
            fail(m_sketchFrom, fmt::format("the sketch of layer {}, KV head {} is not finite", key.layer, key.kvHead),
                 "Write finite numbers");
        return entries;
    }

    std::string id() const override { return m_id; }
    const std::vector<std::string>& notes() const { return m_notes; }

private:
    /// Index of a slot on the last axis; the axis length if it is missing.
    std::int64_t slotOf(std::uint32_t slot) const {
        const std::vector<std::int32_t>& slots = m_uniforms.slots;
        if (slots.empty()) return slot;
        const auto at = std::ranges::lower_bound(slots, static_cast<std::int64_t>(slot));
        return at != slots.end() && std::cmp_equal(*at, slot) ? at - slots.begin() : m_uniforms.shape[4];
    }

    [[noreturn]] static void fail(const NamedDataset& from, const std::string& sentence, const std::string& remedy) {
        throw Error({sentence, from.path, remedy, from.file});
    }

    static std::string nameOf(const RandomKey& key) {
        return fmt::format("layer {}, KV head {}, round {}, token {}, slot {}", key.layer, key.kvHead, key.round,
                           key.token, key.slot);
    }

    [[noreturn]] void failBeyond(const RandomKey& key) const {
        const std::string needed =
            fmt::format("The policy needs at least [layers, KV heads, {}, {}, ", key.round + 1, key.token + 1);
        fail(m_uniformsFrom, "the uniforms end before " + nameOf(key),
             needed + (m_uniforms.slots.empty()
                           ? fmt::format("{}]", key.slot + 1)
                           : fmt::format("slots], and slot {} among the slots that the attribute names", key.slot)));
    }

    void checkHeads(const NamedDataset& from, const std::vector<std::int64_t>& shape, const std::string& form) const {
        const auto layers = static_cast<std::int64_t>(m_layers.size());
        if (shape[0] != layers || shape[1] != m_kvHeads)
            fail(from, fmt::format("the data set has shape [{}]", fmt::join(shape, ", ")),
                 fmt::format("{}, with {} layers and {} KV heads for this capture", form, layers, m_kvHeads));
    }

    void readUniforms(const std::string& text) {
        const std::string form = "Write [layers, KV heads, n] or [layers, KV heads, rounds, n, slots]";
        m_uniformsFrom = NamedDataset::parse(text);
        m_uniforms = readNumbers(m_uniformsFrom);
        std::vector<std::int64_t>& shape = m_uniforms.shape;
        if (shape.size() != 3 && shape.size() != 5)
            fail(m_uniformsFrom, fmt::format("the data set has shape [{}]", fmt::join(shape, ", ")), form);
        checkHeads(m_uniformsFrom, shape, form);
        if (shape.size() == 3) shape = {shape[0], shape[1], 1, shape[2], 1};
        const std::vector<std::int32_t>& slots = m_uniforms.slots;
        if (!slots.empty() &&
            (std::cmp_not_equal(slots.size(), shape[4]) || slots.front() < 0 || !std::ranges::is_sorted(slots)))
            fail(m_uniformsFrom,
                 fmt::format("its attribute slots names {} slots for an axis of {}", slots.size(), shape[4]),
                 "Name each slot of the last axis, ascending, or leave the attribute out");
        m_id += "uniforms " + text + fileStamp(text);
        m_notes.push_back("uniforms, where any are drawn, are read from " + text + " and not made from the seed");
    }

    void readSketch(const std::string& text) {
        const std::string form = "Write [d, k] or [layers, KV heads, d, k]";
        m_sketchFrom = NamedDataset::parse(text);
        m_sketch = readNumbers(m_sketchFrom);
        if (m_sketch.shape.size() != 2 && m_sketch.shape.size() != 4)
            fail(m_sketchFrom, fmt::format("the data set has shape [{}]", fmt::join(m_sketch.shape, ", ")), form);
        if (m_sketch.shape.size() == 4) checkHeads(m_sketchFrom, m_sketch.shape, form);
        m_id += "sketch " + text + fileStamp(text);
        m_notes.push_back("sketches, where any are drawn, are read from " + text + " and not made from the seed");
    }

    std::vector<int> m_layers;
    std::int64_t m_kvHeads;
    NamedDataset m_uniformsFrom, m_sketchFrom;
    NamedNumbers m_uniforms, m_sketch; ///< empty shape: not given
    std::string m_id;
    std::vector<std::string> m_notes;
};

/// Writes a table in which numbers that were not drawn are NaN, which compresses well.
void put(h5::Writer& writer, const std::string& name, const std::vector<std::int64_t>& shape,
         const std::vector<double>& numbers) {
    h5::Storage storage;
    storage.chunk.assign(shape.size(), 1);
    storage.chunk.back() = shape.back();
    storage.chunk[shape.size() - 2] = std::min<std::int64_t>(shape[shape.size() - 2], 1024);
    storage.deflateLevel = 1;
    writer.createDataset(name, h5::ElementType::Float64, shape, storage);
    writer.write(name, numbers.data(), numbers.size() * sizeof(double));
}

std::vector<double> emptyTable(const std::vector<std::int64_t>& shape, const std::string& path) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count = size > kMostNumbers / count ? kMostNumbers + 1 : count * size;
    if (count > kMostNumbers)
        throw Error({fmt::format("a table of [{}] random numbers is too large", fmt::join(shape, ", ")), "--record",
                     kFewerNumbers, path});
    return std::vector<double>(static_cast<std::size_t>(count), std::numeric_limits<double>::quiet_NaN());
}

} // namespace

std::shared_ptr<const RandomSource> replayRandom(const std::string& uniforms, const std::string& sketch,
                                                 const CaptureInfo& capture) {
    return std::make_shared<const ReplayedRandom>(uniforms, sketch, capture);
}

std::vector<std::string> notesOfRandom(const RandomSource& source) {
    if (const auto* recording = dynamic_cast<const RecordingRandom*>(&source))
        return notesOfRandom(recording->source());
    const auto* replayed = dynamic_cast<const ReplayedRandom*>(&source);
    return replayed ? replayed->notes() : std::vector<std::string>{};
}

RecordingRandom::RecordingRandom(std::shared_ptr<const RandomSource> source, const CaptureInfo& capture)
    : m_source(std::move(source)), m_layers(layersOf(capture)), m_kvHeads(capture.numKvHeads) {
    static std::atomic<int> recordings = 0;
    m_id = "recorded " + std::to_string(++recordings) + "|" + m_source->id();
}

double RecordingRandom::uniform(const RandomKey& key) const {
    const double value = m_source->uniform(key);
    const std::lock_guard lock(m_mutex);
    if (m_drawn.size() == kMostDrawn)
        throw Error({"too many random numbers were drawn to record them", "--record", kFewerNumbers});
    m_drawn.push_back({key.layer, key.kvHead, key.round, key.token, key.slot, value});
    return value;
}

std::vector<double> RecordingRandom::sketch(const RandomKey& key, std::int64_t rows, std::int64_t columns) const {
    std::vector<double> entries = m_source->sketch(key, rows, columns);
    const std::lock_guard lock(m_mutex);
    const auto fail = [](const char* sentence, const char* remedy) { throw Error({sentence, "--record", remedy}); };
    if (!m_sketches.empty() &&
        (m_sketches.begin()->second.rows != rows || m_sketches.begin()->second.columns != columns))
        fail("the run drew sketches of several sizes", "Record one policy with one sketch size at a time");
    const auto [at, isNew] =
        m_sketches.try_emplace({placeOf(m_layers, key.layer), key.kvHead}, Sketch{rows, columns, entries});
    if (!isNew && at->second.entries != entries)
        fail("the run drew two different sketches for one place of the table",
             "Record a sketch of its own for each KV head, or one for all, but not both");
    return entries;
}

void RecordingRandom::write(const std::string& path) const {
    const std::lock_guard lock(m_mutex);
    if (m_drawn.empty() && m_sketches.empty())
        throw Error({"the run drew no random number", "--record",
                     "Leave it out: with this policy, its parameters and budget nothing is left to chance", path});
    AtomicFile target(path);
    h5::Writer writer(target);
    if (!m_drawn.empty()) writeUniforms(writer, path);
    if (!m_sketches.empty()) writeSketches(writer, path);
    writer.close();
    target.commit();
}

void RecordingRandom::writeUniforms(h5::Writer& writer, const std::string& path) const {
    std::vector<std::int64_t> shape = {std::ssize(m_layers), m_kvHeads, 0, 0, 0};
    std::set<std::uint32_t> distinct;
    for (const Drawn& drawn : m_drawn) {
        shape[2] = std::max(shape[2], std::int64_t{drawn.round} + 1);
        shape[3] = std::max(shape[3], std::int64_t{drawn.token} + 1);
        distinct.insert(drawn.slot);
    }
    const std::vector<std::int32_t> slots(distinct.begin(), distinct.end());
    shape[4] = std::ssize(slots);
    const auto slotOf = [&](std::uint32_t slot) {
        return std::ranges::lower_bound(slots, static_cast<std::int32_t>(slot)) - slots.begin();
    };
    std::vector<double> table = emptyTable(shape, path);
    for (const Drawn& drawn : m_drawn) {
        const std::int64_t row = (placeOf(m_layers, drawn.layer) * shape[1] + drawn.kvHead) * shape[2] + drawn.round;
        table[(row * shape[3] + drawn.token) * shape[4] + slotOf(drawn.slot)] = drawn.value;
    }
    put(writer, "/uniforms", shape, table);
    if (slots.back() + 1 != std::ssize(slots)) writer.attribute("/uniforms", "slots", slots);
}

void RecordingRandom::writeSketches(h5::Writer& writer, const std::string& path) const {
    const Sketch& first = m_sketches.begin()->second;
    const std::vector<std::int64_t> shape = {std::ssize(m_layers), m_kvHeads, first.rows, first.columns};
    std::vector<double> table = emptyTable(shape, path);
    for (const auto& [place, sketch] : m_sketches) {
        const std::int64_t at = place.first * m_kvHeads + place.second;
        std::ranges::copy(sketch.entries, table.begin() + at * first.rows * first.columns);
    }
    put(writer, "/sketch", shape, table);
}

} // namespace kvscope
