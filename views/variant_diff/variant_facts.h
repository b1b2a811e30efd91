#pragma once

#include "views/scene/scene_builder.h"
#include "views/variant_diff/variant_diff_data.h"
#include "views/view.h"

#include <string>
#include <vector>

namespace kvscope {

/// How one list differs from the reference.
struct ListChange {
    std::vector<TokenIndex> gained, lost; ///< ascending: kept here only, kept by the reference only
    double jaccard = 1;

    std::int64_t count() const { return std::ssize(gained) + std::ssize(lost); }
};

ListChange changeOf(const VariantDiffData& data, std::size_t list);

/// "Anchor: mean → mean of unit keys (K1, K2); on its own it changes 31 tokens · Rounding: Up → Down (X2); on its own
/// 1", the strongest first.
std::string causesText(const VariantList& list);

/// "only here: 611 “code” · only in the reference: 40 “the”": changed tokens with their text, each side in time order.
std::string changedTokensText(const ViewInput& input, const ListChange& change);

inline constexpr double kVariantLine = 15; ///< from line to line of text
inline const TextStyle kVariantTitle{FontFace::Interface, 12, FontWeight::SemiBold},
    kVariantText{FontFace::Interface, 11};

/// Room of one list in the picture.
struct VariantRow {
    Box rail;
    std::vector<std::string> why;    ///< lines below the rail: the causes, for the reference its summary
    std::vector<std::string> tokens; ///< lines below those: the changed tokens
};

struct VariantLayout {
    Box plot;         ///< all rails' horizontal extent and the full height of the lists
    double names = 0; ///< width of the names left of the rails; 0: the names stand above, with numbers
    bool tickLabels = true, axisTitle = true;
    std::vector<VariantRow> rows;
    std::size_t notShown = 0; ///< lists without a row, counted below the others
};

/// All causes are written out where the height allows. Otherwise tokens are dropped first; then the weaker causes,
/// which are counted ("… 3 more"); then the numbers of the headings, with the names left of the rails. `top`: height of
/// the legend above.
VariantLayout variantLayoutOf(const SceneBuilder& builder, const VariantDiffData& data, const ViewInput& input,
                              double top, const Viewport& viewport);

/// Opaque, so that neighbours that share a pixel make no seam; darker grounds need more of the colour.
Colour keptByBothColour(const Theme& theme);
void drawVariantLists(SceneBuilder& builder, const VariantLayout& layout, const VariantDiffData& data,
                      const Theme& theme);

} // namespace kvscope
