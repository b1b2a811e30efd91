// Reads .safetensors: eight bytes with the length of a JSON header, the header (name, type, shape and offsets of each
// tensor), then the numbers. The header is untrusted: each of its numbers is checked against the file's length.
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/capture/import/tensor_archive.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace kvscope {

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kLongestHeader = 100'000'000; // the limit of the format's own library
constexpr const char* kWriteAgain = "Write the file again with safetensors.torch.save_file";

[[noreturn]] void fail(const std::string& path, std::string sentence, std::string place = {}) {
    throw Error({std::move(sentence), std::move(place), kWriteAgain, path});
}

NumberType typeOf(const std::string& name) {
    constexpr std::pair<const char*, NumberType> kTypes[] = {
        {"F16", NumberType::Float16}, {"BF16", NumberType::Bfloat16}, {"F32", NumberType::Float32},
        {"F64", NumberType::Float64}, {"I32", NumberType::Int32},     {"I64", NumberType::Int64}};
    for (const auto& [known, type] : kTypes)
        if (name == known) return type;
    return NumberType::Unknown;
}

std::uint64_t littleEndian(const unsigned char* bytes) {
    std::uint64_t value = 0;
    for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
    return value;
}

std::string readHeader(const std::string& path, std::uint64_t fileBytes) {
    std::ifstream file(path, std::ios::binary);
    unsigned char length[8] = {};
    if (!file.read(reinterpret_cast<char*>(length), sizeof length))
        fail(path, fmt::format("the file has {} bytes and no header", fileBytes));
    const std::uint64_t size = littleEndian(length);
    if (size > kLongestHeader || size > fileBytes - sizeof length)
        fail(path,
             fmt::format(
                 "this is no safetensors file, or a truncated one: its header would have {} bytes, the file has {}",
                 size, fileBytes));
    std::string header(size, '\0');
    if (!file.read(header.data(), static_cast<std::streamsize>(size))) fail(path, "the header cannot be read");
    return header;
}

Json parseHeader(const std::string& path, const std::string& header) {
    checkNesting(header, path);
    std::set<std::string> names;
    std::string twice;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::key && depth == 1 && !names.insert(parsed.get<std::string>()).second)
            twice = parsed.get<std::string>();
        return true;
    };
    Json json = Json::parse(header, watch, false);
    if (!json.is_object()) fail(path, "the header is not a JSON object");
    if (!twice.empty()) fail(path, "the header names a tensor twice", "tensor " + twice);
    return json;
}

ArchiveTensor describe(const std::string& path, const std::string& name, const Json& entry) {
    ArchiveTensor tensor;
    tensor.name = tensor.matched = name;
    tensor.path = path;
    try {
        tensor.typeName = entry.at("dtype").get<std::string>();
        tensor.type = typeOf(tensor.typeName);
        for (const Json& size : entry.at("shape")) {
            if (!size.is_number_unsigned() || size.get<std::uint64_t>() > std::uint64_t{1} << 48)
                fail(path, "a size of the shape is no whole number", "tensor " + name);
            tensor.shape.push_back(size.get<std::int64_t>());
        }
        const Json& offsets = entry.at("data_offsets");
        if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
            fail(path, "data_offsets are not two whole numbers", "tensor " + name);
        tensor.begin = offsets[0].get<std::uint64_t>();
        const auto end = offsets[1].get<std::uint64_t>();
        if (end < tensor.begin) fail(path, "data_offsets end before they begin", "tensor " + name);
        tensor.bytes = end - tensor.begin;
    } catch (const Json::exception&) {
        fail(path, "the header lacks dtype, shape or data_offsets", "tensor " + name);
    }
    return tensor;
}

void checkPlace(const ArchiveTensor& tensor, std::uint64_t dataBytes) {
    if (tensor.begin > dataBytes || tensor.bytes > dataBytes - tensor.begin)
        refuseTensor(tensor,
                     fmt::format("the file is truncated: the tensor lies in bytes {} to {}, {} are there", tensor.begin,
                                 tensor.begin + tensor.bytes, dataBytes),
                     "Copy the file again");
    if (tensor.type != NumberType::Unknown && tensorBytes(tensor) != tensor.bytes)
        refuseTensor(tensor,
                     fmt::format("{} numbers of type {} need {} bytes, the header gives {}", tensor.shapeText(),
                                 tensor.typeName, tensorBytes(tensor), tensor.bytes),
                     kWriteAgain);
}

void checkOverlaps(std::vector<const ArchiveTensor*> tensors) {
    std::ranges::sort(tensors, [](const auto* a, const auto* b) {
        return std::pair(a->begin, a->bytes) < std::pair(b->begin, b->bytes);
    });
    for (std::size_t i = 1; i < tensors.size(); ++i)
        if (tensors[i]->begin < tensors[i - 1]->begin + tensors[i - 1]->bytes)
            refuseTensor(*tensors[i], "the tensor overlaps with " + tensors[i - 1]->name, kWriteAgain);
}

class SafetensorsArchive final : public TensorArchive {
public:
    SafetensorsArchive(const std::vector<std::string>& paths, bool inFolder) {
        for (const std::string& path : paths) add(path, inFolder);
    }

    std::vector<std::byte> read(const ArchiveTensor& tensor) const override {
        std::ifstream file(tensor.path, std::ios::binary);
        std::vector<std::byte> bytes(tensor.bytes);
        if (!file.seekg(static_cast<std::streamoff>(tensor.begin)) ||
            !file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
            refuseTensor(tensor, "the file has become shorter while it was open", "Open it again");
        return bytes;
    }

private:
    void add(const std::string& path, bool inFolder) {
        std::error_code failure;
        const std::uint64_t fileBytes = fs::file_size(path, failure);
        if (failure) fail(path, "the file cannot be read: " + failure.message());
        const std::string header = readHeader(path, fileBytes);
        const std::uint64_t dataBegin = 8 + header.size();
        std::vector<ArchiveTensor> found;
        const Json json = parseHeader(path, header);
        for (const auto& [name, entry] : json.items()) {
            if (name == "__metadata__") continue;
            found.push_back(describe(path, name, entry));
            checkPlace(found.back(), fileBytes - dataBegin);
        }
        std::vector<const ArchiveTensor*> pointers;
        for (const ArchiveTensor& tensor : found) pointers.push_back(&tensor);
        checkOverlaps(pointers);
        for (ArchiveTensor& tensor : found) {
            tensor.begin += dataBegin;
            if (inFolder) tensor.matched = fs::path(path).stem().string() + "." + tensor.name;
            m_tensors.push_back(std::move(tensor));
        }
    }
};

} // namespace

std::unique_ptr<const TensorArchive> openSafetensors(const std::string& path) {
    if (!fs::is_directory(path)) return std::make_unique<const SafetensorsArchive>(std::vector{path}, false);
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(path))
        if (lowerExtension(entry.path().string()) == ".safetensors") paths.push_back(entry.path().string());
    std::ranges::sort(paths);
    return std::make_unique<const SafetensorsArchive>(paths, true);
}

} // namespace kvscope
