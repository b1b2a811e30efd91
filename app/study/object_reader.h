#pragma once

#include "core/base/error.h"
#include "core/base/json/json_text.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace kvscope {

/// A whole number that the type holds. JSON may write it as 7 or as 7.0. Throws Error, without a place, for anything
/// else: nlohmann's own conversion cuts fractions off and wraps around what is too large.
template <std::integral T> T wholeNumber(const nlohmann::ordered_json& value) {
    constexpr double kExact = 9007199254740992; // 2^53: beyond it a double skips whole numbers
    if (value.is_number_unsigned()) {
        if (std::in_range<T>(value.get<std::uint64_t>())) return value.get<T>();
    } else if (value.is_number_integer()) {
        if (std::in_range<T>(value.get<std::int64_t>())) return value.get<T>();
    } else if (const double real = value.is_number() ? value.get<double>() : NAN;
               std::abs(real) < kExact && real == std::trunc(real)) {
        if (const auto whole = static_cast<std::int64_t>(real); std::in_range<T>(whole)) return static_cast<T>(whole);
    }
    throw Error({jsonLine(value) + " is no whole number that fits here", "",
                 std::unsigned_integral<T> ? "write a whole number, at least 0" : "write a whole number"});
}

/// Removes known keys from an object of a session file; the remaining keys are unknown and kept.
class ObjectReader {
public:
    using Json = nlohmann::ordered_json;

    /// `prefix` stands before the keys in the places of errors, like "look/". Throws Error unless `object` is one.
    ObjectReader(Json object, std::string path, std::string prefix)
        : m_object(std::move(object)), m_path(std::move(path)), m_prefix(std::move(prefix)) {
        if (!m_object.is_object())
            throw Error({"The session holds a value of the wrong kind", m_prefix.substr(0, m_prefix.rfind('/')),
                         "write a JSON object here, or delete this key", m_path});
    }

    template <class T> void take(const char* key, T& target) {
        with(key, [&](const Json& value) {
            if constexpr (std::integral<T> && !std::same_as<T, bool>)
                target = wholeNumber<T>(value);
            else
                target = value.get<T>();
        });
    }
    /// Calls `use` with the value if the key exists; an exception becomes an Error that names the key.
    void with(const char* key, const std::function<void(const Json&)>& use) {
        const auto found = m_object.find(key);
        if (found == m_object.end()) return;
        const std::string place = m_prefix + key;
        try {
            use(*found);
        } catch (const Error& error) {
            if (!error.parts().path.empty()) throw;
            throw Error({error.parts().sentence, place, error.parts().remedy, m_path});
        } catch (const Json::exception&) {
            throw Error({"The session holds a value of the wrong kind", place, "repair or delete this key", m_path});
        }
        m_object.erase(key);
    }
    /// The keys that were not taken, as a JSON object; empty: none.
    std::string rest() const { return m_object.empty() ? std::string{} : jsonLine(m_object); }

private:
    Json m_object;
    std::string m_path, m_prefix;
};

} // namespace kvscope
