// The readers of untrusted bytes, by name. Formats that are read from files get one in memory.
#include "tests/fuzz/targets.h"

#include "app/live/context_info.h"
#include "app/live/live_client.h"
#include "app/study/session_file.h"
#include "core/base/error.h"
#include "core/base/one_line.h"
#include "core/calibration/calibration.h"
#include "core/capture/import/imported_capture.h"
#include "core/capture/import/model_file.h"
#include "core/capture/open_capture.h"
#include "core/lists/selection_file.h"
#include "core/policies/policy_spec.h"
#include "core/policies/score/score_expression.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace kvscope::fuzz {

namespace {

/// A file that is there while the object is.
class File {
public:
    File(std::string_view bytes, const std::string& extension)
        : m_path((std::filesystem::exists("/dev/shm") ? std::filesystem::path("/dev/shm")
                                                      : std::filesystem::temp_directory_path()) /
                 ("kvscope-fuzz-" + std::to_string(::getpid()) + extension)) {
        std::ofstream(m_path, std::ios::binary) << bytes;
    }
    ~File() { std::filesystem::remove(m_path); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    std::string path() const { return m_path.string(); }

private:
    std::filesystem::path m_path;
};

void readEverything(const CaptureReader& capture) {
    for (const LayerInfo& layer : capture.info().layers)
        for (const TensorRole role : {TensorRole::Keys, TensorRole::Values, TensorRole::Queries})
            if (role != TensorRole::Queries || layer.queryCount > 0) capture.read(layer.layer, role, {});
}

void readCapture(std::string_view bytes) { readEverything(*openCapture(File(bytes, ".h5").path())); }
void readNpz(std::string_view bytes) { readEverything(*openImported(File(bytes, ".npz").path())); }
void readSafetensors(std::string_view bytes) { readEverything(*openImported(File(bytes, ".safetensors").path())); }
void readSessionText(std::string_view bytes) { readSession(File(bytes, ".kvscope").path()); }
void readListJson(std::string_view bytes) { readSelection(File(bytes, ".json").path()); }
void readListCsv(std::string_view bytes) { readSelection(File(bytes, ".csv").path()); }
void readCalibrationText(std::string_view bytes) { readCalibrationFile(File(bytes, ".json").path()); }
void readModel(std::string_view bytes) { readDescribedModel(File(bytes, ".json").path()); }

/// What is parsed can be written and means the same.
void readSpec(std::string_view bytes) {
    const PolicySpec spec = PolicySpec::parse(std::string(bytes));
    if (!(PolicySpec::parse(spec.text()) == spec)) std::abort();
}
void readScore(std::string_view bytes) { ScoreExpression::parse(bytes).features(); }

/// What a worker sends: frames, and in a frame what is read of a model.
void readFrames(std::string_view bytes) {
    live::FrameReader reader;
    reader.add(bytes);
    while (const auto frame = reader.next()) {
        if (live::frameBytes(*frame).empty()) std::abort();
        live::understand("context/read", [&] {
            const live::Json& info = frame->message.at("result").at("info");
            live::frequenciesOf(info, live::captureInfoOf(info, 100));
            return live::segmentsOf(frame->message.at("result").at("tokens").at("segments"), 100).size();
        });
    }
}

struct Target {
    const char* name;
    void (*read)(std::string_view bytes);
};
constexpr std::array<Target, 11> kTargets = {{{"captures", readCapture},
                                              {"sessions", readSessionText},
                                              {"lists_json", readListJson},
                                              {"lists_csv", readListCsv},
                                              {"calibrations", readCalibrationText},
                                              {"specs", readSpec},
                                              {"scores", readScore},
                                              {"safetensors", readSafetensors},
                                              {"npz", readNpz},
                                              {"models", readModel},
                                              {"frames", readFrames}}};

} // namespace

std::vector<std::string> targetNames() {
    std::vector<std::string> names;
    for (const Target& target : kTargets) names.emplace_back(target.name);
    return names;
}

void readAs(std::string_view target, std::string_view bytes) {
    for (const Target& one : kTargets)
        if (target == one.name) {
            try {
                one.read(bytes);
            } catch (const Error& error) {
                if (oneLine(error.what()) != error.what()) std::abort(); // messages are one line
            }
            return;
        }
    std::abort();
}

} // namespace kvscope::fuzz
