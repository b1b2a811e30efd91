#pragma once

#include "app/live/live_capture.h"
#include "core/policies/selection.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvscope::live {

/// What the model makes of the expected answer behind a pruned context. The lists have one entry per answer token, NaN
/// for the token behind the cut, whose prediction was made before the context was pruned.
struct ExpectedAnswer {
    double nll = 0;                  ///< mean loss in nat; NaN without one
    std::vector<double> losses, kl;  ///< kl: from the full cache's distribution to the pruned one's, in nat
    double klMean = 0, flipRate = 0; ///< flips: the likeliest token is another; NaN without answer tokens
};

struct GreedyAnswer {
    std::vector<std::int32_t> ids;
    std::string text;
    std::optional<std::int64_t> firstDivergence; ///< index of the first token that differs from the full cache's
};

/// What the worker knows of a selection that was sent.
struct SentSelection {
    std::string id;
    double bytes = 0; ///< of the keys and values that it keeps in all layers
};

struct LayerSelection {
    LayerIndex layer;
    const Selection* selection = nullptr;
};

/// Asks the model behind a live capture for answers. A selection is null for the full cache.
class LiveAnswers {
public:
    explicit LiveAnswers(std::shared_ptr<const LiveCapture> capture);

    /// The tokens between cut and expected answer, and the answer's own; without one all behind the cut and none.
    const std::vector<std::int32_t>& question() const { return m_question; }
    const std::vector<std::int32_t>& answer() const { return m_answer; }

    /// From now on another round: what an earlier one still computes is outdated and ends.
    void beginRound() { ++m_generation; }
    /// Layers that are not named keep everything.
    SentSelection send(const std::string& name, std::span<const LayerSelection> layers,
                       const Checkpoint& checkpoint) const;
    /// One for each selection, batched by the worker.
    std::vector<ExpectedAnswer> score(const std::vector<std::optional<std::string>>& selections,
                                      const Checkpoint& checkpoint) const;
    std::vector<GreedyAnswer> generate(const std::vector<std::optional<std::string>>& selections, int mostTokens,
                                       const Checkpoint& checkpoint) const;

private:
    Json rowsAsked(const char* method, const std::vector<std::optional<std::string>>& selections, Json further,
                   const Checkpoint& checkpoint) const;

    std::shared_ptr<const LiveCapture> m_capture;
    std::vector<std::int32_t> m_question, m_answer;
    std::int64_t m_generation = 1;
};

} // namespace kvscope::live
