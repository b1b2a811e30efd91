#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvscope::h5 {

/// What a data set holds, without its numbers.
struct DatasetInfo {
    std::vector<std::int64_t> shape;
    enum class Kind { Int, Uint, Float, Other } kind = Kind::Other;
    int bytes = 0;              ///< per element
    int exponentBits = 0;       ///< of a float: 5 is half, 8 is single or bfloat16
    std::string dtypeAttribute; ///< attribute "dtype" ("bfloat16"), or empty
    std::int64_t count() const;
};

/// A block of a data set: its beginning and size on each axis.
struct Block {
    std::vector<std::int64_t> begin, size;
};

/// An HDF5 file. All calls are serialised by one mutex, because Debian's library is not thread-safe.
/// Every member throws Error with the file, the data set and what to do.
class File {
public:
    static File openForReading(const std::string& path);
    File(File&&) noexcept;
    File& operator=(File&&) noexcept;
    ~File();

    const std::string& path() const;
    bool exists(const std::string& name) const; ///< a data set or group
    bool isGroup(const std::string& name) const;
    std::vector<std::string> children(const std::string& group) const; ///< ascending names
    DatasetInfo info(const std::string& dataset) const;

    /// The numbers of a block (null: all) of a data set, converted by the library. The size of the data set is checked
    /// before anything is allocated. T: std::int32_t, std::int64_t, float, double or unsigned char.
    template <class T> std::vector<T> read(const std::string& dataset, const Block* block = nullptr) const;
    /// The numbers of a block (null: of all) in the file's own type, bit for bit, little-endian.
    void readRaw(const std::string& dataset, const Block* block, void* out, std::size_t bytes) const;

    /// An attribute of a group or data set; "/" is the root. Empty where it is absent.
    std::optional<std::string> stringAttribute(const std::string& object, const std::string& name) const;
    std::optional<std::int64_t> integerAttribute(const std::string& object, const std::string& name) const;
    std::optional<double> realAttribute(const std::string& object, const std::string& name) const;
    std::vector<std::int32_t> integerListAttribute(const std::string& object, const std::string& name) const;

private:
    struct State;
    explicit File(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace kvscope::h5
