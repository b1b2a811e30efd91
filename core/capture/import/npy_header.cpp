// The header of an .npy array is a Python dictionary in a fixed dialect: 'descr', 'fortran_order' and 'shape'. Only
// that dialect is read; nothing is evaluated.
#include "core/capture/import/npy_header.h"

#include <charconv>
#include <cstring>
#include <string_view>

namespace kvscope {

namespace {

constexpr const char* kSaveAgain = "Save it again with numpy.savez";
constexpr std::size_t kMostAxes = 8;

/// The text between `'key':` and the next comma outside parentheses, without blanks at its ends.
std::string_view valueOf(std::string_view header, std::string_view key, const ArchiveTensor& tensor) {
    const std::string quoted = "'" + std::string(key) + "'";
    const std::size_t at = header.find(quoted);
    const std::size_t colon = at == header.npos ? at : header.find_first_not_of(' ', at + quoted.size());
    if (colon == header.npos || header[colon] != ':')
        refuseTensor(tensor, "the array's header lacks '" + std::string(key) + "'", kSaveAgain);
    std::string_view rest = header.substr(colon + 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const bool tuple = !rest.empty() && rest.front() == '(';
    const std::size_t end = tuple ? rest.find(')') : rest.find_first_of(",}");
    if (end == rest.npos)
        refuseTensor(tensor, "the array's header breaks off in '" + std::string(key) + "'", kSaveAgain);
    return rest.substr(0, tuple ? end + 1 : end);
}

NumberType typeOf(std::string_view descr) {
    constexpr std::pair<std::string_view, NumberType> kTypes[] = {
        {"<f2", NumberType::Float16}, {"<f4", NumberType::Float32}, {"<f8", NumberType::Float64},
        {"<i4", NumberType::Int32},   {"<i8", NumberType::Int64},   {"|V2", NumberType::Bfloat16},
        {"<V2", NumberType::Bfloat16}}; // how numpy spells ml_dtypes' bfloat16
    for (const auto& [known, type] : kTypes)
        if (descr == known) return type;
    return NumberType::Unknown;
}

std::vector<std::int64_t> parseShape(std::string_view text, const ArchiveTensor& tensor) {
    std::vector<std::int64_t> shape;
    const char* at = text.data() + 1;
    const char* const end = text.data() + text.size() - 1;
    while (at < end) {
        if (*at == ' ' || *at == ',') {
            ++at;
            continue;
        }
        std::int64_t size = 0;
        const auto [next, failure] = std::from_chars(at, end, size);
        if (failure != std::errc{} || size < 0 || shape.size() == kMostAxes)
            refuseTensor(tensor, "the array's shape " + std::string(text) + " is none", kSaveAgain);
        shape.push_back(size);
        at = next;
    }
    return shape;
}

} // namespace

void readNpyHeader(std::span<const std::byte> start, ArchiveTensor& tensor) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(start.data());
    if (start.size() < 12 || std::memcmp(bytes, "\x93NUMPY", 6) != 0)
        refuseTensor(tensor, "the member is no .npy array", kSaveAgain);
    const bool wide = bytes[6] >= 2; // version 1 has a length of 2 bytes, later ones of 4
    const std::size_t fixed = wide ? 12 : 10;
    std::size_t length = bytes[8] + (std::size_t{bytes[9]} << 8);
    if (wide) length += (std::size_t{bytes[10]} << 16) + (std::size_t{bytes[11]} << 24);
    if (length > start.size() - fixed)
        refuseTensor(tensor, "the array's header is longer than its member or than any that numpy writes", kSaveAgain);
    const std::string_view header(reinterpret_cast<const char*>(bytes) + fixed, length);
    std::string_view descr = valueOf(header, "descr", tensor);
    if (descr.size() >= 2 && descr.front() == '\'' && descr.back() == '\'') descr = descr.substr(1, descr.size() - 2);
    tensor.typeName = std::string(descr);
    if (descr.starts_with('>'))
        refuseTensor(tensor, "the array is big-endian (" + tensor.typeName + ")",
                     "Save it with array.astype(array.dtype.newbyteorder('<'))");
    tensor.type = typeOf(descr);
    const std::string_view shape = valueOf(header, "shape", tensor);
    if (shape.empty() || shape.front() != '(') refuseTensor(tensor, "the array's header has no shape", kSaveAgain);
    tensor.shape = parseShape(shape, tensor);
    if (valueOf(header, "fortran_order", tensor) != "False" && tensor.shape.size() > 1)
        refuseTensor(tensor, "the array is stored column by column (Fortran order)",
                     "Save it with numpy.ascontiguousarray");
    tensor.begin = fixed + length;
}

} // namespace kvscope
