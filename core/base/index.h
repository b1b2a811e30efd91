#pragma once

#include <compare>
#include <cstdint>

namespace kvscope {

/// An integer that cannot be mixed up with another kind of index. All indices are 0-based.
template <class Tag> struct Index {
    std::int32_t value = 0;

    constexpr Index() = default;
    constexpr explicit Index(std::int64_t v) : value(static_cast<std::int32_t>(v)) {}
    friend constexpr auto operator<=>(Index, Index) = default;
};

using LayerIndex = Index<struct LayerTag>;
using KvHeadIndex = Index<struct KvHeadTag>;
using QueryHeadIndex = Index<struct QueryHeadTag>;

/// Tokens come in long lists that are handed to kernels, so a token index is a plain 32-bit integer.
using TokenIndex = std::int32_t;

} // namespace kvscope
