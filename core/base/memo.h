#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kvscope {

/// The last value derived from immutable data, kept beside the data: one value per `thing`, under a key that names all
/// its other inputs. Thread-safe. A copy starts empty, because its data may be changed.
class Memo {
public:
    Memo() = default;
    Memo(const Memo&) {}
    Memo& operator=(const Memo&) {
        const std::lock_guard lock(m_mutex);
        m_kept.clear();
        return *this;
    }
    ~Memo() = default;

    /// Calls `make`, which returns a shared pointer, when the key differs from the last one; if it throws, the last
    /// value stays. `make` runs under the memo's mutex and must not use the memo. A `thing` always has one type.
    template <class Make> auto get(const std::string& thing, const std::string& key, const Make& make) const {
        using Value = const typename decltype(make())::element_type;
        const std::lock_guard lock(m_mutex);
        Kept& kept = m_kept[thing];
        if (!kept.value || kept.key != key) kept = {key, make()};
        return std::static_pointer_cast<Value>(kept.value);
    }

private:
    struct Kept {
        std::string key;
        std::shared_ptr<const void> value;
    };
    mutable std::mutex m_mutex;
    mutable std::map<std::string, Kept> m_kept;
};

} // namespace kvscope
