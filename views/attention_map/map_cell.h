#pragma once

#include "core/base/index.h"
#include "core/parameters/parameters.h"

#include <optional>
#include <string>
#include <string_view>

namespace kvscope {

/// The locked cell of an attention map: one cell, or the largest cell of a rectangle (the cells of a clicked pixel).
/// Both ends are inclusive.
struct MapCell {
    TokenIndex firstQuery = 0, lastQuery = 0, firstKey = 0, lastKey = 0;

    /// "none", "QUERY,KEY" or "FIRST-LAST,FIRST-LAST". Throws Error for anything else.
    static std::optional<MapCell> parse(std::string_view text);
    std::string text() const; ///< reads back identically
};

/// The view options that hold the cell and how many cells around it are shown.
ParameterSpec mapCellOption();
inline constexpr const char* kMapCellOption = "cell";
ParameterSpec mapAroundOption();

} // namespace kvscope
