#pragma once

#include "core/base/checkpoint.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace kvscope {

/// An LRU cache with a limit in bytes. The first thread that asks for a value computes it while others wait; when that
/// thread fails or is cancelled, the next one computes. Thread-safe.
class StageCache {
public:
    explicit StageCache(std::size_t maxBytes);
    ~StageCache();

    /// A computed value and its size in bytes.
    template <class T> struct Made {
        T value;
        std::size_t bytes = 0;
    };

    enum class Cost { Quick, Long };
    struct Missing {};
    /// While one exists, `get` on its thread throws Missing instead of waiting or making a value of Cost::Long.
    class AtOnce {
    public:
        AtOnce();
        ~AtOnce();
        static bool isAsked(); ///< one exists on this thread
        AtOnce(const AtOnce&) = delete;
        AtOnce& operator=(const AtOnce&) = delete;
    };

    /// `make` returns Made<T>. A key must always be used with the same T. `wasThere`: whether the value was cached.
    /// Throws what `make` throws, and Cancelled while waiting.
    template <class T, class Make>
    std::shared_ptr<const T> get(const std::string& key, const Checkpoint& checkpoint, Make make,
                                 bool* wasThere = nullptr, Cost cost = Cost::Long) {
        const Erased value = find(key, checkpoint, wasThere, cost, [&]() -> std::pair<Erased, std::size_t> {
            Made<T> made = make();
            return {std::make_shared<const T>(std::move(made.value)), made.bytes};
        });
        return std::static_pointer_cast<const T>(value);
    }

    bool has(const std::string& key) const; ///< a finished value
    /// Drops every finished value whose key starts with `prefix`.
    void drop(const std::string& prefix);
    std::size_t bytes() const;
    std::size_t maxBytes() const;

private:
    using Erased = std::shared_ptr<const void>;
    Erased find(const std::string& key, const Checkpoint& checkpoint, bool* wasThere, Cost cost,
                const std::function<std::pair<Erased, std::size_t>()>& make);

    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace kvscope
