#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// A numbered part of a paper.
struct CitedItem {
    std::string_view kind;   ///< "Theorem"; sections and appendices are both "Section"
    std::string_view number; ///< "3.2", "C.1"
    std::string_view words;  ///< comma-separated: what a sentence about no other part of this kind says
};

/// A paper in the one version that all texts of the product cite.
struct CitedPaper {
    std::string_view name;      ///< as texts write it: "BalanceKV"
    std::string_view reference; ///< authors, title and version
    std::vector<CitedItem> items;
};

/// Every numbered part that a text of the product may cite; a test looks up all citations here.
const std::vector<CitedPaper>& citedPapers();
const CitedPaper& citedPaper(std::string_view name); ///< one of citedPapers()
/// The reference, and where in the paper: citation("BalanceKV", "Algorithms 1, 2 and 4").
std::string citation(std::string_view name, std::string_view places);

} // namespace kvscope
