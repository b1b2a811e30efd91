#pragma once

#include "views/common/colour_scale.h"
#include "views/scene/scene_builder.h"
#include "views/walk/walk_steps.h"

namespace kvscope {

struct WalkPicture {
    const ViewInput& input;
    const WalkData& data;
    WalkNow now;
    const Viewport& viewport;
    const Theme& theme;
    Colour policy; ///< of BalanceKV
    double top;    ///< below legend and notices
};

/// Three rows over one axis of steps: y^T eta / (c R^2) between the lines at +-1, signs, and Q_j against fair coins.
/// Sets the scene's plot; the marks answer with pick Cell.
void paintWalk(SceneBuilder& builder, const WalkPicture& picture);

/// The colours of a kernel matrix: about 0, as far as its range unless another was chosen.
class KernelScale final : public ColourScale {
public:
    KernelScale(const WalkData::Walk& walk, const ParameterValues& options);
    Colour colourOf(double entry) const { return colourMap(colourMapName(), placeOfLevel(levelOfValue(entry))); }

private:
    void visitLevels(const VisitLevels& visit) const override;

    const WalkData::Walk& m_walk;
};

/// The kernel matrix as a heat map with the signs along its top.
void paintKernel(SceneBuilder& builder, const WalkPicture& picture, const KernelScale& scale);

} // namespace kvscope
