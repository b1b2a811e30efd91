#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kvscope {

/// What was made of frozen data last, kept beside them because the same is wanted again and again: of each thing the
/// last one, under a key that says all that it depends on beside the data. Safe for several threads. A copy begins
/// empty, since its data may be changed.
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

    /// `make` returns a shared pointer, and is called where the last one had another key; where it throws, the last one
    /// stays. It must not ask the same memo: other threads wait until it is done. The same `thing` is always of one
    /// type.
    template <class Make> auto get(const std::string& thing, const std::string& key, const Make& make) const {
        using Value = const typename decltype(make())::element_type;
        const std::lock_guard lock(m_mutex);
        Kept& kept = m_kept[thing];
        if (!kept.value || kept.key != key)
            kept = {key, make()};
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
