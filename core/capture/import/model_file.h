#pragma once

#include "core/capture/import/described_model.h"

namespace kvscope {

/// Reads what `kvscope-describe` writes (resources/schemas/described_model.schema.json), or a Hugging Face
/// `config.json` of a model type whose conventions are known here (hub_config.cpp). Throws Error naming the field; for
/// every other model type the remedy is `kvscope-describe`.
DescribedModel readDescribedModel(const std::string& path);

} // namespace kvscope
