// Sends kept lists to the worker as bitmaps, and asks for the model's answers after what they keep.
#include "app/live/live_answers.h"

#include "app/live/live_client.h"
#include "app/live/worker_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>

namespace kvscope::live {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// One head's kept set as it is sent: the tokens, and the weight of each in both sums of the estimator.
struct Row {
    Json head; ///< [layer, KV head] or [layer, KV head, query head]
    const std::vector<TokenIndex>& kept;
    const std::vector<float>& numerator;
    const std::vector<float>& denominator; ///< both per kept token; empty: all 1
};

std::vector<Row> rowsOf(std::span<const LayerSelection> layers) {
    static const std::vector<float> kOnes;
    std::vector<Row> rows;
    for (const LayerSelection& layer : layers)
        for (std::size_t h = 0; h < layer.selection->heads.size(); ++h) {
            const HeadSelection& head = layer.selection->heads[h];
            if (head.queryHeads.empty())
                rows.push_back({{layer.layer.value, h}, head.kept, head.numeratorWeights, head.denominatorWeights});
            for (const QueryHeadSet& own : head.queryHeads)
                rows.push_back({{layer.layer.value, h, own.queryHead}, own.kept, kOnes, kOnes});
        }
    return rows;
}

void appendFloats(std::string& blob, const std::vector<float>& weights, std::size_t count) {
    const std::vector<float> ones(weights.empty() ? count : 0, 1.0f);
    const std::vector<float>& all = weights.empty() ? ones : weights;
    blob.append(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(float));
}

/// The rows of one message.
struct Part {
    Json rows = Json::array();
    std::string kept, numerator, denominator;

    bool hasRoomFor(const Row& row, std::size_t rowBytes) const {
        return kept.size() + rowBytes <= kMostBlob && numerator.size() + row.kept.size() * sizeof(float) <= kMostBlob;
    }
    void add(const Row& row, std::size_t rowBytes, bool isWeighted) {
        rows.push_back(row.head);
        const std::size_t begin = kept.size();
        kept.resize(begin + rowBytes, '\0');
        for (const TokenIndex token : row.kept) {
            char& byte = kept[begin + static_cast<std::size_t>(token) / 8];
            byte = static_cast<char>(byte | 1 << token % 8);
        }
        if (!isWeighted) return;
        appendFloats(numerator, row.numerator, row.kept.size());
        appendFloats(denominator, row.denominator, row.kept.size());
    }
};

std::vector<Part> partsOf(const std::vector<Row>& rows, std::size_t rowBytes, bool isWeighted) {
    std::vector<Part> parts(1);
    for (const Row& row : rows) {
        if (rowBytes > kMostBlob || (isWeighted && row.kept.size() * sizeof(float) > kMostBlob))
            throw Error({.sentence = fmt::format("a kept list of {} tokens is too long for a message", row.kept.size()),
                         .remedy = "Cut earlier"});
        if (!parts.back().rows.empty() && !parts.back().hasRoomFor(row, rowBytes)) parts.emplace_back();
        parts.back().add(row, rowBytes, isWeighted);
    }
    return parts;
}

std::vector<bool> flipsOf(const Json& row) {
    std::vector<bool> flips;
    for (const Json& flip : row.value("flips", Json::array())) flips.push_back(flip.is_boolean() && flip.get<bool>());
    return flips;
}

double numberOf(const Json& row, const char* name) {
    const Json value = row.value(name, Json());
    return value.is_null() ? kNone : value.get<double>();
}

/// Why a row has no answer; empty: it has one.
std::string errorOf(const Json& row) {
    const auto error = row.find("error");
    return error == row.end() || error->is_null() ? std::string() : workerError(*error).what();
}

} // namespace

LiveAnswers::LiveAnswers(std::shared_ptr<const LiveCapture> capture, Rounds rounds)
    : m_capture(std::move(capture)), m_generation(rounds == Rounds::None ? 0 : 1) {
    const TokenTable& tokens = m_capture->tokens();
    TokenIndex begin = static_cast<TokenIndex>(tokens.ids.size()), end = begin;
    for (const Segment& segment : tokens.segments)
        if (segment.kind == SegmentKind::Answer && segment.begin >= m_capture->cut() && segment.begin < begin) {
            begin = segment.begin;
            end = segment.end;
        }
    m_question.assign(tokens.ids.begin() + m_capture->cut(), tokens.ids.begin() + begin);
    m_answer.assign(tokens.ids.begin() + begin, tokens.ids.begin() + end);
}

SentSelection LiveAnswers::send(const std::string& name, std::span<const LayerSelection> layers,
                                const Checkpoint& checkpoint) const {
    const std::vector<Row> rows = rowsOf(layers);
    const bool isWeighted =
        std::ranges::any_of(rows, [](const Row& row) { return !row.numerator.empty() || !row.denominator.empty(); });
    const std::size_t rowBytes = (static_cast<std::size_t>(m_capture->cut()) + 7) / 8;
    std::vector<Part> parts = partsOf(rows, rowBytes, isWeighted);
    // Two jobs may send the same selection at the same time, with interleaved parts, so each upload has its own name.
    // The worker recognises an earlier selection by its bits, not by this name.
    static std::atomic<std::uint64_t> uploads = 0;
    const std::string upload = fmt::format("{} #{}", name, ++uploads);
    Json answer;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Part& part = parts[i];
        Json blobs = Json::array();
        std::vector<std::string> bytes;
        const auto attach = [&](const char* blobName, const char* type, Json shape, std::string& blob) {
            blobs.push_back({{"name", blobName}, {"dtype", type}, {"shape", std::move(shape)}});
            bytes.push_back(std::move(blob));
        };
        attach("kept", "bits", Json::array({part.rows.size(), m_capture->cut()}), part.kept);
        const Json weights = Json::array({part.numerator.size() / sizeof(float)});
        if (isWeighted) attach("numerator", "f32", weights, part.numerator);
        if (isWeighted) attach("denominator", "f32", weights, part.denominator);
        answer = m_capture->client().call("selection/set",
                                          {{"context_id", m_capture->contextId()},
                                           {"name", upload},
                                           {"rows", std::move(part.rows)},
                                           {"generation", generation()},
                                           {"part", i},
                                           {"parts", parts.size()},
                                           {"blobs", std::move(blobs)}},
                                          std::move(bytes), checkpoint);
    }
    return understand("selection/set", [&] {
        return SentSelection{answer.at("selection_id").get<std::string>(), answer.value("bytes", kNone)};
    });
}

Json LiveAnswers::generation() const { return m_generation == 0 ? Json() : Json(m_generation); }

Json LiveAnswers::rowsAsked(const char* method, const std::vector<std::optional<std::string>>& selections, Json further,
                            const Checkpoint& checkpoint, const Notified& notified) const {
    Json ids = Json::array();
    for (const auto& selection : selections) ids.push_back(selection ? Json(*selection) : Json());
    further["context_id"] = m_capture->contextId();
    further["selection_ids"] = ids;
    further["question_ids"] = m_question;
    further["generation"] = generation();
    further["rows_may_fail"] = true; // an older worker answers all rows or none
    const Json answer = m_capture->client().call(method, std::move(further), {}, checkpoint, notified);
    return understand(method, [&] {
        Json rows = answer.at("rows");
        bool isAsked = rows.is_array() && rows.size() == ids.size();
        for (std::size_t i = 0; isAsked && i < rows.size(); ++i) isAsked = rows[i].at("selection_id") == ids[i];
        if (!isAsked)
            throw Error({.sentence = fmt::format("the worker's answer to {} is not of what was asked", method),
                         .remedy = "Give worker and program the same version"});
        return rows;
    });
}

std::vector<ExpectedAnswer> LiveAnswers::score(const std::vector<std::optional<std::string>>& selections,
                                               const Checkpoint& checkpoint) const {
    const Json rows = rowsAsked("answer/score", selections, {{"answer_ids", m_answer}}, checkpoint);
    return understand("answer/score", [&] {
        std::vector<ExpectedAnswer> answers;
        for (const Json& row : rows)
            answers.push_back({numberOf(row, "nll"), numbersOf(row.value("losses", Json())),
                               numbersOf(row.value("kl", Json())), flipsOf(row), numberOf(row, "kl_mean"),
                               numberOf(row, "flip_rate"), numberOf(row, "bytes"), errorOf(row)});
        return answers;
    });
}

std::vector<GreedyAnswer> LiveAnswers::generate(const std::vector<std::optional<std::string>>& selections,
                                                const Writing& writing, const Checkpoint& checkpoint,
                                                const TokenWritten& written) const {
    std::vector<std::vector<std::string>> pieces(selections.size());
    const auto note = [&](const std::string& method, const Json& token, std::vector<std::string>&) {
        if (method != "answer/token") return;
        const auto row = token.at("row").get<std::size_t>(), index = token.at("index").get<std::size_t>();
        if (row >= pieces.size() || index != pieces[row].size()) return; // the answer holds the whole texts anyway
        pieces[row].push_back(token.at("text").get<std::string>());
        if (written) written(row, index, pieces[row].back());
    };
    const Json rows =
        rowsAsked("answer/generate", selections,
                  {{"max_new", writing.mostTokens}, {"temperature", writing.temperature}, {"seed", writing.seed}},
                  checkpoint, note);
    return understand("answer/generate", [&] {
        std::vector<GreedyAnswer> answers;
        for (const Json& row : rows) {
            GreedyAnswer& answer = answers.emplace_back();
            if (answer.error = errorOf(row); !answer.error.empty()) continue;
            answer.ids = row.at("ids").get<std::vector<std::int32_t>>();
            answer.text = row.at("text").get<std::string>();
            answer.pieces = std::move(pieces[answers.size() - 1]);
            if (answer.pieces.size() != answer.ids.size()) answer.pieces.clear();
            if (const Json first = row.value("first_divergence", Json()); !first.is_null())
                answer.firstDivergence = first.get<std::int64_t>();
        }
        return answers;
    });
}

} // namespace kvscope::live
