#pragma once

#include "views/variant_diff/variant_diff_data.h"
#include "views/view.h"

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

/// Room of one list in the picture; the painter leaves out what does not fit, the rail last.
struct VariantLayout {
    Box plot;            ///< all rails' horizontal extent and the full height of the lists
    double pitch = 0;    ///< height of one list
    double railHeight = 10;
    bool heading = true, causes = true, tokens = true;

    Box rail(std::size_t list) const {
        const double below = 2 + (causes ? 15 : 0) + (tokens ? 15 : 0);
        return {plot.x, plot.y + pitch * static_cast<double>(list + 1) - below - railHeight - 6, plot.width, railHeight};
    }
};

VariantLayout variantLayoutOf(const VariantDiffData& data, const Viewport& viewport);
void drawVariantLists(SceneBuilder& builder, const VariantLayout& layout, const VariantDiffData& data,
                      const ViewInput& input, const Theme& theme);

} // namespace kvscope
