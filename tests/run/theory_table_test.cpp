// What the table of theorems says about KeyDiff and Compactor, against plain loops over queries and keys.
#include "core/base/random_source.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/studies/theory_table.h"
#include "tests/support/error_message.h"
#include "tests/support/naive/naive_engine.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
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
    for (float& x : capture->tensors.at({LayerIndex(0), TensorRole::Keys}).data) x *= keyScale;
    return capture;
}

RunRequest requestOf(std::shared_ptr<const CaptureReader> capture, const std::string& spec) {
    return runRequest(std::move(capture), spec, std::to_string(kCut), "0.25");
}

double dot(const float* a, const float* b) {
    double sum = 0;
    for (std::int64_t c = 0; c < kDim; ++c) sum += static_cast<double>(a[c]) * b[c];
    return sum;
}

/// KeyDiff's Theorem C.1 at one query.
struct Statement {
    double bound = 0, angle = 0; ///< degrees
    bool speaks = false;
};

/// With a window a query sees that many keys, itself included; 0: all before it.
Statement statementOf(const MemoryCapture& capture, std::int64_t queryHead, std::int64_t j, std::int64_t window = 0) {
    const HostTensor& keys = capture.tensors.at({LayerIndex(0), TensorRole::Keys});
    const HostTensor& queries = capture.tensors.at({LayerIndex(0), TensorRole::Queries});
    const double scaling = capture.info().layers[0].scaling;
    const float* q = queries.data.data() + (queryHead * kTokens + j) * kDim;
    const float* head = keys.data.data() + queryHead / 2 * kTokens * kDim;
    double sum = 0, top = -1e30, longest = 0;
    const float* best = head;
    for (std::int64_t i = 0; i < kTokens; ++i) {
        if (window > 0 && (i > j || i <= j - window)) continue;
        longest = std::max(longest, dot(head + i * kDim, head + i * kDim));
        const double logit = scaling * dot(q, head + i * kDim);
        if (i > j) continue;
        sum += std::exp(logit);
        best = logit > top ? head + i * kDim : best;
        top = std::max(top, logit);
    }
    const double n = static_cast<double>(window > 0 ? std::min(j, window - 1) : j), w = std::exp(top) / sum;
    const double m = std::max(1.0, scaling * scaling * longest * dot(q, q)); // K6
    const double least = (std::log(n / (n + 1)) - std::log(1 - w)) / (2 * m) - 1;
    return {kDegrees * std::acos(std::clamp(least, -1.0, 1.0)),
            kDegrees * std::acos(dot(q, best) / std::sqrt(dot(q, q) * dot(best, best))), least > -1};
}

TheoryRow rowOf(const std::vector<TheoryRow>& rows, int head, const std::string& theorem,
                const std::string& quantity = {}) {
    for (const TheoryRow& row : rows)
        if (row.kvHead == head && row.theorem == theorem && (quantity.empty() || row.quantity == quantity)) return row;
    return {};
}

TheoryRow lemmaOf(const std::vector<TheoryRow>& rows, int head) { return rowOf(rows, head, "KeyDiff Thm C.1"); }

using Vector = std::vector<float>;

/// Mean of rows [begin, end) of a head.
Vector meanRow(const HostTensor& tensor, std::int64_t head, std::int64_t begin, std::int64_t end) {
    std::vector<double> sum(kDim, 0);
    for (std::int64_t row = begin; row < end; ++row)
        for (std::int64_t c = 0; c < kDim; ++c)
            sum[std::size_t(c)] += tensor.data[std::size_t((head * kTokens + row) * kDim + c)];
    Vector mean;
    for (const double x : sum) mean.push_back(float(x / double(end - begin)));
    return mean;
}

double cosine(const float* a, const float* b) { return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b)); }

/// The keys lie opposite to the queries, except for one key of each head, which lies along them.
std::shared_ptr<MemoryCapture> opposedCapture(std::uint64_t seed) {
    auto capture = makeRandomCapture(seed, kTokens, 1, kQueryHeads, kKvHeads, kDim);
    HostTensor& keys = capture->tensors.at({LayerIndex(0), TensorRole::Keys});
    for (std::size_t row = 0; row < keys.data.size() / kDim; ++row)
        keys.data[row * kDim] += row % kTokens == 11 ? 9.0F : -2.0F;
    HostTensor& queries = capture->tensors.at({LayerIndex(0), TensorRole::Queries});
    for (std::size_t row = 0; row < queries.data.size() / kDim; ++row) queries.data[row * kDim] += 2;
    return capture;
}

/// Sketches that anybody can write down: entry (i, j) of head h is ((7 i + 3 j + 5 h + i j) mod 13 - 6) / 4.
class WrittenSketch final : public RandomSource {
public:
    std::vector<double> sketch(const RandomKey& key, std::int64_t rows, std::int64_t columns) const override {
        std::vector<double> entries;
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                entries.push_back(double((7 * i + 3 * j + 5 * key.kvHead + i * j) % 13 - 6) / 4);
        return entries;
    }
    std::string id() const override { return "written"; }
};

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
                const auto rows = theoryTable(m_runner, requestOf(capture, "keydiff"), {}, {}).rows;
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
                    QVERIFY(row.measured <= row.demanded && row.beyond == 0 && row.count > 0 && row.mayFail == 0);
                    QCOMPARE(row.caveat.starts_with("vacuous"), row.demanded > 170);
                    QVERIFY(row.ifBroken.find("proof needs it positive") != std::string::npos);
                    QVERIFY(std::abs(row.margin() - row.demanded / row.measured) < 1e-9);
                }
            }
    }

    // In a layer with a window the theorem is about the keys inside it: fewer of them, and shorter ones where the
    // longest lies before it. With all earlier keys the weight of the top one seems too large for its angle.
    void lemmaIsAboutTheKeysInTheWindow() {
        constexpr int kWindow = 8;
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            const auto capture = someCapture(seed, 1);
            capture->captureInfo.layers[0].slidingWindow = kWindow;
            HostTensor& keys = capture->tensors.at({LayerIndex(0), TensorRole::Keys});
            for (int head = 0; head < kKvHeads; ++head)
                for (std::int64_t c = 0; c < kDim; ++c) keys.data[std::size_t((head * kTokens + 2) * kDim + c)] *= 9;
            const auto rows = theoryTable(m_runner, requestOf(capture, "keydiff"), {}, {}).rows;
            for (int head = 0; head < kKvHeads; ++head) {
                Statement tightest;
                for (std::int64_t q = 2 * head; q < 2 * head + 2; ++q)
                    for (std::int64_t j = kCut; j < kTokens; ++j) {
                        // The longest key inside the window of j alone, the last keys included.
                        const Statement one = statementOf(*capture, q, j, kWindow);
                        if (one.speaks && (!tightest.speaks || one.bound / one.angle < tightest.bound / tightest.angle))
                            tightest = one;
                    }
                const TheoryRow row = lemmaOf(rows, head);
                QVERIFY(tightest.speaks && row.kind == TheoryRow::Kind::Bound);
                QVERIFY2(std::abs(row.demanded - tightest.bound) < 1e-3 * tightest.bound,
                         qPrintable(QString("seed %1 head %2: %3, not %4")
                                        .arg(seed)
                                        .arg(head)
                                        .arg(row.demanded)
                                        .arg(tightest.bound)));
                QVERIFY(row.measured <= row.demanded);
            }
        }
    }

    // Both rows that are measured query by query take a part of them where there are many, and say so.
    void rowsSayHowManyQueriesTheyTook() {
        const auto caveatOf = [&](std::int64_t cut, std::int64_t queries, const char* policy, const char* theorem) {
            RunRequest request = requestOf(makeRandomCapture(3, cut + queries, 1, 2, 1, kDim), policy);
            request.cut = Cut::resolve(std::to_string(cut), *request.capture);
            return rowOf(theoryTable(m_runner, request, {}, {}).rows, 0, theorem).caveat;
        };
        const auto says = [](const std::string& text, const char* words) { return text.find(words) < text.size(); };
        QVERIFY(!says(caveatOf(kCut, 30, "keydiff", "KeyDiff Thm C.1"), "queries of a head"));
        const std::string angle = caveatOf(kCut, 300, "keydiff", "KeyDiff Thm C.1"),
                          walk = caveatOf(900, 300, "balancekv_stream", "BalanceKV Thm 3.3");
        QVERIFY2(says(angle, "the last 256 of 300 queries of a head"), angle.c_str());
        QVERIFY2(says(walk, "64 of 300 queries of a head"), walk.c_str());
    }

    // The theorems know neither sinks nor capped logits.
    void otherSoftmaxIsRefused() {
        for (const bool capped : {true, false}) {
            const auto capture = someCapture(3, 1);
            LayerInfo& layer = capture->captureInfo.layers[0];
            if (capped)
                layer.softcap = 2;
            else
                layer.sinks.assign(layer.gqaGroupOf.size(), 1);
            const std::string refused =
                errorMessage([&] { theoryTable(m_runner, requestOf(capture, "keydiff"), {}, {}); });
            QVERIFY2(refused.find(capped ? "layer 0 caps its logits" : "layer 0 has attention sinks") < refused.size(),
                     refused.c_str());
        }
    }

    // Theorem 3.2 at the mean query: a = cos(mean key, q) < 0 < b = cos(k*, q), k* the key farthest in angle
    // from the mean key. Random captures seldom fulfil the premises, opposed ones always do.
    void keydiffsTheoremHoldsWhereItsPremisesDo() {
        int bounds = 0, silent = 0;
        for (const std::uint64_t seed : {1U, 2U, 3U, 4U})
            for (const bool opposed : {true, false}) {
                const auto capture = opposed ? opposedCapture(seed) : someCapture(seed, 1);
                const HostTensor& keys = capture->tensors.at({LayerIndex(0), TensorRole::Keys});
                const HostTensor& queries = capture->tensors.at({LayerIndex(0), TensorRole::Queries});
                const auto rows = theoryTable(m_runner, requestOf(capture, "keydiff"), {}, {}).rows;
                for (int head = 0; head < kKvHeads; ++head) {
                    const Vector mean = meanRow(keys, head, 0, kCut);
                    const float* farthest = nullptr;
                    for (std::int64_t i = 0; i < kCut; ++i)
                        if (const float* key = keys.data.data() + (head * kTokens + i) * kDim;
                            !farthest || cosine(key, mean.data()) < cosine(farthest, mean.data()))
                            farthest = key;
                    double bound = INFINITY;
                    for (std::int64_t q = 2 * head; q < 2 * head + 2; ++q) {
                        const Vector query = meanRow(queries, q, 0, kTokens);
                        const double a = cosine(mean.data(), query.data()), b = cosine(farthest, query.data());
                        if (a < 0 && b > 0) bound = std::min(bound, 1 - (a - b) * (a - b) / 2);
                    }
                    const TheoryRow row = rowOf(rows, head, "KeyDiff Thm 3.2");
                    QVERIFY(std::abs(row.measured - cosine(farthest, mean.data())) < 1e-5);
                    QCOMPARE(row.kind == TheoryRow::Kind::Bound, std::isfinite(bound));
                    QVERIFY(!opposed || std::isfinite(bound));
                    (std::isfinite(bound) ? bounds : silent) += 1;
                    QCOMPARE(row.isSigned, true); // no ratio: the margin is 1 plus the difference
                    QVERIFY(!std::isfinite(bound) ||
                            std::abs(row.margin() - (1 + row.demanded - row.measured)) < 1e-12);
                    QCOMPARE(row.ifBroken.starts_with("an error of this program"), std::isfinite(bound));
                    if (std::isfinite(bound))
                        QVERIFY(std::abs(row.demanded - bound) < 1e-5 && row.measured <= row.demanded + 1e-6);
                }
            }
        QVERIFY(bounds >= 8 && silent > 0);
    }

    // Theorem 2, by leverage and singular values from plain loops over the keys and a sketch that is written down here.
    void compactorsRatioIsThatOfSketchedAndExactLeverage() {
        constexpr std::int64_t kColumns = 4;
        const auto capture = someCapture(5, 1);
        RunRequest request = requestOf(capture, "compactor,sketch_size=4");
        request.random = std::make_shared<const WrittenSketch>();
        const auto rows = theoryTable(m_runner, request, {}, {}).rows; // epsilon 0.5
        const HostTensor& keys = capture->tensors.at({LayerIndex(0), TensorRole::Keys});
        for (int head = 0; head < kKvHeads; ++head) {
            naive::LeverageCase plain{.rows = {1, kCut, kDim, {}}};
            const auto begin = keys.data.begin() + head * kTokens * kDim;
            plain.rows.numbers.assign(begin, begin + kCut * kDim);
            naive::LeverageCase sketched = plain;
            sketched.sketch = {1, kDim, kColumns, {}};
            for (const double x : WrittenSketch().sketch({.kvHead = std::uint32_t(head)}, kDim, kColumns))
                sketched.sketch.numbers.push_back(float(x / 2)); // sqrt(kColumns)
            const naive::Numbers exact = naive::leverage(plain), approximate = naive::leverage(sketched);
            double worst = 1;
            for (std::size_t i = 0; i < exact.size(); ++i)
                worst = std::max({worst, exact[i] / approximate[i], approximate[i] / exact[i]});
            const naive::Numbers singular = naive::singularValues(plain.rows, {});
            const double condition = singular.front() / singular.back();
            const TheoryRow row = rowOf(rows, head, "Compactor Thm 2", "sketched over exact leverage");
            QVERIFY2(std::abs(row.measured - worst) < 1e-4 * worst,
                     qPrintable(QString("%1, not %2").arg(row.measured).arg(worst)));
            QVERIFY(std::abs(row.demanded - 3 * condition * condition) < 1e-4 * row.demanded);
            QCOMPARE(row.caveat, std::string("the theorem speaks of wider sketches only"));
            QVERIFY(row.ifBroken.starts_with("nothing: the sketch has fewer columns"));
        }
    }

    // Leverage that is centred, of chunks, regularised or of some of the keys differs from the exact one without any
    // sketch, so the theorem says nothing about their ratio.
    void theRatioIsThatOfPlainLeverage() {
        const auto capture = someCapture(5, 1);
        const auto speaks = [&](const std::string& spec) {
            const auto rows = theoryTable(m_runner, requestOf(capture, spec), {}, {}).rows;
            return !rowOf(rows, 0, "Compactor Thm 2", "sketched over exact leverage").theorem.empty();
        };
        for (const char* policy : {"compactor", "leverage"}) QVERIFY(speaks(std::string(policy) + ",sketch_size=6"));
        for (const char* other : {"skip_first=40", "skip_last=3", "regulariser=ridge,regulariser_strength=1",
                                  "regulariser=clamp,regulariser_strength=1", "centred=true", "token_chunk=20"})
            QVERIFY2(!speaks(std::string("compactor,sketch_size=6,") + other), other);
        QVERIFY(!speaks("leverage,sketch_size=6,regulariser=ridge,regulariser_strength=1"));
    }

    // The draws are as many as the tokens kept, not as those asked for: pages are filled.
    void asManyRowsAreDrawnAsAreKept() {
        const auto capture = someCapture(5, 1);
        const RunRequest request = requestOf(capture, "compactor:compactor_vllm,page=16");
        const auto rows = theoryTable(m_runner, request, {}, {}).rows;
        std::size_t most = 0;
        for (int head = 0; head < kKvHeads; ++head) {
            const std::size_t kept = m_runner.run(request, {})->selection.heads[std::size_t(head)].kept.size();
            const TheoryRow row = rowOf(rows, head, "Compactor Thm 1", "distortion of drawn rows");
            most = std::max(most, kept);
            if (kept == 0) {
                QVERIFY(row.theorem.empty()); // nothing is drawn
                continue;
            }
            RunRequest draws = requestOf(capture, "leverage:sampling");
            draws.budget = Budget::parse(std::to_string(kept) + "t");
            draws.recordSteps = true;
            const auto log = std::dynamic_pointer_cast<const LeverageLog>(m_runner.run(draws, {})->log);
            QCOMPARE(row.measured, double{log->distortion[std::size_t(head)]});
        }
        QVERIFY(most > 15); // a quarter of 60
    }

    // A square Gaussian sketch has the same range as the keys: its leverage is the exact one, which tells nothing.
    void aSketchAsWideAsTheKeysIsExact() {
        const auto rows = theoryTable(m_runner, requestOf(someCapture(5, 1), "compactor,sketch_size=6"), {}, {}).rows;
        const TheoryRow row = rowOf(rows, 0, "Compactor Thm 2", "sketched over exact leverage");
        QVERIFY(std::abs(row.worst - 1) < 1e-4);
        QVERIFY2(row.caveat.starts_with("a sketch as wide as the keys is exact"), row.caveat.c_str());
    }

    // A zero query, or keys that are all zero, weighs all keys alike.
    void zeroVectorsSayNothing() {
        for (const TensorRole role : {TensorRole::Queries, TensorRole::Keys}) {
            auto capture = someCapture(4, 1);
            HostTensor& zero = capture->tensors.at({LayerIndex(0), role});
            std::fill(zero.data.begin(), zero.data.end(), 0.0F);
            const TheoryRow row = lemmaOf(theoryTable(m_runner, requestOf(capture, "keydiff"), {}, {}).rows, 0);
            QCOMPARE(row.theorem, std::string("KeyDiff Thm C.1"));
            QVERIFY(std::isnan(row.measured) || row.demanded > 179);
        }
    }

    // Equal keys: every weight is 1 / (j + 1), and ln(n/(n + 1)) - ln(1 - w) is 0 for all of them.
    void uniformAttentionSaysNothing() {
        auto capture = someCapture(4, 1);
        HostTensor& keys = capture->tensors.at({LayerIndex(0), TensorRole::Keys});
        std::fill(keys.data.begin(), keys.data.end(), 0.25F);
        const TheoryRow row = lemmaOf(theoryTable(m_runner, requestOf(capture, "keydiff"), {}, {}).rows, 0);
        QCOMPARE(row.theorem, std::string("KeyDiff Thm C.1"));
        QVERIFY(std::isnan(row.measured) || row.demanded > 179); // rounding of the float weight may leave a trace
    }
};

KVSCOPE_TEST(TheoryTableTest)
#include "theory_table_test.moc"
