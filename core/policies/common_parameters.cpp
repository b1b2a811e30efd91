// Parameter rows that many policies share: rounding of the budget, protected tokens, block processing.
#include "core/policies/common_parameters.h"

#include "core/parameters/parameter_rows.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace kvscope {

namespace {

constexpr double maxTokens = 1 << 20;

ParameterTable protectionRows() {
    return {
        tokensRow("protect_first", "Protect first", "", {0, maxTokens, 0}, Stage::Select,
                  "The first tokens are kept whatever their score, inside the budget.",
                  "StreamingLLM's attention sinks; kvpress Compactor 8"),
        tokensRow("protect_last", "Protect last", "", {0, maxTokens, 0}, Stage::Select,
                  "The most recent tokens are kept whatever their score, inside the budget and after the first ones.",
                  "H2O's recent part; kvpress Compactor 4")};
}

ParameterSpec roundingRow() {
    return choiceRow("rounding", "Rounding",
                     {{"ceil", "Up", "⌈r n⌉, as Compactor and l2compress state it"},
                      {"floor", "Down",
                       "int(n (1 − ratio)) in binary floating point with the decimal ratio = 1 − r, as kvpress "
                       "computes it: 9 of 100 at r = 0.1, 69 of 1,000 at 0.07"},
                      {"round", "Nearest", "the nearest whole number, halves to even"}},
                     Stage::Select,
                     "How a fraction kept becomes tokens. Sources differ (X2); at least one token is kept.",
                     "Compactor and l2compress: ceil; kvpress: int(n (1 − ratio)); compactor-vllm: round");
}

ParameterSpec wholeLayersRow() {
    return choiceRow("whole_layers", "Layers left whole",
                     {{"none", "None", "every layer is pruned"},
                      {"sliding", "Sliding", "layers with a sliding window keep every token; the others are pruned"},
                      {"global", "Global", "layers without a window keep every token; the others are pruned"}},
                     Stage::Select,
                     "For models that mix layers with a sliding window and without (Gemma, gpt-oss). The budget is "
                     "that of the layers that are pruned; kept tokens and bytes count all layers.",
                     "kvpress 0.5.5: sliding for Gemma3ForConditionalGeneration, none for other models");
}

ParameterTable blockRows() {
    return {tokensRow(
                "prompt_block", "Prompt block", "B", {0, maxTokens, 0}, Stage::Features,
                "Tokens per block of the prompt: after each block the cache is cut back to the budget. 0 processes the "
                "whole prompt at once. Simulated on full-attention tensors; the result is not the one-shot set (K10).",
                "KeyDiff 2.4 and Figure 1, B = 128 in 4; kvpress BlockPress: 128"),
            choiceRow("prompt_alignment", "Block alignment",
                      {{"paper", "From the start", "blocks are cut from token 0"},
                       {"kvpress", "After the cache is full",
                        "the first N tokens are the cache, blocks are cut from token N"}},
                      Stage::Features, "Where the blocks are cut (K3). Equal when the block divides the budget.",
                      "KeyDiff 2.4; kvpress BlockPress"),
            tokensRow("decode_tokens", "Decoded tokens", "", {0, maxTokens, 0}, Stage::Features,
                      "This many of the last tokens before the cut are processed as if decoded, after the prompt.",
                      "KeyDiff, appendix E"),
            tokensRow("decode_block", "Decode block", "", {1, maxTokens, 1}, Stage::Features,
                      "Tokens between two evictions while decoding.", "KeyDiff 2.4: 1")};
}

bool includes(CommonParameters groups, CommonParameters group) {
    return (static_cast<int>(groups) & static_cast<int>(group)) != 0;
}

void append(ParameterTable& table, ParameterTable rows) {
    std::move(rows.begin(), rows.end(), std::back_inserter(table));
}

} // namespace

std::shared_ptr<const ParameterTable> withCommonParameters(ParameterTable own, CommonParameters groups,
                                                           std::initializer_list<std::string_view> first) {
    if (includes(groups, CommonParameters::Protection)) append(own, protectionRows());
    if (includes(groups, CommonParameters::Rounding)) append(own, {roundingRow()});
    append(own, {wholeLayersRow()});
    if (includes(groups, CommonParameters::BlockProcessing)) append(own, blockRows());
    for (int place = 0; const std::string_view id : first) {
        const auto row = std::ranges::find(own, id, &ParameterSpec::id);
        assert(row != own.end());
        row->place = ++place;
    }
    return std::make_shared<const ParameterTable>(std::move(own));
}

bool isBlockParameter(std::string_view id) {
    const ParameterTable rows = blockRows();
    return std::ranges::any_of(rows, [id](const ParameterSpec& row) { return row.id == id; });
}

ParameterSpec positionsRow() {
    return choiceRow(
        "positions", "Positions",
        {{"kept", "Kept, with gaps", "kept keys have their original RoPE rotation; evicted tokens leave gaps"},
         {"rerotated", "Re-assigned in the cache",
          "kept keys are rotated to 0 ... N − 1 in time order, what comes after follows at N; needs RoPE"}},
        Stage::Select,
        "Which positions the queries after the cut find (L6). Changes what the choice costs, not what is kept.",
        "StreamingLLM 3.2: inside the cache; kvpress: kept unless KeyRerotationPress wraps it");
}

PolicyVariant kvpressVariant(std::string summary, std::vector<std::pair<std::string, std::string>> values) {
    values.emplace_back("rounding", "floor");
    values.emplace_back("prompt_alignment", "kvpress");
    return {"kvpress", "kvpress", std::move(summary), std::move(values)};
}

bool reassignsPositions(const ParameterValues& values) {
    return values.has("positions") && values.choice("positions") == "rerotated";
}

bool leavesWhole(const ParameterValues& values, std::int64_t slidingWindow) {
    return values.has("whole_layers") && values.choice("whole_layers") == (slidingWindow > 0 ? "sliding" : "global");
}

Rounding roundingOf(const ParameterValues& values) {
    if (!values.has("rounding") || values.choice("rounding") == "ceil") return Rounding::Ceil;
    return values.choice("rounding") == "floor" ? Rounding::Floor : Rounding::Round;
}

std::int64_t integerOrZero(const ParameterValues& values, std::string_view id) {
    return values.has(id) ? values.integer(id) : 0;
}

} // namespace kvscope
