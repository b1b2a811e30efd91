#pragma once

#include "views/variant_diff/variant_diff_data.h"
#include "views/scene/scene_builder.h"
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

/// "Anchor mean → normalised_mean (K1, K2), 31 alone · Rounding ceil → floor (X2), 1 alone", the strongest first.
std::string causesText(const VariantList& list);

/// "+611 “code”  −40 “the”": changed tokens with their text, in time order.
std::string changedTokensText(const ViewInput& input, const ListChange& change);

/// Room of one list in the picture.
struct VariantRow {
    double top = 0;  ///< of the heading
    Box rail;
    std::vector<std::string> why;    ///< lines below the rail: the causes, of the reference its summary
    std::vector<std::string> tokens; ///< lines below those: the changed tokens
};

struct VariantLayout {
    Box plot; ///< all rails' horizontal extent and the full height of the lists
    bool heading = true;
    std::vector<VariantRow> rows; ///< one per list that there will be
};

/// Every cause is written out where the height allows it. Tokens give way first; then causes, the strongest staying and the
/// others counted ("… 3 more"); then headings. The rails stay.
/// `top` is the height of the legend above them.
VariantLayout variantLayoutOf(const SceneBuilder& builder, const VariantDiffData& data, const ViewInput& input, double top, const Viewport& viewport);
void drawVariantLists(SceneBuilder& builder, const VariantLayout& layout, const VariantDiffData& data, const Theme& theme);

} // namespace kvscope
