// What the table of theorems says about KeyDiff, against plain loops over queries and keys.
#include "core/capture/memory_capture.h"
#include "core/studies/theory_table.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace kvscope;

namespace {

constexpr std::int64_t kTokens = 90, kCut = 60, kDim = 6;
constexpr int kQueryHeads = 4, kKvHeads = 2;
constexpr double kDegrees = 180 / 3.14159265358979323846;

std::shared_ptr<MemoryCapture> someCapture(std::uint64_t seed, float keyScale) {
    auto capture = makeRandomCapture(seed, kTokens, 1, kQueryHeads, kKvHeads, kDim);
    for (float& x : capture->tensors.at({LayerIndex(0), TensorRole::Keys}).data)
        x *= keyScale;
    return capture;
}

RunRequest requestOf(std::shared_ptr<const CaptureReader> capture, const std::string& spec) {
    RunRequest request;
    request.cut = Cut::resolve(std::to_string(kCut), *capture);
    request.policy = PolicySpec::parse(spec);
    request.budget = Budget::parse("0.25");
    request.capture = std::move(capture);
    return request;
}

double dot(const float* a, const float* b) {
    double sum = 0;
    for (std::int64_t c = 0; c < kDim; ++c)
        sum += static_cast<double>(a[c]) * b[c];
    return sum;
}

/// Lemma 3.1 at one query.
struct Statement {
    double bound = 0, angle = 0; ///< degrees
    bool speaks = false;
};

Statement statementOf(const MemoryCapture& capture, std::int64_t queryHead, std::int64_t j) {
    const HostTensor& keys = capture.tensors.at({LayerIndex(0), TensorRole::Keys});
    const HostTensor& queries = capture.tensors.at({LayerIndex(0), TensorRole::Queries});
    const double scaling = capture.info().layers[0].scaling;
    const float* q = queries.data.data() + (queryHead * kTokens + j) * kDim;
    const float* head = keys.data.data() + queryHead / 2 * kTokens * kDim;
    double sum = 0, top = -1e30, longest = 0;
    const float* best = head;
    for (std::int64_t i = 0; i < kTokens; ++i) {
        longest = std::max(longest, dot(head + i * kDim, head + i * kDim));
        const double logit = scaling * dot(q, head + i * kDim);
        if (i > j)
            continue;
        sum += std::exp(logit);
        best = logit > top ? head + i * kDim : best;
        top = std::max(top, logit);
    }
    const double n = static_cast<double>(j), w = std::exp(top) / sum;
    const double m = std::max(1.0, scaling * scaling * longest * dot(q, q)); // K6
    const double least = (std::log(n / (n + 1)) - std::log(1 - w)) / (2 * m) - 1;
    return {kDegrees * std::acos(std::clamp(least, -1.0, 1.0)),
            kDegrees * std::acos(dot(q, best) / std::sqrt(dot(q, q) * dot(best, best))), least > -1};
}

TheoryRow lemmaOf(const std::vector<TheoryRow>& rows, int head) {
    for (const TheoryRow& row : rows)
        if (row.kvHead == head && row.theorem == "KeyDiff Lemma 3.1")
            return row;
    return {};
}

} // namespace

class TheoryTableTest : public QObject {
    Q_OBJECT

private:
    LayerRunner m_runner{makeCpuEngine()};

private slots:
    void lemmaStandsAtTheQueryWithTheLeastRoom() {
        for (const float scale : {0.3F, 1.0F, 4.0F})
            for (const std::uint64_t seed : {1U, 2U, 3U}) {
                const auto capture = someCapture(seed, scale);
                const auto rows = theoryRows(m_runner, requestOf(capture, "keydiff"), {}, {});
                for (int head = 0; head < kKvHeads; ++head) {
                    Statement tightest;
                    for (std::int64_t q = 2 * head; q < 2 * head + 2; ++q)
                        for (std::int64_t j = kCut; j < kTokens; ++j) {
                            const Statement one = statementOf(*capture, q, j);
                            if (one.speaks &&
                                (!tightest.speaks || one.bound / one.angle < tightest.bound / tightest.angle))
                                tightest = one;
                        }
                    const TheoryRow row = lemmaOf(rows, head);
                    QVERIFY(tightest.speaks && row.kind == TheoryRow::Kind::Bound);
                    QVERIFY2(std::abs(row.demanded - tightest.bound) < 1e-3 * tightest.bound &&
                                 std::abs(row.measured - tightest.angle) < 1e-3 * tightest.angle,
                             qPrintable(QString("scale %1 seed %2 head %3: %4 of %5, not %6 of %7")
                                            .arg(double(scale))
                                            .arg(seed)
                                            .arg(head)
                                            .arg(row.measured)
                                            .arg(row.demanded)
                                            .arg(tightest.angle)
                                            .arg(tightest.bound)));
                    QVERIFY(row.measured <= row.demanded);
                    QVERIFY(std::abs(row.margin() - row.demanded / row.measured) < 1e-9);
                }
            }
    }

    // Equal keys: every weight is 1 / (j + 1), and ln(n/(n + 1)) - ln(1 - w) is 0 for all of them.
    void uniformAttentionSaysNothing() {
        auto capture = someCapture(4, 1);
        HostTensor& keys = capture->tensors.at({LayerIndex(0), TensorRole::Keys});
        std::fill(keys.data.begin(), keys.data.end(), 0.25F);
        const TheoryRow row = lemmaOf(theoryRows(m_runner, requestOf(capture, "keydiff"), {}, {}), 0);
        QVERIFY(std::isnan(row.measured) || row.demanded > 179); // rounding of the float weight may leave a trace
    }
};

KVSCOPE_TEST(TheoryTableTest)
#include "theory_table_test.moc"
