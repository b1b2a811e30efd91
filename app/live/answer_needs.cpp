// Asks the worker for losses with hidden chunks and for the gradients of the loss.
#include "app/live/answer_needs.h"

#include "app/live/tensor_stream.h"

#include <algorithm>
#include <cmath>

namespace kvscope::live {

namespace {

Json asked(const LiveAnswers& answers) {
    return {{"context_id", answers.capture()->contextId()},
            {"question_ids", answers.question()},
            {"answer_ids", answers.answer()}};
}

} // namespace

std::vector<TokenRange> chunksOf(TokenIndex cut, TokenIndex size) {
    std::vector<TokenRange> chunks;
    for (TokenIndex begin = 0; begin < cut; begin += size) chunks.emplace_back(begin, std::min(cut, begin + size));
    return chunks;
}

std::vector<double> lossesWithout(const LiveAnswers& answers, std::span<const TokenRange> chunks,
                                  const Checkpoint& checkpoint) {
    Json params = asked(answers);
    for (const auto& [begin, end] : chunks) params["chunks"].push_back({begin, end});
    params["chunks_may_fail"] = true; // an older worker answers all chunks or none
    const Json answer = answers.capture()->client().call("chunks/importance", std::move(params), {}, checkpoint);
    return understand("chunks/importance", [&] {
        std::vector<double> losses;
        for (const Json& loss : answer.at("losses")) losses.push_back(loss.is_null() ? NAN : loss.get<double>());
        if (losses.size() != chunks.size())
            throw Error({.sentence = "the worker's answer to chunks/importance is not of what was asked",
                         .remedy = "Give worker and program the same version"});
        return losses;
    });
}

HostTensor tokenScores(const LiveAnswers& answers, int steps, const Checkpoint& checkpoint) {
    const LiveCapture& capture = *answers.capture();
    TensorStream stream("scores", {capture.info().numLayers, capture.info().numKvHeads, capture.cut()},
                        checkpoint.silent());
    for (int step = 0; step < steps; ++step) {
        Json params = asked(answers);
        params["steps"] = steps;
        params["step"] = step;
        capture.client().call("gradient/read", std::move(params), {},
                              checkpoint.step(static_cast<std::size_t>(step), static_cast<std::size_t>(steps)),
                              stream.taker());
    }
    HostTensor scores = stream.finish();
    if (!std::ranges::all_of(scores.data, [](float score) { return std::isfinite(score); }))
        throw Error({.sentence = "the gradients of the loss are not finite",
                     .place = "scores",
                     .remedy = "Load the model with another --dtype: fp16 overflows where bf16 and fp32 do not"});
    return scores;
}

} // namespace kvscope::live
