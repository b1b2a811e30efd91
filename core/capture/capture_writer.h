#pragma once

#include "core/capture/capture.h"

#include <functional>

namespace kvscope {

struct WriteOptions {
    int deflateLevel = 0;  ///< with shuffle, chunks of one head and 4,096 tokens; 0: contiguous, for captures that are read often
    bool withHash = true;  ///< reads the file once more at the end
    bool leaveTensorsUnwritten = false; ///< declares the tensors and stores none: a sparse file of any nominal size
};

/// Writes a `kvscope-capture` version 1 file, one tensor in memory at a time: `read` is asked for each tensor that
/// `info.layers` promises, in file order. The file appears whole or not at all. Throws Error or Cancelled.
void writeCapture(const std::string& path, const CaptureInfo& info, const TokenTable& tokens, const std::vector<float>& inverseFrequencies,
                  const std::function<HostTensor(LayerIndex, TensorRole)>& read, const WriteOptions& options, const Checkpoint& checkpoint);

/// A whole capture, from wherever it comes.
void writeCapture(const std::string& path, const CaptureReader& capture, const WriteOptions& options, const Checkpoint& checkpoint);

} // namespace kvscope
