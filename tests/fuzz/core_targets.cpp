// The readers that need no views. Formats that are read from files get one in memory.
#include "tests/fuzz/targets.h"

#include "app/live/context_info.h"
#include "app/live/live_client.h"
#include "core/base/error.h"
#include "core/calibration/calibration.h"
#include "core/capture/import/imported_capture.h"
#include "core/capture/import/model_file.h"
#include "core/capture/open_capture.h"
#include "core/lists/selection_file.h"
#include "core/lists/selection_formats.h"
#include "core/policies/policy_spec.h"
#include "core/policies/score/score_expression.h"

#include <algorithm>
#include <cstdlib>

namespace kvscope::fuzz {

namespace {

void readEverything(const CaptureReader& capture) {
    for (const LayerInfo& layer : capture.info().layers)
        for (const TensorRole role : {TensorRole::Keys, TensorRole::Values, TensorRole::Queries})
            if (role != TensorRole::Queries || layer.queryCount > 0) capture.read(layer.layer, role, {});
}

void readCapture(std::string_view bytes) { readEverything(*openCapture(TemporaryFile(bytes, ".h5").path())); }
void readNpz(std::string_view bytes) { readEverything(*openImported(TemporaryFile(bytes, ".npz").path())); }
void readSafetensors(std::string_view bytes) {
    readEverything(*openImported(TemporaryFile(bytes, ".safetensors").path()));
}
/// What is read can be written, and keeps the same tokens when it is read again.
void readList(std::string_view bytes, const char* extension) {
    const RecordedSelection list = readSelection(TemporaryFile(bytes, extension).path());
    const std::string text = selectionJson(list);
    try {
        const RecordedSelection again = parseSelectionJson(text, "written");
        if (!std::ranges::equal(list.heads, again.heads, {}, &RecordedHead::kept, &RecordedHead::kept)) std::abort();
    } catch (const Error&) {
        std::abort();
    }
}
void readListJson(std::string_view bytes) { readList(bytes, ".json"); }
void readListCsv(std::string_view bytes) { readList(bytes, ".csv"); }
void readCalibrationText(std::string_view bytes) { readCalibrationFile(TemporaryFile(bytes, ".json").path()); }
void readModel(std::string_view bytes) { readDescribedModel(TemporaryFile(bytes, ".json").path()); }

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

const bool isAdded = addTarget("captures", readCapture) && addTarget("lists_json", readListJson) &&
                     addTarget("lists_csv", readListCsv) && addTarget("calibrations", readCalibrationText) &&
                     addTarget("specs", readSpec) && addTarget("scores", readScore) &&
                     addTarget("safetensors", readSafetensors) && addTarget("npz", readNpz) &&
                     addTarget("models", readModel) && addTarget("frames", readFrames);

} // namespace

} // namespace kvscope::fuzz
