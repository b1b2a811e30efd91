#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvscope {

/// A paper in the one version that all texts of the product cite.
struct CitedPaper {
    std::string_view name;      ///< as texts write it: "BalanceKV"
    std::string_view reference; ///< authors, title and version
};

/// Every paper that a text of the product may cite. Their numbered parts are in tests/architecture/cited_parts.txt.
std::span<const CitedPaper> citedPapers();
const CitedPaper& citedPaper(std::string_view name); ///< one of citedPapers()
/// The reference, and where in the paper: citation("BalanceKV", "Algorithms 1, 2 and 4").
std::string citation(std::string_view name, std::string_view places);

} // namespace kvscope
