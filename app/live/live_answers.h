#pragma once

#include "app/live/live_capture.h"
#include "core/policies/selection.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvscope::live {

/// How the model predicts the expected answer after a pruned context. The lists have one entry per answer token, NaN
/// for a token directly after the cut, whose prediction was made before the context was pruned.
struct ExpectedAnswer {
    double nll = 0;                  ///< mean loss in nat; NaN without one
    std::vector<double> losses, kl;  ///< kl: from the full cache's distribution to the pruned one's, in nat
    std::vector<bool> flips;         ///< another token is the likeliest; false directly after the cut
    double klMean = 0, flipRate = 0; ///< NaN without answer tokens
    double bytes = 0;       ///< of the keys and values that are left of the context; NaN: the worker does not say
    std::string error = {}; ///< why these numbers are missing; empty: they are not
};

struct GreedyAnswer {
    std::vector<std::int32_t> ids;
    std::string text;
    std::vector<std::string> pieces;             ///< what each token adds to the text; as many as ids, or none
    std::optional<std::int64_t> firstDivergence; ///< index of the first token that differs from the full cache's
    std::string error = {};                      ///< why there is no text; empty: there is one
};

/// How a text is written.
struct Writing {
    int mostTokens = 16;
    double temperature = 0; ///< 0: the likeliest token
    std::uint64_t seed = 0; ///< of the random numbers, the same for all rows
    friend bool operator==(const Writing&, const Writing&) = default;
};

/// A token that was written: the selection's place among those asked for, the token's index and text.
using TokenWritten = std::function<void(std::size_t row, std::size_t index, const std::string& text)>;

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
    /// Whether a newer round of answers, begun by any object, ends the computations of an older one.
    enum class Rounds { NewestWins, None };
    explicit LiveAnswers(std::shared_ptr<const LiveCapture> capture, Rounds rounds = Rounds::NewestWins);

    const std::shared_ptr<const LiveCapture>& capture() const { return m_capture; }
    /// The tokens between cut and expected answer, and the answer's tokens; without one, all after the cut, and none.
    const std::vector<std::int32_t>& question() const { return m_question; }
    const std::vector<std::int32_t>& answer() const { return m_answer; }

    /// Begins a new round: the worker ends what it still computes for an earlier one.
    void beginRound() { ++m_generation; }
    /// Layers that are not named keep everything.
    SentSelection send(const std::string& name, std::span<const LayerSelection> layers,
                       const Checkpoint& checkpoint) const;
    /// One answer per selection, batched by the worker. A selection without an answer does not fail the others.
    std::vector<ExpectedAnswer> score(const std::vector<std::optional<std::string>>& selections,
                                      const Checkpoint& checkpoint) const;
    /// Calls `written` for each token as it arrives, on the calling thread.
    std::vector<GreedyAnswer> generate(const std::vector<std::optional<std::string>>& selections,
                                       const Writing& writing, const Checkpoint& checkpoint,
                                       const TokenWritten& written = {}) const;

private:
    Json generation() const; ///< null without rounds
    Json rowsAsked(const char* method, const std::vector<std::optional<std::string>>& selections, Json further,
                   const Checkpoint& checkpoint, const Notified& notified = {}) const;

    std::shared_ptr<const LiveCapture> m_capture;
    std::vector<std::int32_t> m_question, m_answer;
    std::int64_t m_generation; ///< 0: without rounds
};

} // namespace kvscope::live
