// What the theorems demand and promise on the sample's heads, against plain loops over the capture.
#include "core/metrics/measure_values.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/subgen/subgen_log.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"
#include "tests/views/theory_fixture.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace kvscope;
using namespace kvscope::theory_fixture;
using namespace kvscope::view_fixture;

namespace {

TheoryRow find(const std::vector<TheoryRow>& rows, const std::string& theorem, const std::string& quantity) {
    for (const TheoryRow& row : rows)
        if (row.kvHead == kHead && row.theorem == theorem && row.quantity == quantity) return row;
    TheoryRow none;
    none.theorem = "missing";
    return none;
}

/// Row `row` of head `head` in double.
std::vector<double> vectorOf(const HostTensor& tensor, std::int64_t head, std::int64_t row) {
    const auto at = tensor.data.begin() + (head * tensor.shape[1] + row) * tensor.shape[2];
    return {at, at + tensor.shape[2]};
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

double longest(const HostTensor& tensor, std::int64_t head, std::int64_t begin, std::int64_t end) {
    double most = 0;
    for (std::int64_t row = begin; row < end; ++row)
        most = std::max(most, std::sqrt(dot(vectorOf(tensor, head, row), vectorOf(tensor, head, row))));
    return most;
}

struct Norms {
    double key, value, query, scaling;
    Norms() {
        const auto capture = needleCapture();
        const auto read = [&](TensorRole role) { return capture->read(LayerIndex(3), role, {}); };
        key = longest(read(TensorRole::Keys), kHead, 0, kCut);
        value = longest(read(TensorRole::Values), kHead, 0, kCut);
        const HostTensor queries = read(TensorRole::Queries);
        query = 0;
        for (std::int64_t q = 4; q < 8; ++q) // the query heads of KV head 1, after the cut
            query = std::max(query, longest(queries, q, kCut - (1028 - queries.shape[1]), queries.shape[1]));
        scaling = capture->info().layerInfo(LayerIndex(3)).scaling;
    }
};

} // namespace

class TheorySampleTest : public QObject {
    Q_OBJECT

private slots:
    void balanceAsksForItsBatchAtTheHeadsNorms() {
        const Norms norms;
        const double r = std::max(norms.key, norms.query);
        const TheoryRow t = find(rowsOf("balancekv_stream,batch=128@0.25"), "BalanceKV Thm 3.4", "batch t");
        QVERIFY(near(t.demanded, 8 * std::exp(2 * r * r * norms.scaling) / 0.5)); // sqrt(64) e^{2 r^2 / sqrt d} / eps
        QCOMPARE(t.set, 128.0);
        QVERIFY(t.hasMargin() && near(t.margin(), 128 / t.demanded));
        QVERIFY(!(t.margin() >= 1)); // B1: worst cases do not compress
        QVERIFY(t.caveat.starts_with("constants and logarithms are 1"));
    }

    // The theorems are about the streaming form: blocks are no batches of MergeAndReduce.
    void theBlockedFormHasNoTheorem() {
        const auto rows = rowsOf("balancekv,block=64,sink=0,recent=0@0.25");
        const TheoryRow t = find(rows, "BalanceKV Thm 3.4", "batch t");
        QVERIFY(std::isnan(t.set) && t.kind == TheoryRow::Kind::Describes);
        QVERIFY(t.caveat.starts_with("about MergeAndReduce, not the blocks of this form"));
        QVERIFY(find(rows, "BalanceKV Thm 3.3", "discrepancy at a query").theorem == "missing");
        const TheoryRow error = find(rows, "BalanceKV (2)", "error, Frobenius");
        QVERIFY(error.hasMargin() && error.ifBroken.find("about the streaming form") != std::string::npos);
    }

    // 256 sinks take the whole budget of 249 tokens.
    void aRunThatBalancedNothingSaysSo() {
        int bounds = 0;
        for (const TheoryRow& row : rowsOf("balancekv@0.25")) {
            QCOMPARE(row.caveat, std::string("nothing was balanced: sinks and recent tokens fill the budget"));
            bounds += row.kind == TheoryRow::Kind::Bound || row.hasMargin();
        }
        QCOMPARE(bounds, 0);
        for (const TheoryRow& row : rowsOf("balancekv_stream,batch=1024@0.25"))
            QCOMPARE(row.caveat, std::string("nothing was balanced: no tree has a whole batch"));
    }

    // Theorem 3.3 for the evaluation queries, by plain loops over every walk: the signed sum against its bound.
    void discrepanciesAreThoseOfTheSignsAtEveryQuery() {
        const auto capture = needleCapture();
        const auto read = [&](TensorRole role) { return capture->read(LayerIndex(3), role, {}); };
        const HostTensor keys = read(TensorRole::Keys), values = read(TensorRole::Values),
                         queries = read(TensorRole::Queries);
        const double scaling = Norms().scaling;
        for (const std::string text : {"balancekv_stream,batch=64@0.25", "balancekv_stream:greedy,batch=64@0.25"}) {
            const auto result = runner().run(requestOf(text), {});
            const auto& log = dynamic_cast<const BalanceLog&>(*result->log);
            double least = 1e300, measured = 0, bound = 0;
            std::int64_t count = 0, beyond = 0, size = 0;
            for (const BalanceWalkLog& walk : log.walks) {
                if (walk.kvHead != kHead) continue;
                double key = 0, value = 1;
                if (walk.tree == 1) value = 0;
                for (const TokenIndex token : walk.tokens) {
                    key = std::max(key, longest(keys, kHead, token, token + 1));
                    if (walk.tree == 1) value = std::max(value, longest(values, kHead, token, token + 1));
                }
                const std::size_t s = walk.tree == 1 ? 64 : 1;
                const double most = std::sqrt(double(s)) * 30 * std::log(double(walk.tokens.size() * s) / 0.01);
                double worst = 0;
                for (std::int64_t head = 4; head < 8; ++head) // the query heads of KV head 1
                    for (std::int64_t row = queries.shape[1] - 33; row < queries.shape[1]; ++row) {
                        const std::vector<double> q = vectorOf(queries, head, row);
                        std::vector<double> sum(s);
                        for (std::size_t i = 0; i < walk.tokens.size(); ++i) {
                            const double e = std::exp(scaling * dot(vectorOf(keys, kHead, walk.tokens[i]), q));
                            const std::vector<double> v = vectorOf(values, kHead, walk.tokens[i]);
                            for (std::size_t c = 0; c < s; ++c) sum[c] += walk.signs[i] * e * (walk.tree ? v[c] : 1);
                        }
                        const double units = std::exp(scaling * (dot(q, q) + key * key) / 2) * value;
                        const double got = std::sqrt(dot(sum, sum)) / units;
                        worst = std::max(worst, got);
                        beyond += got > most;
                        ++count;
                        QVERIFY(got <= double(walk.tokens.size()) * (1 + 1e-9));
                    }
                if (most / worst >= least) continue;
                least = most / worst;
                measured = worst;
                bound = most;
                size = std::ssize(walk.tokens);
            }
            const TheoryRow row = find(rowsOf(text), "BalanceKV Thm 3.3", "discrepancy at a query");
            QVERIFY2(measured > 0 && near(row.worst, measured, 1e-4) && near(row.demanded, bound),
                     qPrintable(QString("%1: %2 of %3, not %4 of %5")
                                    .arg(QString::fromStdString(text))
                                    .arg(row.worst)
                                    .arg(row.demanded)
                                    .arg(measured)
                                    .arg(bound)));
            QVERIFY(row.measured > 0 && row.measured <= row.worst && near(row.margin(), least, 1e-4));
            QVERIFY(row.count == count && near(row.beyond, double(beyond) / double(count)) && row.mayFail == 0.01);
            QCOMPARE(row.caveat.starts_with("vacuous"), bound >= double(size));
        }
    }

    void subgenAsksForItsSlotsAtTheRadiusOfTheRun() {
        const std::string spec = "subgen,delta_quantile=0.2,cluster_slots=7,value_slots=99@0.25";
        const Norms norms;
        const auto result = runner().run(requestOf(spec), {});
        const double delta = dynamic_cast<const SubgenLog&>(*result->log).heads[kHead].delta;
        const auto rows = rowsOf(spec, {0.25, 0.05});
        const TheoryRow t = find(rows, "SubGen Thm 1", "slots t"), s = find(rows, "SubGen Thm 1", "reservoir s");
        QVERIFY(near(t.demanded, std::exp(2 * delta * norms.query * norms.scaling) * std::log(995.0) / 0.0625));
        QCOMPARE(t.set, 7.0);
        QVERIFY(near(s.demanded, 64 / 0.0625) && s.set == 99);
        // The error is the mean over the evaluation queries of the four query heads, its worst the largest of them.
        const std::vector<std::string> ids = {"eps_op"};
        const auto measured = runner().measure(*result, ids, {});
        double sum = 0, worst = 0, beyond = 0;
        for (std::int64_t q = 4; q < 8; ++q)
            for (std::int64_t j = 0; j < 33; ++j) {
                const double e = double(measured[0].perQuery.data[std::size_t(q * 33 + j)]);
                sum += e / (4 * 33);
                worst = std::max(worst, e);
                beyond += e > 0.25 ? 1.0 / (4 * 33) : 0;
            }
        const TheoryRow error = find(rows, "SubGen (3)", "error, operator norm");
        QVERIFY(near(error.measured, sum) && near(error.worst, worst) && error.demanded == 0.25);
        QVERIFY(near(error.margin(), 0.25 / worst)); // the theorem is about every query
        QVERIFY(beyond > 0 && near(error.beyond, beyond) && error.count == 4 * 33 && error.mayFail == 0.01);
        QVERIFY(error.paper().find("SubGen: Token Generation") != std::string::npos);
    }

    void compactorsDemandsAndDistortion() {
        const auto rows = rowsOf("compactor,sketch_size=16@0.25");
        const auto drawn =
            std::dynamic_pointer_cast<const LeverageLog>(runner().run(requestOf("leverage:sampling@0.25"), {})->log);
        QVERIFY(near(find(rows, "Compactor Thm 1", "distortion of drawn rows").measured, drawn->distortion[1]));
        const TheoryRow k = find(rows, "Compactor Thm 2", "sketch k");
        QVERIFY(k.set == 16 && near(k.demanded, 48 * (64 * std::log(84.0) + std::log(200.0))));
        QCOMPARE(find(rows, "Compactor Thm 1", "sampled rows k").set, 249.0);
        const double draws = find(rowsOf("leverage:sampling@0.25"), "Compactor Thm 1", "sampled rows k").set;
        QCOMPARE(draws, static_cast<double>(drawn->draws[1].size())); // repeated rows count, unlike tokens kept
        QVERIFY(std::isnan(
            find(rowsOf("compactor,sketch=none@0.25"), "Compactor Thm 2", "sketch k").set)); // nothing is sketched
    }

    void policiesWithoutTheoremsAreRefused() {
        const auto refused = [](const std::string& spec, TheoryAsked asked) {
            return errorText([&] { rowsOf(spec, asked); });
        };
        QVERIFY(refused("snapkv@0.25", {}).contains("no theorem of the papers speaks about SnapKV (policy snapkv)"));
        RunRequest list = requestOf("keydiff@0.25");
        list.policy = {};
        list.recorded = std::make_shared<RecordedSelection>();
        QVERIFY(errorText([&] { theoryTable(runner(), list, {}, {}); }).contains("speaks about a recorded list"));
        QVERIFY(refused("keydiff@0.25", {0, 0.01}).contains("epsilon must be above 0"));
        QVERIFY(refused("keydiff@0.25", {0.5, 1}).contains("delta between 0 and 1"));
    }
};

KVSCOPE_OFFSCREEN_TEST(TheorySampleTest)
#include "theory_sample_test.moc"
