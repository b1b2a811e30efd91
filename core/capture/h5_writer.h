#pragma once

#include "core/base/atomic_file.h"
#include "core/capture/h5.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kvscope::h5 {

enum class ElementType { Uint8, Uint16, Int32, Int64, Float16, Float32, Float64 };

/// How a data set is stored. Chunks are needed for deflate; without them the data lie contiguously and a data set that
/// is never written takes no room in the file.
struct Storage {
    std::vector<std::int64_t> chunk; ///< empty: contiguous
    int deflateLevel = 0;            ///< with shuffle; 0: none
    bool reserveSpace = false;       ///< contiguous only: the file gets its full length at once, sparse on disk
};

/// A new HDF5 file. Groups are made as paths need them. Every member throws Error with the file and the data set: a
/// full disk above all, which leaves the library as sound as before. Close it, then commit the AtomicFile.
class Writer {
public:
    enum class Mode { Create, Append };
    /// Into the temporary file of `target`; messages name the file that it becomes.
    explicit Writer(const AtomicFile& target, Mode mode = Mode::Create);
    explicit Writer(const std::string& path, Mode mode = Mode::Create);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    void createDataset(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
                       const Storage& storage = {});
    /// `bytes` must be what the block holds; without a block the whole data set.
    void write(const std::string& name, const void* data, std::size_t bytes, const Block* block = nullptr);

    void put(const std::string& name, std::span<const std::uint8_t> data);
    void put(const std::string& name, std::span<const std::int32_t> data, std::vector<std::int64_t> shape = {});
    void put(const std::string& name, std::span<const std::int64_t> data, std::vector<std::int64_t> shape = {});
    void put(const std::string& name, std::span<const float> data, std::vector<std::int64_t> shape = {});
    void put(const std::string& name, std::span<const double> data, std::vector<std::int64_t> shape = {});

    /// Of a group (made if missing) or data set; "/" is the root.
    void attribute(const std::string& object, const std::string& name, const std::string& value);
    void attribute(const std::string& object, const std::string& name, std::int64_t value);
    void attribute(const std::string& object, const std::string& name, double value);
    void attribute(const std::string& object, const std::string& name, std::span<const std::int32_t> values);

    void close(); ///< flushes; throws where the destructor could only be silent

private:
    struct State;
    Writer(const std::string& path, const std::string& shownPath, Mode mode);
    std::unique_ptr<State> m_state;
};

} // namespace kvscope::h5
