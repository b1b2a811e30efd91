#pragma once

#include "core/capture/capture.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

struct CaptureWriteOptions {
    int deflateLevel = 0; ///< 1 to 9, with shuffle, for small samples; 0: none, reads five times faster
    bool withHash = true; ///< reads the tensors once more at the end
};

/// Writes a `kvscope-capture` version 1 file layer by layer, so that only one tensor, or a block of one, is in memory.
/// The file appears under its name when finish() succeeds; otherwise nothing is left behind. Throws Error when it
/// cannot be written.
class CaptureWriter {
public:
    /// `info.layers` says which tensors each layer has and as what type they are stored; path, sizes and hash of `info`
    /// are not used.
    CaptureWriter(const std::string& path, const CaptureInfo& info, const TokenTable& tokens,
                  const CaptureWriteOptions& options = {});
    ~CaptureWriter();

    /// [rotaryDim / 2], of the layers of one attention type; "" means all layers.
    void writeInverseFrequencies(const std::string& attentionType, const std::vector<float>& frequencies);

    /// [H, rows, d], narrowed to the layer's stored type (nearest, ties to even). Fewer queries than tokens become the
    /// `q_window` of the last ones. A number that the stored type cannot hold is an Error.
    void write(LayerIndex layer, TensorRole role, const HostTensor& tensor, const Checkpoint& checkpoint);
    void write(LayerIndex layer, TensorRole role, const RowSource& rows, const Checkpoint& checkpoint);
    /// Reserves the space of a tensor and writes nothing: its numbers read as zeros, and the file stays sparse.
    void reserve(LayerIndex layer, TensorRole role);
    void finish(const Checkpoint& checkpoint);

private:
    struct State;
    std::unique_ptr<State> m_state;
};

/// Copies every stored tensor of an open capture into a new file.
void writeCapture(const CaptureReader& source, const std::string& path, const CaptureWriteOptions& options,
                  const Checkpoint& checkpoint);

} // namespace kvscope
