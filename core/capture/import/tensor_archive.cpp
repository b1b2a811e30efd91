// Shared by all archives: size arithmetic without overflow, and errors that name file and tensor.
#include "core/capture/import/tensor_archive.h"

#include "core/base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace kvscope {

std::string lowerExtension(const std::string& path) {
    std::string extension = std::filesystem::path(path).extension().string();
    std::ranges::transform(extension, extension.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return extension;
}

std::int64_t numberBytes(NumberType type) {
    switch (type) {
    case NumberType::Float16:
    case NumberType::Bfloat16: return 2;
    case NumberType::Float32:
    case NumberType::Int32: return 4;
    case NumberType::Float64:
    case NumberType::Int64: return 8;
    case NumberType::Unknown: return 0;
    }
    return 0;
}

std::int64_t ArchiveTensor::count() const {
    std::int64_t product = 1;
    for (const std::int64_t size : shape) product *= size;
    return product;
}

std::string ArchiveTensor::shapeText() const { return fmt::format("({})", fmt::join(shape, ", ")); }

void refuseTensor(const ArchiveTensor& tensor, std::string sentence, std::string remedy) {
    throw Error({std::move(sentence), "tensor " + tensor.name, std::move(remedy), tensor.path});
}

std::uint64_t tensorBytes(const ArchiveTensor& tensor) {
    constexpr std::int64_t kMost = std::int64_t{1} << 48; // bytes; no file system holds as much in one file
    std::int64_t product = numberBytes(tensor.type);
    for (const std::int64_t size : tensor.shape)
        if (size < 0 || __builtin_mul_overflow(product, size, &product) || product > kMost)
            refuseTensor(tensor, "the shape " + tensor.shapeText() + " is none that a file can hold",
                         "Write the file again");
    return static_cast<std::uint64_t>(product);
}

} // namespace kvscope
