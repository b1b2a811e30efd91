#pragma once

#include "core/base/atomic_file.h"
#include "core/capture/h5.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace kvscope::h5 {

enum class ElementType { Uint8, Uint16, Int32, Int64, Float16, Float32, Float64 };

template <class T> constexpr ElementType elementTypeOf() {
    if constexpr (std::is_integral_v<T>)
        return sizeof(T) == 1 ? ElementType::Uint8 : sizeof(T) == 4 ? ElementType::Int32 : ElementType::Int64;
    else
        return sizeof(T) == 4 ? ElementType::Float32 : ElementType::Float64;
}

/// How a data set is stored. Chunks are needed for deflate; without them the data lie contiguously and a data set that
/// is never written takes no room in the file.
struct Storage {
    std::vector<std::int64_t> chunk; ///< empty: contiguous
    int deflateLevel = 0;            ///< with shuffle; 0: none
    bool reserveSpace = false;       ///< contiguous only: the file gets its full length at once, sparse on disk
};

/// A new HDF5 file. Groups are made as paths need them. Every member throws Error with the file and the data set,
/// mostly on a full disk; the library stays usable after that. Close the Writer, then commit the AtomicFile.
class Writer {
public:
    enum class Mode { Create, Append };
    /// Writes the temporary file of `target`; messages name the path of `target`.
    explicit Writer(const AtomicFile& target, Mode mode = Mode::Create);
    explicit Writer(const std::string& path, Mode mode = Mode::Create);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    void createDataset(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
                       const Storage& storage = {});
    /// `bytes` must be the size of the block; without a block, of the whole data set.
    void write(const std::string& name, const void* data, std::size_t bytes, const Block* block = nullptr);

    /// A whole data set, by default with one axis. `data`: a vector or a span.
    template <class Numbers>
    void put(const std::string& name, const Numbers& data, const std::vector<std::int64_t>& shape = {}) {
        createDataset(name, elementTypeOf<std::remove_cv_t<typename Numbers::value_type>>(),
                      shape.empty() ? std::vector{std::ssize(data)} : shape);
        write(name, data.data(), data.size() * sizeof(data[0]));
    }

    /// Sets an attribute of a group (made if missing) or data set; "/" is the root.
    void attribute(const std::string& object, const std::string& name, const std::string& value);
    void attribute(const std::string& object, const std::string& name, std::int64_t value);
    void attribute(const std::string& object, const std::string& name, double value);
    void attribute(const std::string& object, const std::string& name, std::span<const std::int32_t> values);

    void close(); ///< flushes; throws Error where the destructor would have to ignore it

private:
    struct State;
    Writer(const std::string& path, const std::string& shownPath, Mode mode);
    std::unique_ptr<State> m_state;
};

} // namespace kvscope::h5
