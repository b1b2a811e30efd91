#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// Types of numbers that importers understand; any other type is refused by its name.
enum class NumberType { Float16, Bfloat16, Float32, Float64, Int32, Int64, Unknown };

std::int64_t numberBytes(NumberType type); ///< 0 for Unknown

/// A named tensor of a file: row-major, little-endian. Its size has been checked against the file.
struct ArchiveTensor {
    std::string name;     ///< as the file has it
    std::string matched;  ///< name that patterns match: in a folder, preceded by the file's name
    std::string path;     ///< of the file
    std::string typeName; ///< as the file spells it
    NumberType type = NumberType::Unknown;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;  ///< where its numbers start: byte of the file, or of the unpacked member
    std::uint64_t bytes = 0;  ///< of its numbers; 0 with type Unknown
    std::uint64_t member = 0; ///< index in the zip

    std::int64_t count() const;
    std::string shapeText() const; ///< "(8, 1024, 64)"
};

/// Tensors of a file or folder. Opening reads names and shapes only. `read` may be called from several threads.
class TensorArchive {
public:
    virtual ~TensorArchive() = default;
    const std::vector<ArchiveTensor>& tensors() const { return m_tensors; }
    /// All bytes of a tensor. Throws Error when the file has become shorter or does not unpack to its size.
    virtual std::vector<std::byte> read(const ArchiveTensor& tensor) const = 0;

protected:
    std::vector<ArchiveTensor> m_tensors;
};

/// ".safetensors" of "A.SAFETENSORS".
std::string lowerExtension(const std::string& path);

/// A file, or a folder whose files' tensors are taken together. Throws Error.
std::unique_ptr<const TensorArchive> openSafetensors(const std::string& path);
/// Throws Error.
std::unique_ptr<const TensorArchive> openNpz(const std::string& path);

/// Bytes that a tensor of this type and shape has. Throws Error where no file can hold as much or a size is negative.
std::uint64_t tensorBytes(const ArchiveTensor& tensor);
/// Throws Error naming file and tensor.
[[noreturn]] void refuseTensor(const ArchiveTensor& tensor, std::string sentence, std::string remedy);

} // namespace kvscope
