// Asks the worker for numbers that no budget changes, which the runner's cache keeps, and applies kept lists to them.
#include "app/study/answer_needs.h"

#include "app/live/tensor_stream.h"
#include "core/base/error.h"
#include "core/run/stage_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope {

namespace {

constexpr double kUnknown = NAN;
constexpr std::size_t kChunksAtOnce = 16; // in one request; others may come between two of them

std::shared_ptr<const live::LiveCapture> liveOf(const std::shared_ptr<const CaptureReader>& capture) {
    auto live = std::dynamic_pointer_cast<const live::LiveCapture>(capture);
    if (!live)
        throw Error({"what an answer needs is asked of a model, and there is none behind a capture", "",
                     "Open a live context with an expected answer"});
    return live;
}

/// A value of the cache; where it is missing, `ask` gives it.
template <class Value, class Ask>
std::shared_ptr<const Value> cached(const LayerRunner& runner, const std::string& key, std::size_t bytes,
                                    const Checkpoint& checkpoint, const Ask& ask, bool* wasThere = nullptr) {
    return runner.cache().get<Value>(
        key, checkpoint,
        [&] {
            return StageCache::Made<Value>{ask(), bytes};
        },
        wasThere);
}

live::Json asked(const live::LiveAnswers& answers) {
    return {{"context_id", answers.capture()->contextId()},
            {"question_ids", answers.question()},
            {"answer_ids", answers.answer()}};
}

/// Mean loss of the answer with one chunk hidden in all layers and heads, for each of at most kChunksAtOnce chunks; NaN
/// where it is NaN or infinite.
std::vector<double> lossesWithout(const live::LiveAnswers& answers, std::span<const TokenRange> chunks,
                                  const Checkpoint& checkpoint) {
    live::Json params = asked(answers);
    for (const auto& [begin, end] : chunks) params["chunks"].push_back({begin, end});
    params["chunks_may_fail"] = true; // an older worker answers all chunks or none
    const live::Json answer = answers.capture()->client().call("chunks/importance", std::move(params), {}, checkpoint);
    return live::understand("chunks/importance", [&] {
        std::vector<double> losses;
        for (const live::Json& loss : answer.at("losses")) losses.push_back(loss.is_null() ? NAN : loss.get<double>());
        if (losses.size() != chunks.size())
            throw Error({.sentence = "the worker's answer to chunks/importance is not of what was asked",
                         .remedy = "Give worker and program the same version"});
        return losses;
    });
}

HostTensor readScores(const live::LiveAnswers& answers, int steps, const Checkpoint& checkpoint) {
    const live::LiveCapture& capture = *answers.capture();
    live::TensorStream stream("scores", {capture.info().numLayers, capture.info().numKvHeads, capture.cut()},
                              checkpoint.silent());
    for (int step = 0; step < steps; ++step) {
        live::Json params = asked(answers);
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

} // namespace

std::vector<TokenRange> chunksOf(TokenIndex cut, TokenIndex size) {
    std::vector<TokenRange> chunks;
    for (TokenIndex begin = 0; begin < cut; begin += size) chunks.emplace_back(begin, std::min(cut, begin + size));
    return chunks;
}

bool isAnswerExpected(const live::LiveAnswers& answers) {
    return answers.answer().size() >= (answers.question().empty() ? 2u : 1u);
}

AnswerNeeds::AnswerNeeds(const LayerRunner& runner, const std::shared_ptr<const CaptureReader>& capture)
    : m_runner(runner), m_answers(liveOf(capture), live::LiveAnswers::Rounds::None),
      m_key(runner.keyOf(capture) + "answer needs|") {
    if (!isAnswerExpected(m_answers))
        throw Error(
            {"no answer is expected of this live context", "answer", "Give the answer that the model should write"});
}

double AnswerNeeds::fullLoss(const Checkpoint& checkpoint) const {
    return *cached<double>(m_runner, m_key + "full", sizeof(double), checkpoint, [&] {
        const live::ExpectedAnswer full = m_answers.score({std::nullopt}, checkpoint).front();
        if (!full.error.empty()) throw Error({.sentence = full.error});
        return full.nll;
    });
}

std::vector<double> AnswerNeeds::chunkRises(TokenIndex size, const Checkpoint& checkpoint,
                                            const SomeRises& some) const {
    const std::vector<TokenRange> chunks = chunksOf(m_answers.capture()->cut(), size);
    const double full = fullLoss(checkpoint.silent());
    std::vector<double> rises(chunks.size(), kUnknown);
    for (std::size_t begin = 0; begin < chunks.size(); begin += kChunksAtOnce) {
        const auto own = std::span(chunks).subspan(begin, std::min(kChunksAtOnce, chunks.size() - begin));
        bool wasThere = false;
        const auto losses = cached<std::vector<double>>(
            m_runner, fmt::format("{}chunks|{}|{}", m_key, size, begin), own.size() * sizeof(double), checkpoint,
            [&] { return lossesWithout(m_answers, own, checkpoint.silent()); }, &wasThere);
        std::ranges::transform(*losses, rises.begin() + static_cast<std::ptrdiff_t>(begin),
                               [&](double loss) { return loss - full; });
        checkpoint.at(static_cast<double>(begin + own.size()), static_cast<double>(chunks.size()));
        if (some && !wasThere) some(rises, begin + own.size());
    }
    if (std::ranges::all_of(rises, [](double rise) { return std::isnan(rise); }))
        throw Error({"the answer's loss is NaN or infinite, whichever chunk is hidden", "",
                     "Load the model in bf16 or fp32: fp16 overflows where they do not"});
    return rises;
}

std::shared_ptr<const HostTensor> AnswerNeeds::tokenScores(int steps, const Checkpoint& checkpoint) const {
    const CaptureInfo& info = m_answers.capture()->info();
    const auto count = static_cast<std::size_t>(info.numLayers) * static_cast<std::size_t>(info.numKvHeads) *
                       static_cast<std::size_t>(m_answers.capture()->cut());
    return cached<HostTensor>(m_runner, fmt::format("{}scores|{}", m_key, steps), count * sizeof(float), checkpoint,
                              [&] { return readScores(m_answers, steps, checkpoint); });
}

std::vector<double> sumsOfTokens(const HostTensor& scores) {
    const auto tokens = static_cast<std::size_t>(scores.shape[2]);
    std::vector<double> sums(tokens, 0);
    for (std::size_t i = 0; i < scores.data.size(); ++i) sums[i % tokens] += static_cast<double>(scores.data[i]);
    return sums;
}

std::vector<double> keptShares(std::span<const live::LayerSelection> layers, std::span<const TokenRange> chunks) {
    std::vector<double> shares(chunks.size(), 0);
    double heads = 0;
    for (const live::LayerSelection& layer : layers)
        for (const HeadSelection& head : layer.selection->heads) {
            const double sets = std::max<double>(1, static_cast<double>(head.queryHeads.size()));
            const auto add = [&](const std::vector<TokenIndex>& kept) {
                for (std::size_t i = 0; i < chunks.size(); ++i) {
                    const auto [begin, end] = chunks[i];
                    const auto count = std::ranges::lower_bound(kept, end) - std::ranges::lower_bound(kept, begin);
                    shares[i] += static_cast<double>(count) / static_cast<double>(end - begin) / sets;
                }
            };
            if (head.queryHeads.empty()) add(head.kept);
            for (const QueryHeadSet& own : head.queryHeads) add(own.kept);
            ++heads;
        }
    for (double& share : shares) share /= std::max(heads, 1.0);
    return shares;
}

std::vector<std::vector<double>> predictedRises(std::span<const live::LayerSelection> layers,
                                                const HostTensor& scores) {
    const auto tokens = static_cast<std::size_t>(scores.shape[2]);
    std::vector<std::vector<double>> rises;
    for (const live::LayerSelection& layer : layers) {
        std::vector<double>& own = rises.emplace_back();
        for (const HeadSelection& head : layer.selection->heads) {
            const std::size_t row =
                static_cast<std::size_t>(layer.layer.value) * static_cast<std::size_t>(scores.shape[1]) + own.size();
            const std::span values = std::span(scores.data).subspan(row * tokens, tokens);
            double rise = 0;
            auto kept = head.kept.begin();
            for (std::size_t token = 0; token < tokens; ++token)
                if (kept != head.kept.end() && static_cast<std::size_t>(*kept) == token)
                    ++kept;
                else
                    rise += static_cast<double>(values[token]);
            const bool isPlain =
                head.queryHeads.empty() && head.numeratorWeights.empty() && head.denominatorWeights.empty();
            own.push_back(isPlain ? rise : kUnknown);
        }
    }
    return rises;
}

double sumOfRises(const std::vector<std::vector<double>>& predicted) {
    if (predicted.empty()) return kUnknown;
    double sum = 0;
    for (const std::vector<double>& layer : predicted) sum = std::accumulate(layer.begin(), layer.end(), sum);
    return sum;
}

} // namespace kvscope
