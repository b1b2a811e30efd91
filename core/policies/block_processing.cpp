// Block prompt processing (KeyDiff 2.4): after each block of the prompt the cache is cut back to the budget. The policy
// is called at most once per block, with cache plus block as its rows, and knows nothing else of blocks.
#include "core/policies/block_processing.h"

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/policies/common_parameters.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace kvscope {

namespace {

// The cache of all KV heads during block processing.
class BlockRun {
public:
    BlockRun(const Policy& policy, const ParameterValues& values, const PolicyInput& whole, PolicyOutcome& outcome)
        : m_policy(policy), m_values(values), m_whole(whole), m_outcome(outcome),
          m_cache(static_cast<std::size_t>(whole.keys.size(0))),
          m_margins(m_cache.size(), std::numeric_limits<float>::infinity()) {}

    // Appends the tokens [begin, end) and evicts. The last block is scored even when it fits, so that the result has
    // scores.
    void step(TokenIndex begin, TokenIndex end, bool last, const Checkpoint& checkpoint) {
        for (auto& rows : m_cache) {
            rows.resize(rows.size() + static_cast<std::size_t>(end - begin));
            std::iota(rows.end() - (end - begin), rows.end(), begin);
        }
        const auto cached = static_cast<std::int64_t>(m_cache.front().size());
        const bool evicts = cached > m_outcome.requested;
        if (!evicts && !last && !m_policy.card().carriesState) return;
        const PolicyInput input = stepInput(end, checkpoint);
        const Features features = m_policy.features(input, m_values);
        Features carried = m_policy.carry(input, features, m_values);
        Scores scores = m_policy.combine(input, features, m_values);
        if (m_outcome.notes.empty()) // the first block has the fewest queries, so its note is the strictest
            m_outcome.notes = m_policy.notes(input, m_values);
        choose(input, scores, std::min(cached, m_outcome.requested), evicts);
        keepCarried(std::move(carried), input);
        if (last) {
            m_outcome.scores = std::move(scores);
            if (!m_chosenBy.empty()) m_outcome.scores.total = m_chosenBy;
            m_outcome.positions = input.positions;
        }
    }

    // A head's margin is the smallest over all blocks.
    void takeMargins() {
        for (std::size_t h = 0; h < m_margins.size(); ++h) m_outcome.selection.heads[h].margin = m_margins[h];
    }

private:
    Tensor cachedKeys() const {
        const Tensor& all = m_whole.keys;
        return all.empty() ? Tensor({all.size(0), std::ssize(m_cache.front()), all.size(2)}, {})
                           : m_whole.engine.gatherRows(all, m_cache);
    }

    PolicyInput stepInput(TokenIndex end, const Checkpoint& checkpoint) const {
        const Engine& engine = m_whole.engine;
        const std::int64_t seen =
            m_whole.queries.empty() ? 0 : std::min<std::int64_t>(end - m_whole.firstQuery, m_whole.queries.size(1));
        return PolicyInput{.engine = engine,
                           .keys = cachedKeys(),
                           .values = m_whole.values.empty() ? Tensor() : engine.gatherRows(m_whole.values, m_cache),
                           .queries = seen > 0 ? engine.rows(m_whole.queries, 0, seen) : Tensor(),
                           .firstQuery = m_whole.firstQuery,
                           .end = end,
                           .positions = m_cache,
                           .carried = paddedCarried(),
                           .attention = m_whole.attention,
                           .layer = m_whole.layer,
                           .numLayers = m_whole.numLayers,
                           .seed = m_whole.seed,
                           .checkpoint = checkpoint,
                           .preRopeKeys =
                               m_whole.preRopeKeys.empty() ? Tensor() : engine.gatherRows(m_whole.preRopeKeys, m_cache),
                           .random = m_whole.random,
                           .retention = m_whole.retention,
                           .recordSteps = m_whole.recordSteps,
                           .imported = m_whole.imported};
    }

    void choose(const PolicyInput& input, const Scores& scores, std::int64_t count, bool evicts) {
        const RowSelection rows = m_policy.select(input, scores, m_values, count);
        m_outcome.selection = tokensOfRows(rows, input);
        m_outcome.log = rows.steps;
        m_chosenBy = rows.total;
        BlockStep step{input.end, input.rowCount(), {}, std::numeric_limits<float>::infinity()};
        m_keptRows.clear();
        for (std::size_t h = 0; h < m_cache.size(); ++h) {
            const std::vector<TokenIndex>& kept = m_outcome.selection.heads[h].kept;
            std::vector<TokenIndex> evicted;
            std::ranges::set_difference(m_cache[h], kept, std::back_inserter(evicted));
            step.evicted.push_back(std::move(evicted));
            step.margin = std::min(step.margin, rows.heads[h].margin);
            m_margins[h] = std::min(m_margins[h], rows.heads[h].margin);
            m_keptRows.push_back(rows.heads[h].kept);
            m_cache[h] = kept;
        }
        if (evicts) m_outcome.steps.push_back(std::move(step));
    }

    // Moves carried state with its rows: [Hkv, m] directly, [Hq, m] by the KV head that each query head reads.
    void keepCarried(Features carried, const PolicyInput& input) {
        const std::vector<std::int32_t>& groups = input.attention.gqaGroupOf;
        for (auto& [name, tensor] : carried) {
            const bool perQueryHead = tensor.shape[0] != input.keys.size(0);
            if (tensor.shape[0] == std::ssize(groups) && !perQueryHead && !std::ranges::is_sorted(groups))
                throw Error({"the policy carries sums from block to block, and it is not known of which heads they are "
                             "where query heads read as many KV heads in another order",
                             "kv_of_q", "Leave prompt_block and decode_tokens at 0"});
            RowPositions rows = m_keptRows;
            if (perQueryHead) {
                rows.clear();
                for (const std::int32_t kvHead : groups) rows.push_back(m_keptRows[kvHead]);
            }
            tensor = gatherColumns(tensor, rows);
        }
        m_carried = std::move(carried);
    }

    Features paddedCarried() const {
        Features padded;
        const auto rows = static_cast<std::int64_t>(m_cache.front().size());
        for (const auto& [name, tensor] : m_carried) padded[name] = padColumns(tensor, 0, rows, 0);
        return padded;
    }

    const Policy& m_policy;
    const ParameterValues& m_values;
    const PolicyInput& m_whole;
    PolicyOutcome& m_outcome;
    RowPositions m_cache;    // tokens in the cache, per KV head
    RowPositions m_keptRows; // rows of the last choice
    std::vector<float> m_margins;
    Features m_carried;
    HostTensor m_chosenBy; // scores of the last choice, where the policy rescored for the budget
};

void appendEnds(std::vector<TokenIndex>& ends, std::int64_t begin, std::int64_t end, std::int64_t block) {
    for (std::int64_t at = begin; at < end; at += block)
        ends.push_back(static_cast<TokenIndex>(std::min(at + block, end)));
}

} // namespace

std::vector<TokenIndex> blockEnds(const ParameterValues& values, std::int64_t tokens, std::int64_t budget) {
    const std::int64_t decoded = values.integer("decode_tokens");
    if (decoded >= tokens)
        throw Error({std::to_string(decoded) + " decoded tokens leave no prompt: " + std::to_string(tokens) +
                         " tokens lie before the cut",
                     "parameter decode_tokens", "Give at most " + std::to_string(tokens - 1)});
    const std::int64_t prompt = tokens - decoded;
    const std::int64_t block = values.integer("prompt_block") > 0 ? values.integer("prompt_block") : prompt;
    std::vector<TokenIndex> ends;
    std::int64_t begin = 0;
    if (values.choice("prompt_alignment") == "kvpress") {
        begin = std::min(budget, prompt);
        ends.push_back(static_cast<TokenIndex>(begin));
    }
    appendEnds(ends, begin, prompt, block);
    appendEnds(ends, prompt, tokens, values.integer("decode_block"));
    return ends;
}

PolicyOutcome runInBlocks(const Policy& policy, const ParameterValues& values, const Budget& budget,
                          const PolicyInput& input) {
    const std::int64_t tokens = input.rowCount();
    PolicyOutcome outcome;
    outcome.simulated = true;
    outcome.requested = policy.card().usesBudget ? resolveBudget(budget, tokens, roundingOf(values)) : tokens;
    const std::vector<TokenIndex> ends = blockEnds(values, tokens, outcome.requested);
    PolicyInput asked = input;
    asked.retention = retentionOf(budget, tokens);
    BlockRun run(policy, values, asked, outcome);
    TokenIndex begin = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const Checkpoint part = input.checkpoint.part(begin / double(tokens), ends[i] / double(tokens));
        part.at(0, 1);
        run.step(begin, ends[i], i + 1 == ends.size(), part);
        begin = ends[i];
    }
    run.takeMargins();
    return outcome;
}

} // namespace kvscope
