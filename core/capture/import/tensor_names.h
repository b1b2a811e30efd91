#pragma once

#include "core/capture/import/tensor_archive.h"

#include <map>
#include <span>

namespace kvscope {

/// What an archive's tensor can be. KeysAndValues is one tensor with both, as vLLM's connector writes it; Sinks are the
/// logits of a layer's attention sinks, a weight of the model.
enum class ImportRole { Keys, Values, Queries, KeysPreRope, KeysAndValues, Sinks };

std::string_view importRoleName(ImportRole role); ///< "k" ..., as templates name it

/// The tensors of one layer.
using LayerTensors = std::map<ImportRole, const ArchiveTensor*>;

struct NamedTensors {
    std::map<int, LayerTensors> layers;
    const ArchiveTensor* tokenIds = nullptr;
    const ArchiveTensor* positions = nullptr;
};

/// A name template of the user, `ROLE=TEMPLATE`: `{layer}` stands for the layer's number, `*` for any text; a leading
/// `*` stands for no text or for one that does not end in a letter.
struct NameTemplate {
    ImportRole role;
    std::string text;

    static NameTemplate parse(const std::string& text); ///< throws Error
};

/// Assigns tensors to roles by name: templates first, then the table of tensor_names.cpp. Other tensors are left out.
/// Throws Error when two tensors claim the same role, when a layer has keys without values (or values without keys),
/// and when there is no layer, with the names found.
NamedTensors nameTensors(const TensorArchive& archive, const std::string& path,
                         std::span<const NameTemplate> templates);

} // namespace kvscope
