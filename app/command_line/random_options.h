#pragma once

#include "core/run/random_files.h"

#include <cstddef>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace kvscope {

/// --uniforms, --sketch and --record: the source of a run's random numbers, and the file to record them.
class RandomOptions {
public:
    /// Commands with many policies and seeds replay, but do not record.
    void addTo(CLI::App& app, bool withRecord = true);
    bool replays() const { return !m_uniforms.empty() || !m_sketch.empty(); }
    /// Throws Error for several seeds, which are meaningless with a file of numbers.
    void checkSeeds(std::size_t seeds) const;
    /// The random source for runs on this capture; null without options. Throws Error before any work.
    std::shared_ptr<const RandomSource> sourceFor(const CaptureInfo& capture);
    /// Writes --record, if asked for.
    void finish() const;

private:
    std::string m_uniforms, m_sketch, m_record;
    std::shared_ptr<const RecordingRandom> m_recording;
};

} // namespace kvscope
