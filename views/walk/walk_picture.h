#pragma once

#include "views/common/colour_scale.h"
#include "views/scene/scene_builder.h"
#include "views/view.h"
#include "views/walk/walk_data.h"

#include <cstdint>
#include <string>

namespace kvscope {

/// The walk that is shown, and how far it has come.
struct WalkNow {
    const WalkData::Walk* walk = nullptr; ///< null: none has begun
    std::int64_t steps = 0;               ///< signs given so far

    std::int64_t size() const { return std::ssize(walk->log->tokens); }
};

/// True when the walk's tokens arrive one by one in the order in which they are signed: round 1, level 1. Later rounds
/// and levels run when everything that they need has been read.
bool arrivesToken(const WalkData& data);

/// The walk at the cursor: the chosen one, or the last one that has begun.
WalkNow walkNow(const WalkData& data, std::optional<TokenIndex> cursor);

/// y^T eta / (c R^2) before a step, which is 1 - 2p.
double leanOf(const BalanceWalkLog& walk, std::int64_t step);
/// Steps among the first `steps` at which p leaves [0, 1].
std::int64_t stepsOutside(const BalanceWalkLog& walk, std::int64_t steps);
/// True when such a step ends the walk (FAIL) instead of being clipped.
bool fails(const BalanceWalkLog& walk);

/// "block 3 of round 1" or "node 3 of C⁰ → C¹, the keys of the denominator".
std::string walkName(const WalkData& data, const BalanceWalkLog& walk);

std::string walkCaption(const WalkData& data, const WalkNow& now);
std::string walkFinding(const WalkData& data, const WalkNow& now);
PointFacts stepFacts(const ViewInput& input, const WalkNow& now, std::int64_t step);
/// A row of the table: step, token, text, u, y, 1 - 2p, p, sign, imbalance, Q, sum of M_jj, coins 10 %, coins 90 %.
std::vector<std::string> stepCells(const ViewInput& input, const WalkData::Walk& walk, std::int64_t step);

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
/// Sets the scene's plot, over all of which the pick is Cell 0.
void paintWalk(SceneBuilder& builder, const WalkPicture& picture);

/// The colours of a kernel matrix: centred at 0, up to the walk's `range` unless another range was chosen.
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
