#pragma once

#include "core/base/error.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours; case is ignored); ties
/// go to the first one. Empty when none is near: more than a third of the longer name would have to change.
std::string nearestName(std::string_view typed, const std::vector<std::string>& candidates);

/// "Did you mean 'anchor'?" or, when nothing is near, "Known: anchor, metric." The remedy of every unknown name.
std::string suggestName(std::string_view typed, const std::vector<std::string>& candidates);

/// The first of `all` whose `nameOf` is the name. Throws Error: the sentence is `what` with the name in quotes.
template <class Range, class Name>
const auto& requireNamed(const Range& all, Name nameOf, std::string_view name, const char* what) {
    const auto at = std::ranges::find(all, name, nameOf);
    if (at != std::ranges::end(all)) return *at;
    std::vector<std::string> known;
    for (const auto& one : all) known.emplace_back(std::invoke(nameOf, one));
    throw Error({what + (" '" + std::string(name) + "'"), "", suggestName(name, known)});
}

} // namespace kvscope
