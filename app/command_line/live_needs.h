#pragma once

#include "app/study/answer_needs.h"
#include "app/study/live_rows.h"
#include "views/answer_needs/answer_needs_data.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kvscope {

/// `--importance` and `--gradient` of `kvscope live`: what the expected answer needs, and what each policy leaves of
/// it.
class LiveNeeds {
public:
    void addTo(CLI::App& command);
    /// Throws Error where no answer is expected, and where `out` cannot hold the lists or show the chunks. To be called
    /// before anything is loaded.
    void check(bool hasAnswer, const std::string& out, bool isFigure) const;
    void ask(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture,
             const Checkpoint& checkpoint);
    /// The callback for sendOrRefuse of row `at` of the table; row 0 follows the full cache's.
    Chosen row(std::size_t at);

    /// Adds to the table of live.schema.json and to its rows.
    void write(nlohmann::ordered_json& table) const;
    void print(const TokenTable& tokens, const std::vector<LiveRow>& rows) const;
    bool hasChunks() const { return m_chunk > 0; }
    /// The data of the view What decides, with a pane for each row after the full cache's.
    std::shared_ptr<const AnswerNeedsData> data(std::span<const LiveRow> rows) const;

private:
    struct Row {
        std::vector<double> kept;                 ///< fraction kept of each chunk
        std::vector<std::vector<double>> perHead; ///< predicted rises by layer and KV head; empty without scores
    };
    std::int64_t m_chunk = 0; ///< 0: not asked for
    int m_steps = 0;          ///< 0: not asked for
    std::vector<TokenRange> m_chunks;
    std::vector<double> m_rises;
    std::shared_ptr<const HostTensor> m_scores;
    std::vector<Row> m_rows; ///< empty where the policy has chosen nothing
};

} // namespace kvscope
