// Names and texts that every part of the program uses for what a capture holds.
#include "core/capture/capture.h"

#include "core/base/error.h"
#include "core/base/one_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace kvscope {

namespace {

// In the order of their enumerations.
constexpr std::array<std::string_view, kSegmentKinds.size()> kSegmentNames = {"system", "context", "needle", "question",
                                                                              "answer"};
constexpr std::array<std::string_view, 3> kStoredTypeNames = {"bf16", "f16", "f32"};

template <class Enum> std::optional<Enum> named(std::span<const std::string_view> names, std::string_view name) {
    const auto found = std::ranges::find(names, name);
    return found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
}

} // namespace

std::string_view segmentName(SegmentKind kind) { return kSegmentNames[static_cast<std::size_t>(kind)]; }
std::optional<SegmentKind> segmentKindNamed(std::string_view name) { return named<SegmentKind>(kSegmentNames, name); }
std::string_view storedTypeName(StoredType type) { return kStoredTypeNames[static_cast<std::size_t>(type)]; }
std::optional<StoredType> storedTypeNamed(std::string_view name) { return named<StoredType>(kStoredTypeNames, name); }

std::string checkText(const CaptureCheck& check) {
    const std::string note = check.note.empty() ? "" : "; " + check.note;
    if (check.outcome == "not made") return check.name + " not compared" + note;
    return fmt::format("{} {}: differs from the model by {:.2g} of at most {:.2g} ({}, {} rows){}", check.name,
                       check.outcome, check.difference, check.tolerance, check.unit, check.rows, note);
}

std::string CaptureInfo::checkWarning() const {
    std::string failed;
    for (const CaptureCheck& check : checks)
        if (check.outcome == "failed") failed += (failed.empty() ? "" : ", ") + check.name;
    return failed.empty() ? "" : "the capture failed its self-check (" + failed + ")";
}

const LayerInfo& CaptureInfo::layerInfo(LayerIndex layer) const {
    std::string there;
    for (const LayerInfo& info : layers) {
        if (info.layer == layer) return info;
        there += (there.empty() ? "" : ", ") + std::to_string(info.layer.value);
    }
    throw Error({fmt::format("the capture has no layer {}", layer.value), "", "It holds layers " + there, path});
}

HostTensor CaptureReader::readQueries(LayerIndex layer, std::int64_t begin, std::int64_t end,
                                      const Checkpoint& checkpoint) const {
    const HostTensor all = read(layer, TensorRole::Queries, checkpoint);
    const std::int64_t rows = all.shape[1], d = all.shape[2];
    HostTensor part{{all.shape[0], end - begin, d}, {}, all.stored};
    for (std::int64_t head = 0; head < all.shape[0]; ++head)
        part.data.insert(part.data.end(), all.data.begin() + (head * rows + begin) * d,
                         all.data.begin() + (head * rows + end) * d);
    return part;
}

std::string_view TokenTable::textOf(TokenIndex token) const {
    const auto begin = static_cast<std::size_t>(offsets[token]);
    const auto end = static_cast<std::size_t>(offsets[static_cast<std::size_t>(token) + 1]);
    return std::string_view(bytes).substr(begin, end - begin);
}

std::string displayText(std::string_view bytes) {
    std::string text;
    while (!bytes.empty()) {
        const std::size_t length = codePointAt(bytes).length;
        const auto lead = static_cast<unsigned char>(bytes[0]);
        if (length == 0 || (lead < 0x20 && lead != '\n' && lead != '\t' && lead != '\r') || lead == 0x7F)
            text += fmt::format("\\x{:02X}", lead);
        else if (lead == ' ')
            text += "␣";
        else if (lead == '\n')
            text += "↵"; // ␤ is in none of the bundled fonts
        else if (lead == '\t')
            text += "⇥";
        else if (lead == '\r')
            text += "⏎";
        else
            text += bytes.substr(0, length);
        bytes.remove_prefix(length == 0 ? 1 : length);
    }
    return text;
}

} // namespace kvscope
