#pragma once

#include "core/base/host_tensor.h"
#include "core/base/index.h"
#include "core/capture/capture.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope {

/// Numbers of another program, named as `FILE.h5:/path` (a path may hold further slashes).
struct NamedDataset {
    std::string file, path;
    /// Throws Error that states this form.
    static NamedDataset parse(const std::string& text);
};

/// All numbers of a data set, as doubles.
struct NamedNumbers {
    std::vector<std::int64_t> shape;
    std::vector<double> numbers;
    std::vector<std::int32_t> slots; ///< its attribute "slots", or empty
};

/// Throws Error naming the file and the data set when it is missing or holds no numbers.
NamedNumbers readNumbers(const NamedDataset& source);

/// Changes when the file is written again: its date and size. Empty when there is no such file.
std::string fileStamp(const std::string& namedDataset);
/// The same for a file, by its path.
std::string pathStamp(const std::string& path);

/// Scores [layers, KV heads, n] as the policy `imported` takes them -> [Hkv, end] of one layer. The first axis has the
/// capture's layers, in their order; n is the capture's number of tokens, or less if it is at least `end`.
/// The floats have the order of the file's doubles. Throws Error naming data set, layer and head for NaN and where
/// float cannot keep that order near the scores; also where a `kvscope-scores` file
/// (resources/manual/capture_format.md) holds scores of other tokens.
HostTensor readImportedScores(const std::string& namedDataset, const CaptureReader& capture, LayerIndex layer,
                              std::int64_t end);
/// What a `kvscope-scores` file says of its data set: what made the scores, and whether it saw more than `end` tokens.
/// Empty for other files.
std::vector<std::string> notesOfScores(const std::string& namedDataset, std::int64_t end);
/// The data sets of the `kvscope-scores` file FILE.scores.h5 beside the capture FILE.h5, ascending; empty without one.
std::vector<NamedDataset> scoresBeside(const std::string& capturePath);

} // namespace kvscope
