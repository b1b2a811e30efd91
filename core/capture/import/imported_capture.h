#pragma once

#include "core/capture/capture.h"
#include "core/capture/import/head_view.h"
#include "core/capture/import/tensor_names.h"

#include <string>
#include <vector>

namespace kvscope {

/// Metadata that files of bare tensors lack. Every field is optional.
struct ImportOptions {
    std::vector<NameTemplate> templates;
    AxisOrder order = AxisOrder::Auto;
    std::string configPath; ///< see readDescribedModel; empty: described_model.json or config.json beside the tensors
    std::string tokensPath; ///< ids, texts and segments, see token_list.h
};

/// True for what openImported reads: .safetensors, .npz, a folder with .safetensors files.
bool isTensorFile(const std::string& path);
/// True for pickles (.pt, .pth, .pkl, .bin), which openImported refuses with the reason.
bool isPickle(const std::string& path);

/// Opens tensors of other programs as a capture. Names and shapes are read and checked; tensors stay in the file until
/// a layer is asked for. `info().notes` says what had to be assumed. Throws Error naming file, tensor and remedy.
std::shared_ptr<const CaptureReader> openImported(const std::string& path, const ImportOptions& options = {});

} // namespace kvscope
