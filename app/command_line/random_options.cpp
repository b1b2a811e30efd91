// Options that replace the random numbers of a run by those of a file, or write them to one.
#include "app/command_line/random_options.h"

#include "app/command_line/command.h"
#include "core/base/error.h"

#include <CLI/App.hpp>

namespace kvscope {

void RandomOptions::addTo(CLI::App& app, bool withRecord) {
    app.add_option("--uniforms", m_uniforms,
                   "FILE.h5:/path of uniforms in [0, 1) that replace the generator's: [layers, KV heads, n] or "
                   "[layers, KV heads, rounds, n, slots]; the policy's help says which it draws");
    app.add_option(
        "--sketch", m_sketch,
        "FILE.h5:/path of a sketch matrix that replaces the generator's: [d, k] or [layers, KV heads, d, k]");
    if (withRecord)
        app.add_option(
            "--record", m_record,
            "FILE.h5 for the random numbers of this run: /uniforms and /sketch, as the two options read them");
}

void RandomOptions::checkSeeds(std::size_t seeds) const {
    if (seeds > 1 && (replays() || !m_record.empty()))
        throw Error({"random numbers of a file belong to one run, and there are several seeds", "--seeds",
                     "Leave --seeds out, or --uniforms, --sketch and --record"});
}

std::shared_ptr<const RandomSource> RandomOptions::sourceFor(const CaptureInfo& capture) {
    if (m_uniforms.empty() && m_sketch.empty() && m_record.empty()) return nullptr;
    auto replayed = replayRandom(m_uniforms, m_sketch, capture);
    if (m_record.empty()) return replayed;
    m_recording = std::make_shared<const RecordingRandom>(std::move(replayed), capture);
    return m_recording;
}

void RandomOptions::finish() const {
    if (m_recording) m_recording->write(m_record);
}

} // namespace kvscope
