#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// Losses of one compressed run of the model (a row of `/calibration/<policy>/<variant>`).
struct CalibrationRow {
    double retention = 0;                                  ///< fraction kept, 0..1
    double contextNll = 0, fullNll = 0, compressedNll = 0; ///< mean nats a token
    std::int64_t context = 0;                              ///< number of the context
};

/// The rows of one policy and variant, and how they were measured, as far as the file states it.
struct CalibrationRows {
    std::string policy, variant;
    std::vector<CalibrationRow> rows; ///< in the file's order
    std::optional<std::int64_t> cut;
    std::string parameters; ///< JSON as written, or empty
    bool simulated = false;
    std::string arithmetic = {}; ///< of the engine that made the lists, where it was not exact

    std::string place() const { return "calibration/" + policy + "/" + variant; }
};

/// All calibration rows of a capture file; none for a capture that is no file. Throws Error for rows of another shape,
/// retentions outside 0..1, losses that are not finite, and full or compressed losses that are not positive.
std::vector<CalibrationRows> readCalibration(const std::string& capturePath);

} // namespace kvscope
