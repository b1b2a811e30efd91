#pragma once

#define H5_USE_110_API // types and functions of 1.10, also with 1.12 and later
#include <hdf5.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::h5 {

/// Holds a mutex, so that it does not matter whether the library was built thread-safe, and keeps HDF5 from printing
/// its own error stack.
class Guard {
public:
    Guard();

private:
    std::lock_guard<std::mutex> m_lock;
};

/// An HDF5 identifier that closes itself.
class Handle {
public:
    using Close = herr_t (*)(hid_t);
    Handle(hid_t id, Close close) : m_id(id), m_close(close) {}
    Handle(Handle&& other) noexcept : m_id(std::exchange(other.m_id, -1)), m_close(other.m_close) {}
    Handle& operator=(Handle&&) = delete;
    ~Handle() {
        if (m_id >= 0) m_close(m_id);
    }
    explicit operator bool() const { return m_id >= 0; }
    /// False where the library could not flush the object, for example on a full disk.
    bool close() { return m_close(std::exchange(m_id, -1)) >= 0; }
    operator hid_t() const { return m_id; }

private:
    hid_t m_id;
    Close m_close;
};

// Shared by the reader of a file and by the child process that tries the file first: see `Probe`.

/// Kind and address of the object at `name`. No other field of its header is read, since unused times may be damaged.
std::optional<H5O_info_t> objectAt(hid_t place, const std::string& name);
/// Ascending names; nothing where the library cannot list them.
std::optional<std::vector<std::string>> linksOf(hid_t group);
/// The text of a text attribute; nothing for other attributes.
std::optional<std::string> textOf(hid_t attribute);
/// The numbers of an attribute; none where it cannot be read as numbers. T: std::int32_t, std::int64_t or double.
template <class T> std::vector<T> numbersOf(hid_t attribute);

} // namespace kvscope::h5
