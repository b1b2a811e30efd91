#pragma once

#define H5_USE_110_API // its types and functions, also in 1.12 and later
#include <hdf5.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace kvscope::h5 {

/// Holds a mutex, so that it does not matter whether the library was built for threads, and keeps HDF5 from printing
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

/// The text of an attribute that is one; nothing otherwise.
std::optional<std::string> textOf(hid_t attribute);

} // namespace kvscope::h5
