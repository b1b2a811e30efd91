#pragma once

#include "app/live/live_answers.h"
#include "core/base/host_tensor.h"
#include "core/run/run.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace kvscope {

/// Whether the answer has a token whose loss counts: a token directly after the cut does not count.
bool isAnswerExpected(const live::LiveAnswers& answers);

/// Tokens begin .. end - 1 before the cut.
using TokenRange = std::pair<TokenIndex, TokenIndex>;

/// The tokens before the cut in chunks of `size`; the last may be shorter.
std::vector<TokenRange> chunksOf(TokenIndex cut, TokenIndex size);

/// What the expected answer of a live context needs, whatever policies keep. The worker is asked for each number once;
/// the runner's cache then keeps it, beside the capture. An old worker refuses all but the full loss. A rise is the
/// answer's mean loss less that with the full cache, in nat. Other requests of the same context neither end these nor
/// are ended by them.
class AnswerNeeds {
public:
    /// Throws Error for a capture without a model behind it, and without an expected answer.
    AnswerNeeds(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture);

    const live::LiveAnswers& answers() const { return m_answers; }
    double fullLoss(const Checkpoint& checkpoint) const;
    using SomeRises = std::function<void(const std::vector<double>& rises, std::size_t answered)>;
    /// How much the loss rises when a chunk is hidden in all layers and heads; of all chunks of chunksOf. NaN
    /// where the loss is NaN or infinite. `some` is called after each request to the worker, when only the first
    /// `answered` chunks are known and the rest is still NaN. Throws Error where no loss is finite.
    std::vector<double> chunkRises(TokenIndex size, const Checkpoint& checkpoint, const SomeRises& some = {}) const;
    /// First-order rise of the answer's loss, in nat, when a KV head evicts a token; [layers, Hkv, cut]. With one step
    /// the derivative at the full cache; with more, integrated gradients from the full cache to an empty one
    /// (Sundararajan et al. 2017), whose sum is about the rise of the loss without the context.
    std::shared_ptr<const HostTensor> tokenScores(int steps, const Checkpoint& checkpoint) const;

private:
    const LayerRunner& m_runner;
    live::LiveAnswers m_answers;
    std::string m_key;
};

constexpr int kScoreSteps = 12; ///< of tokenScores, by default

/// For each token the sum of its scores over layers and KV heads.
std::vector<double> sumsOfTokens(const HostTensor& scores);

/// Share of each chunk's tokens that a query head attends to, mean over the heads of the layers.
std::vector<double> keptShares(std::span<const live::LayerSelection> layers, std::span<const TokenRange> chunks);

/// Sum of the scores of the tokens that each KV head evicts, by layer and KV head: the first-order rise of the loss.
/// NaN where kept tokens are weighted or query heads keep sets of their own, which the scores do not describe.
std::vector<std::vector<double>> predictedRises(std::span<const live::LayerSelection> layers, const HostTensor& scores);
/// The sum over all layers and KV heads; NaN without any.
double sumOfRises(const std::vector<std::vector<double>>& predicted);

} // namespace kvscope
