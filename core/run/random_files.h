#pragma once

#include "core/base/random_source.h"
#include "core/capture/capture.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kvscope {

namespace h5 {
class Writer;
}

/// Random numbers from files of other programs, so that their runs can be repeated exactly. Each argument is
/// `FILE.h5:/path`; "" leaves that kind of number to the generator.
///
/// Uniforms have the shape [layers, KV heads, n] (one number per token) or [layers, KV heads, rounds, n, slots] (rounds
/// and slots as the policy's explanation says), all in [0, 1). An attribute "slots" of the data set, ascending, names
/// the slots of its last axis where these are not 0, 1, 2 ... A sketch has the shape [layers, KV heads, d, k] or, one
/// for all, [d, k]. Layers are those of the capture, in its order; numbers that layer 0 draws for all layers stand at
/// the first place if the capture lacks layer 0. Shapes are checked here; a number is checked when it is asked for, so
/// numbers never drawn may be NaN. Throws Error.
std::shared_ptr<const RandomSource> replayRandom(const std::string& uniforms, const std::string& sketch,
                                                 const CaptureInfo& capture);

/// A sentence for each kind of number that the source takes from a file instead of from the seed.
std::vector<std::string> notesOfRandom(const RandomSource& source);

/// Forwards the numbers of another source and records them as data sets /uniforms [layers, KV heads, rounds, n, slots]
/// (NaN where nothing was drawn; only drawn slots, named by the attribute "slots") and /sketch [layers, KV heads, d,
/// k], float64, as replayRandom reads them. `sketch` throws Error where that table cannot hold the sketch beside those
/// drawn before: all have one size, and a place holds one sketch.
class RecordingRandom final : public RandomSource {
public:
    RecordingRandom(std::shared_ptr<const RandomSource> source, const CaptureInfo& capture);

    double uniform(const RandomKey& key) const override;
    std::vector<double> sketch(const RandomKey& key, std::int64_t rows, std::int64_t columns) const override;
    const RandomSource& source() const { return *m_source; }
    /// Unique per recording, so that no cached result hides draws from it.
    std::string id() const override { return m_id; }

    /// Writes atomically. Throws Error when nothing was drawn or when the table would be too large.
    void write(const std::string& path) const;

private:
    struct Drawn {
        std::uint32_t layer, kvHead, round, token, slot;
        double value;
    };
    struct Sketch {
        std::int64_t rows = 0, columns = 0;
        std::vector<double> entries;
    };

    /// Call with m_mutex locked and at least one number drawn.
    void writeUniforms(h5::Writer& writer, const std::string& path) const;
    void writeSketches(h5::Writer& writer, const std::string& path) const;

    std::shared_ptr<const RandomSource> m_source;
    std::string m_id;
    std::vector<int> m_layers; ///< of the capture
    std::int64_t m_kvHeads;
    mutable std::mutex m_mutex;
    mutable std::vector<Drawn> m_drawn;
    mutable std::map<std::pair<std::int64_t, std::uint32_t>, Sketch> m_sketches; ///< by the layer's place and KV head
};

} // namespace kvscope
