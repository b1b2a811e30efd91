// Reads .npz: a zip whose members are .npy arrays, stored or deflated. A stated member size is bounded by what its
// packed bytes can expand to.
#include "core/base/error.h"
#include "core/capture/import/tensor_archive.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>

namespace kvscope {

namespace {

constexpr const char* kSaveAgain = "Save it again with numpy.savez";
constexpr std::uint64_t kLongestHeader = 1 << 16; // of an array
constexpr std::uint64_t kMostExpansion = 1040;    // deflate cannot do better than 1032 to 1
constexpr std::size_t kMostAxes = 8;

/// The text between `'key':` and the next comma outside parentheses or brace, without leading blanks.
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

/// Reads the header of an .npy member into `tensor`, whose name and path are set: type, shape and `begin`, the bytes
/// before the numbers. `start` holds the first kLongestHeader bytes of the member, or all of it.
/// Throws Error for big-endian or Fortran-ordered arrays and malformed headers; types that are not read are Unknown.
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

struct CloseZip {
    void operator()(zip_t* zip) const { zip_discard(zip); }
};
struct CloseMember {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Zip = std::unique_ptr<zip_t, CloseZip>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

Zip openZip(const std::string& path) {
    int code = 0;
    Zip zip(zip_open(path.c_str(), ZIP_RDONLY, &code));
    if (zip) return zip;
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw Error({"this is no .npz file, or a truncated one (" + why + ")", "",
                 "Save it with numpy.savez, or copy it again", path});
}

Member openMember(zip_t* zip, const ArchiveTensor& tensor) {
    Member file(zip_fopen_index(zip, tensor.member, 0));
    if (!file) refuseTensor(tensor, fmt::format("the member cannot be unpacked ({})", zip_strerror(zip)), kSaveAgain);
    return file;
}

std::vector<std::byte> readBytes(zip_file_t* file, std::uint64_t most) {
    std::vector<std::byte> bytes(most);
    std::uint64_t have = 0;
    while (have < most) {
        const zip_int64_t got = zip_fread(file, bytes.data() + have, most - have);
        if (got <= 0) break;
        have += static_cast<std::uint64_t>(got);
    }
    bytes.resize(have);
    return bytes;
}

class NpzArchive final : public TensorArchive {
public:
    explicit NpzArchive(std::string path) : m_path(std::move(path)) {
        const Zip zip = openZip(m_path);
        const auto members = static_cast<std::uint64_t>(std::max<zip_int64_t>(0, zip_get_num_entries(zip.get(), 0)));
        for (std::uint64_t member = 0; member < members; ++member) add(zip.get(), member);
    }

    std::vector<std::byte> read(const ArchiveTensor& tensor) const override {
        const Zip zip = openZip(m_path); // libzip allows one thread per open zip
        const Member file = openMember(zip.get(), tensor);
        const auto header = readBytes(file.get(), tensor.begin);
        auto bytes = readBytes(file.get(), tensor.bytes);
        std::byte beyond{};
        if (header.size() != tensor.begin || bytes.size() != tensor.bytes || zip_fread(file.get(), &beyond, 1) != 0)
            refuseTensor(tensor, "the member does not unpack to its size, or its checksum is wrong",
                         "Copy the file again");
        return bytes;
    }

private:
    void add(zip_t* zip, std::uint64_t member) {
        zip_stat_t stat;
        zip_stat_init(&stat);
        constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
        if (zip_stat_index(zip, member, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded)
            throw Error({fmt::format("member {} of the zip has no name or size", member), "", kSaveAgain, m_path});
        ArchiveTensor tensor;
        tensor.name = stat.name;
        tensor.path = m_path;
        tensor.member = member;
        if (!tensor.name.ends_with(".npy"))
            refuseTensor(tensor, "the zip holds a member that is no .npy array", "Name a file of numpy.savez");
        tensor.name.resize(tensor.name.size() - 4);
        tensor.matched = tensor.name;
        if (stat.size / kMostExpansion > stat.comp_size + 1)
            refuseTensor(tensor, fmt::format("{} bytes cannot unpack to {}", stat.comp_size, stat.size), kSaveAgain);
        readNpyHeader(readBytes(openMember(zip, tensor).get(), std::min<std::uint64_t>(stat.size, kLongestHeader)),
                      tensor);
        tensor.bytes = stat.size - tensor.begin;
        if (tensor.type != NumberType::Unknown && tensorBytes(tensor) != tensor.bytes)
            refuseTensor(tensor,
                         fmt::format("{} numbers of type {} need {} bytes, the member holds {}", tensor.shapeText(),
                                     tensor.typeName, tensorBytes(tensor), tensor.bytes),
                         kSaveAgain);
        m_tensors.push_back(std::move(tensor));
    }

    std::string m_path;
};

} // namespace

std::unique_ptr<const TensorArchive> openNpz(const std::string& path) {
    return std::make_unique<const NpzArchive>(path);
}

} // namespace kvscope
