// Positions re-assigned inside the cache (trap L6), against loops that start from the rows before rotation.
#include "core/capture/rope.h"
#include "core/engine/engine.h"
#include "core/metrics/measure_values.h"
#include "core/run/record_results.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <complex>

using namespace kvscope;

namespace {

constexpr std::int64_t kTokens = 90;
constexpr int kQueryHeads = 4, kKvHeads = 2, kDim = 8;
constexpr double kTolerance = 3e-6; // outputs are rounded to float once, rotated rows twice

struct RopeShape {
    int rotaryDim = kDim;
    bool interleaved = false;
    double attentionScaling = 1;
    std::int64_t slidingWindow = 0;
};

/// A capture with RoPE, and the rows that were rotated to make it.
struct Rotated {
    std::shared_ptr<MemoryCapture> capture;
    HostTensor keys, queries; ///< before rotation
    RopeShape shape;
};

Rotated makeRotated(std::uint64_t seed, const RopeShape& shape) {
    Rotated made{makeRandomCapture(seed, kTokens, 2, kQueryHeads, kKvHeads, kDim), {}, {}, shape};
    MemoryCapture& capture = *made.capture;
    capture.captureInfo.rope = {"default", 100, shape.attentionScaling, shape.rotaryDim, shape.interleaved};
    for (int i = 0; i < shape.rotaryDim / 2; ++i)
        capture.frequencies.push_back(static_cast<float>(std::pow(100.0, -2.0 * i / shape.rotaryDim)));
    for (std::size_t t = 0; t < capture.tokenTable.positions.size(); ++t)
        capture.tokenTable.positions[t] = static_cast<std::int64_t>(t) + 7; // position ids need not begin at 0
    for (LayerInfo& layer : capture.captureInfo.layers) {
        layer.hasRope = true;
        layer.slidingWindow = shape.slidingWindow;
    }
    made.keys = capture.tensors.at({LayerIndex(0), TensorRole::Keys});
    made.queries = capture.tensors.at({LayerIndex(0), TensorRole::Queries});
    for (auto& [place, tensor] : capture.tensors)
        if (place.second != TensorRole::Values)
            rotateForward(tensor, capture.tokenTable.positions, capture.frequencies, capture.captureInfo.rope);
    return made;
}

/// Row `token` of a head as a model makes it at `position`.
std::vector<double> placed(const Rotated& made, const HostTensor& rows, std::int64_t head, std::int64_t token,
                           std::int64_t position) {
    std::vector<double> out;
    for (int c = 0; c < kDim; ++c)
        out.push_back(rows.data[static_cast<std::size_t>((head * kTokens + token) * kDim + c)]);
    const int pairs = made.shape.rotaryDim / 2;
    for (int i = 0; i < pairs; ++i) {
        const auto a = static_cast<std::size_t>(made.shape.interleaved ? 2 * i : i);
        const auto b = static_cast<std::size_t>(made.shape.interleaved ? 2 * i + 1 : i + pairs);
        const float angle = static_cast<float>(position) * made.capture->frequencies[static_cast<std::size_t>(i)];
        const auto turned = std::complex<double>(out[a], out[b]) * std::polar(1.0, static_cast<double>(angle));
        out[a] = made.shape.attentionScaling * turned.real();
        out[b] = made.shape.attentionScaling * turned.imag();
    }
    return out;
}

struct Row {
    std::int64_t token, position;
};

/// Attention of a query at `position` over rows at their positions, softmax in double.
std::vector<double> attend(const Rotated& made, std::int64_t queryHead, Row query, const std::vector<Row>& rows) {
    const std::int64_t kv = queryHead / (kQueryHeads / kKvHeads);
    const std::vector<double> q = placed(made, made.queries, queryHead, query.token, query.position);
    const HostTensor& values = made.capture->tensors.at({LayerIndex(0), TensorRole::Values});
    std::vector<double> out(kDim);
    double sum = 0;
    for (const Row& row : rows) {
        if (made.shape.slidingWindow > 0 && row.position <= query.position - made.shape.slidingWindow) continue;
        const std::vector<double> k = placed(made, made.keys, kv, row.token, row.position);
        double logit = 0;
        for (std::size_t c = 0; c < kDim; ++c) logit += q[c] * k[c] / std::sqrt(static_cast<double>(kDim));
        sum += std::exp(logit);
        for (std::size_t c = 0; c < kDim; ++c)
            out[c] += std::exp(logit) * values.data[static_cast<std::size_t>((kv * kTokens + row.token) * kDim) + c];
    }
    for (double& x : out) x /= sum;
    return out;
}

double length(const std::vector<double>& a, const std::vector<double>& b, double factor) {
    double sum = 0;
    for (std::size_t c = 0; c < a.size(); ++c) sum += (a[c] - factor * b[c]) * (a[c] - factor * b[c]);
    return std::sqrt(sum);
}

/// ||z - a|| / ||a|| of query `j`; z over the kept keys at 0 ... N - 1 and what follows at N.
double errorOf(const Rotated& made, std::int64_t queryHead, std::int64_t j, std::int64_t cut,
               const std::vector<TokenIndex>& kept) {
    std::vector<Row> all, left;
    for (std::int64_t t = 0; t <= j; ++t) all.push_back({t, t + 7});
    for (const TokenIndex t : kept) left.push_back({t, static_cast<std::int64_t>(left.size())});
    for (std::int64_t t = cut; t <= j; ++t) left.push_back({t, static_cast<std::int64_t>(kept.size()) + t - cut});
    const std::vector<double> a = attend(made, queryHead, {j, j + 7}, all);
    const std::vector<double> z = attend(made, queryHead, {j, left.back().position}, left);
    return length(z, a, 1) / length(a, a, 0);
}

RunRequest requestOf(const Rotated& made, const std::string& spec, const std::string& cut = "60") {
    return runRequest(made.capture, spec, cut);
}

/// A list of unequal heads, as somebody's own policy may choose it.
std::shared_ptr<const RecordedSelection> unequalList(const std::string& positions) {
    RecordedSelection list;
    list.cut = "60";
    list.cutToken = 60;
    list.parameters = {{"positions", positions}};
    list.heads.resize(2);
    list.heads[0].kept = {1, 4, 17, 40, 58, 59};
    list.heads[1].kvHead = 1;
    list.heads[1].kept = {0, 33};
    return std::make_shared<const RecordedSelection>(list);
}

} // namespace

class CachePositionsTest : public QObject {
    Q_OBJECT

private:
    LayerRunner m_runner{makeCpuEngine()};

    void compareWithNaive(const Rotated& made, const RunResult& result) const {
        const HostTensor& errors = requireFidelity(result).outputError;
        for (std::int64_t h = 0; h < kQueryHeads; ++h)
            for (std::int64_t j = 60; j < kTokens; ++j) {
                const auto& kept = result.selection.heads[static_cast<std::size_t>(h / 2)].kept;
                const double truth = errorOf(made, h, j, 60, kept);
                const double got = errors.data[static_cast<std::size_t>(h * (kTokens - 60) + j - 60)];
                QVERIFY2(std::abs(got - truth) <= kTolerance * std::max(1.0, truth),
                         qPrintable(QString("head %1 query %2: %3, not %4").arg(h).arg(j).arg(got).arg(truth)));
            }
    }

private slots:
    void equalsAModelThatReassigns_data() {
        QTest::addColumn<int>("rotaryDim");
        QTest::addColumn<bool>("interleaved");
        QTest::addColumn<double>("attentionScaling");
        QTest::newRow("halves") << kDim << false << 1.0;
        QTest::newRow("neighbours") << kDim << true << 1.0;
        QTest::newRow("part of the head") << 4 << false << 1.0;
        QTest::newRow("YaRN magnitude") << kDim << false << 1.3;
    }

    void equalsAModelThatReassigns() {
        QFETCH(int, rotaryDim);
        QFETCH(bool, interleaved);
        QFETCH(double, attentionScaling);
        for (const std::uint64_t seed : {1U, 2U}) {
            const Rotated made = makeRotated(seed, {rotaryDim, interleaved, attentionScaling});
            compareWithNaive(made, *m_runner.run(requestOf(made, "streaming_llm:paper@11t"), {}));
            RunRequest unequal = requestOf(made, "exact");
            unequal.recorded = unequalList("rerotated");
            compareWithNaive(made, *m_runner.run(unequal, {}));
        }
    }

    // With 11 kept, query 80 stands at 31 and still sees the recent ones at 4 ... 10; where they stood it would not.
    void slidingWindowsCountCachePositions() {
        const Rotated made = makeRotated(3, {.slidingWindow = 28});
        const auto result = m_runner.run(requestOf(made, "streaming_llm:paper@11t"), {});
        compareWithNaive(made, *result);
        const auto behind = [](const RunResult& of) {
            return std::ranges::count_if(of.notes,
                                         [](const std::string& note) { return note.find("lie behind it") < 200; });
        };
        QCOMPARE(behind(*result), std::ptrdiff_t{0}); // 11 keys fit into 28 positions
        QCOMPARE(behind(*m_runner.run(requestOf(made, "streaming_llm@11t"), {})), std::ptrdiff_t{1});
        QCOMPARE(behind(*m_runner.run(requestOf(made, "streaming_llm:paper@40t"), {})), std::ptrdiff_t{1});
    }

    void listsAndRetainedMassStayTheSame() {
        const Rotated made = makeRotated(4, {});
        const auto gaps = m_runner.run(requestOf(made, "streaming_llm@15t"), {});
        const auto paper = m_runner.run(requestOf(made, "streaming_llm:paper@15t"), {});
        QVERIFY(gaps->selection.sameLists(paper->selection));
        QVERIFY(gaps->fidelity->retainedMass.data == paper->fidelity->retainedMass.data);
        QVERIFY(gaps->fidelity->outputError.data != paper->fidelity->outputError.data);
        QVERIFY(gaps->notes.front().find("positions kept") == 0);
        QVERIFY(paper->notes.front().find("positions re-assigned") == 0);
    }

    // Without a gap nothing moves but by a common shift, which no logit sees.
    void nothingChangesWithoutAGap() {
        const Rotated made = makeRotated(5, {});
        for (const char* spec : {"streaming_llm:paper@60t", "streaming_llm:paper,sinks=0@20t"}) {
            const auto moved = m_runner.run(requestOf(made, spec), {});
            RunRequest kept = requestOf(made, spec);
            kept.policy.values.setText("positions", "kept");
            const auto still = m_runner.run(kept, {});
            for (std::size_t i = 0; i < moved->fidelity->outputError.data.size(); ++i)
                QVERIFY(std::abs(moved->fidelity->outputError.data[i] - still->fidelity->outputError.data[i]) < 1e-5);
        }
    }

    // Numerator and denominator belong to the same cache as the output; sinks are those of the capture.
    void otherMeasuresReadTheSameCache() {
        const Rotated made = makeRotated(6, {});
        const std::vector<std::string> ids{"output_error", "denominator_error", "sink_mass"};
        const auto paper = m_runner.run(requestOf(made, "streaming_llm:paper@15t"), {});
        const auto gaps = m_runner.run(requestOf(made, "streaming_llm@15t"), {});
        const auto moved = m_runner.measure(*paper, ids, {}), still = m_runner.measure(*gaps, ids, {});
        QVERIFY(moved[0].perQuery.data == paper->fidelity->outputError.data);
        QVERIFY(moved[1].perQuery.data != still[1].perQuery.data);
        QVERIFY(moved[2].perQuery.data == still[2].perQuery.data);
    }

    void aListRemembersIt() {
        const Rotated made = makeRotated(7, {});
        const std::vector results{m_runner.run(requestOf(made, "streaming_llm:paper@15t"), {})};
        RunRequest again = requestOf(made, "exact");
        again.recorded = std::make_shared<const RecordedSelection>(recordSelection(results, {}));
        QVERIFY(m_runner.run(again, {})->fidelity->outputError.data == results[0]->fidelity->outputError.data);
    }

    void refusesWhatCannotBeRotated() {
        Rotated made = makeRotated(8, {});
        const RunRequest request = requestOf(made, "streaming_llm:paper@15t");
        made.capture->frequencies.clear();
        QVERIFY(errorMessage([&] { m_runner.run(request, {}); }).find("lacks the inverse frequencies of layer 0") !=
                std::string::npos);
        for (LayerInfo& layer : made.capture->captureInfo.layers) layer.hasRope = false;
        const std::string message = errorMessage([&] { m_runner.run(request, {}); });
        QVERIFY(message.find("no layer of the capture has RoPE") != std::string::npos);
        QVERIFY(message.find("positions=kept") != std::string::npos);
        QVERIFY(m_runner.run(requestOf(made, "streaming_llm@15t"), {})->fidelity);
    }

    // Keys of such a layer hold no position: the cache is the same wherever they stand.
    void aLayerWithoutRopeAmongOthersStaysAsItIs() {
        const Rotated made = makeRotated(9, {});
        made.capture->captureInfo.layers[0].hasRope = false;
        const auto moved = m_runner.run(requestOf(made, "streaming_llm:paper@15t"), {});
        const auto still = m_runner.run(requestOf(made, "streaming_llm@15t"), {});
        QVERIFY(moved->fidelity->outputError.data == still->fidelity->outputError.data);
    }

    void cutNoneIsNotMeasured() {
        const Rotated made = makeRotated(10, {});
        const auto result = m_runner.run(requestOf(made, "streaming_llm:paper@15t", "none"), {});
        QVERIFY(!result->fidelity);
        QVERIFY(result->notes.back().find("not measured: positions are re-assigned") == 0);
        QVERIFY(m_runner.run(requestOf(made, "streaming_llm@15t", "none"), {})->fidelity);
    }
};

KVSCOPE_TEST(CachePositionsTest)
#include "cache_positions_test.moc"
