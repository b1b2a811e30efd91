#pragma once

#include "core/run/random_files.h"

#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace kvscope {

/// --uniforms, --sketch and --record: where a run's random numbers come from, and where they are written down.
class RandomOptions {
public:
    /// Commands that run many policies and seeds replay, and record nothing.
    void addTo(CLI::App& app, bool withRecord = true);
    bool replays() const { return !m_uniforms.empty() || !m_sketch.empty(); }
    /// Throws Error for several seeds, where a file of numbers leaves them without a meaning.
    void checkSeeds(std::size_t seeds) const;
    /// The source for runs on this capture; null when nothing was asked for. Throws Error before any work is done.
    std::shared_ptr<const RandomSource> sourceFor(const CaptureInfo& capture);
    /// Writes --record, if asked for.
    void finish() const;

private:
    std::string m_uniforms, m_sketch, m_record;
    std::shared_ptr<const RecordingRandom> m_recording;
};

} // namespace kvscope
