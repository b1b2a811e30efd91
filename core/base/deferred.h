#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace kvscope {

/// A shared value that is made when it is first read, by whichever thread. Dereference it once before a loop, and keep
/// the reference.
template <class Value> class Deferred {
public:
    using Pointer = std::shared_ptr<const Value>;

    Deferred() = default; ///< holds nothing and converts to false
    explicit Deferred(std::function<Pointer()> make) : m_state(std::make_shared<State>()) {
        m_state->make = std::move(make);
    }
    /// A value that exists already.
    template <class Own> Deferred(std::shared_ptr<Own> value) {
        if (!value) return;
        m_state = std::make_shared<State>();
        std::call_once(m_state->once, [&] { m_state->value = std::move(value); });
    }

    explicit operator bool() const { return m_state != nullptr; }
    const Value& operator*() const {
        std::call_once(m_state->once, [state = m_state.get()] {
            state->value = state->make();
            state->make = nullptr; // frees what it captured
        });
        return *m_state->value;
    }
    const Value* operator->() const { return &**this; }

private:
    struct State {
        std::once_flag once;
        std::function<Pointer()> make;
        Pointer value;
    };
    std::shared_ptr<State> m_state;
};

} // namespace kvscope
