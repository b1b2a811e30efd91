// What the theorems demand and promise on the sample's heads, against plain loops over the capture.
#include "core/metrics/measure_values.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/subgen/subgen_log.h"
#include "core/studies/theory_table.h"
#include "tests/support/test_program.h"
#include "tests/views/view_fixture.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

constexpr int kHead = 1, kCut = 995;

RunRequest requestOf(const std::string& spec) {
    RunRequest request = needleRequest(spec);
    request.recordSteps = true;
    return request;
}

std::vector<TheoryRow> rowsOf(const std::string& spec, TheoryAsked asked = {}) {
    return theoryRows(runner(), requestOf(spec), asked, {});
}

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

bool near(double got, double expected, double tolerance = 1e-5) {
    return std::abs(got - expected) <= tolerance * std::abs(expected);
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

double longestKey(const HostTensor& keys) {
    double most = 0; // of all heads: the policy's automatic radius
    for (std::int64_t head = 0; head < keys.shape[0]; ++head) most = std::max(most, longest(keys, head, 0, kCut));
    return most;
}

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
        QCOMPARE(find(rowsOf("balancekv,block=64@0.25"), "BalanceKV Thm 3.4", "batch t").set, 64.0);
        QVERIFY(find(rowsOf("balancekv@0.25"), "BalanceKV Thm 3.3", "discrepancy, worst node").theorem == "missing");
    }

    // The worst node by its own kernel: sqrt(sum_ij eta_i eta_j M_ij) / R over sqrt(s) 30 ln(m s / delta).
    void discrepanciesAreThoseOfTheSigns() {
        for (const std::string text : {"balancekv_stream,batch=64@0.25", "balancekv_stream:greedy,batch=64@0.25"}) {
            const RunRequest request = requestOf(text);
            const auto result = runner().run(request, {});
            const auto& log = dynamic_cast<const BalanceLog&>(*result->log);
            const HostTensor keys = needleCapture()->read(LayerIndex(3), TensorRole::Keys, {}),
                             values = needleCapture()->read(LayerIndex(3), TensorRole::Values, {});
            const Norms norms;
            double worst = 0;
            for (const BalanceWalkLog& walk : log.walks) {
                if (walk.kvHead != kHead || walk.tokens.empty()) continue;
                const bool gain = request.policy.values.choice("steps") == "gain";
                const double radius = gain ? norms.key : longestKey(keys), unit = radius * radius * norms.scaling;
                double q = 0;
                for (std::size_t i = 0; i < walk.tokens.size(); ++i)
                    for (std::size_t j = 0; j < walk.tokens.size(); ++j) {
                        const double kernel = std::exp(norms.scaling * dot(vectorOf(keys, kHead, walk.tokens[i]),
                                                                           vectorOf(keys, kHead, walk.tokens[j])) -
                                                       unit);
                        const double product = walk.tree == 1 ? dot(vectorOf(values, kHead, walk.tokens[i]),
                                                                    vectorOf(values, kHead, walk.tokens[j]))
                                                              : 1;
                        q += walk.signs[i] * walk.signs[j] * kernel * product;
                    }
                const double s = walk.tree == 1 ? 64 : 1;
                const double value =
                    walk.tree == 1 ? (gain ? norms.value : std::ldexp(1.0, static_cast<int>(walk.bucket))) : 1;
                const double bound = std::sqrt(s) * 30 * std::log(double(walk.tokens.size()) * s / 0.01);
                worst = std::max(worst, std::sqrt(std::max(0.0, q)) / value / bound);
            }
            const TheoryRow row = find(rowsOf(text), "BalanceKV Thm 3.3", "discrepancy, worst node");
            QVERIFY2(worst > 0 && near(row.measured / row.demanded, worst, 1e-3),
                     qPrintable(QString("%1: %2 against %3")
                                    .arg(QString::fromStdString(text))
                                    .arg(row.measured / row.demanded)
                                    .arg(worst)));
            QVERIFY(row.margin() > 1); // the theorem's constant is loose
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
        double sum = 0, worst = 0;
        for (std::int64_t q = 4; q < 8; ++q)
            for (std::int64_t j = 0; j < 33; ++j) {
                const double e = double(measured[0].perQuery.data[std::size_t(q * 33 + j)]);
                sum += e / (4 * 33);
                worst = std::max(worst, e);
            }
        const TheoryRow error = find(rows, "SubGen (3)", "error, operator norm");
        QVERIFY(near(error.measured, sum) && near(error.worst, worst) && error.demanded == 0.25);
        QVERIFY(near(error.margin(), 0.25 / sum));
    }

    void compactorsDemandsAndDistortion() {
        const auto rows = rowsOf("compactor,sketch_size=16@0.25");
        const auto drawn =
            std::dynamic_pointer_cast<const LeverageLog>(runner().run(requestOf("leverage:sampling@0.25"), {})->log);
        QVERIFY(near(find(rows, "Compactor Thm 1", "distortion of drawn rows").measured, drawn->distortion[1]));
        const TheoryRow k = find(rows, "Compactor Thm 2", "sketch k");
        QVERIFY(k.set == 16 && near(k.demanded, 48 * (64 * std::log(84.0) + std::log(200.0))));
        QCOMPARE(find(rows, "Compactor Thm 1", "sampled rows k").set, 249.0);
        QVERIFY(std::isnan(
            find(rowsOf("compactor,sketch=none@0.25"), "Compactor Thm 2", "sketch k").set)); // nothing is sketched
    }

    void policiesWithoutTheoremsAreRefused() {
        const auto refused = [](const std::string& spec, TheoryAsked asked, const char* words) {
            try {
                rowsOf(spec, asked);
            } catch (const std::exception& error) {
                return QString(error.what()).contains(words);
            }
            return false;
        };
        QVERIFY(refused("snapkv@0.25", {}, "no theorem of the papers speaks about policy snapkv"));
        QVERIFY(refused("keydiff@0.25", {0, 0.01}, "epsilon must be above 0"));
        QVERIFY(refused("keydiff@0.25", {0.5, 1}, "delta between 0 and 1"));
    }
};

KVSCOPE_OFFSCREEN_TEST(TheorySampleTest)
#include "theory_sample_test.moc"
