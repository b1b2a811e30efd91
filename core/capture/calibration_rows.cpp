// The rows under /calibration: losses of the model at a few retentions. They are not part of the capture's hash and may
// be added while the capture is open, so they are read on every request.
#include "core/capture/calibration_rows.h"

#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/capture/h5.h"
#include "core/capture/import/imported_capture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

namespace kvscope {

namespace {

constexpr std::int64_t kColumns = 5, kMostRows = 1 << 20;
constexpr const char* kRoot = "/calibration";

CalibrationRow rowFrom(const double* numbers, const std::string& place, std::int64_t row, const std::string& path) {
    constexpr double kMostContexts = 1 << 30;
    const bool finite = std::isfinite(numbers[1]) && std::isfinite(numbers[2]) && std::isfinite(numbers[3]);
    if (!(numbers[0] >= 0 && numbers[0] <= 1) || !finite || !(numbers[3] > 0) || !(numbers[2] > 0))
        throw Error({fmt::format("row {} is no measurement: retention {}, NLL {}, {} and {}", row, numbers[0],
                                 numbers[1], numbers[2], numbers[3]),
                     place, "Write retention 0..1 and positive losses in nats a token", path});
    if (!(std::abs(numbers[4]) <= kMostContexts))
        throw Error({fmt::format("row {} names no context: context_id is {}", row, numbers[4]), place,
                     "Number the contexts from 0", path});
    return {numbers[0], numbers[1], numbers[2], numbers[3], static_cast<std::int64_t>(std::llround(numbers[4]))};
}

CalibrationRows readRows(const h5::File& file, const std::string& policy, const std::string& variant) {
    CalibrationRows read{.policy = policy, .variant = variant, .rows = {}, .cut = {}, .parameters = {}};
    const h5::DatasetInfo info = file.info(read.place());
    if (info.shape.size() != 2 || info.shape[1] != kColumns || info.shape[0] > kMostRows)
        throw Error({fmt::format("the rows have shape [{}]", fmt::join(info.shape, ", ")), read.place(),
                     "Write [rows, 5]: retention, nll_context, nll_full, nll_compressed, context_id", file.path()});
    const std::vector<double> numbers = file.read<double>(read.place());
    for (std::int64_t row = 0; row < info.shape[0]; ++row)
        read.rows.push_back(rowFrom(numbers.data() + row * kColumns, read.place(), row, file.path()));
    read.cut = file.integerAttribute(read.place(), "cut");
    read.parameters = file.stringAttribute(read.place(), "parameters").value_or("");
    checkNesting(read.parameters, file.path());
    read.simulated = file.integerAttribute(read.place(), "simulated").value_or(0) != 0;
    read.arithmetic = file.stringAttribute(read.place(), "arithmetic").value_or("");
    return read;
}

} // namespace

std::vector<CalibrationRows> readCalibration(const std::string& capturePath) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(capturePath, ignored) || isTensorFile(capturePath)) return {};
    const h5::File file = h5::File::openForReading(capturePath);
    std::vector<CalibrationRows> all;
    if (!file.exists(kRoot) || !file.isGroup(kRoot)) return all;
    for (const std::string& policy : file.children(kRoot)) {
        const std::string group = std::string(kRoot) + "/" + policy;
        if (!file.isGroup(group))
            throw Error({"this is a data set, not a group of variants", group, "Write /calibration/<policy>/<variant>",
                         capturePath});
        for (const std::string& variant : file.children(group)) all.push_back(readRows(file, policy, variant));
    }
    return all;
}

} // namespace kvscope
