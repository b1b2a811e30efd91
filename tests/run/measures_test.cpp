// Measures of the attention against double loops from their formulas, the inequalities between them, and every card.
// Those of keys and of what is kept are in measures_of_keys_test.cpp.
#include "core/base/error.h"
#include "core/metrics/measures.h"
#include "core/metrics/statistics.h"
#include "tests/run/measures_rig.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <map>
#include <set>

using namespace kvscope;
using namespace kvscope::measures_rig;

namespace {

struct Truth { ///< of one query
    std::vector<double> a, z;
    double pNorm = 0, mass = 0, numeratorError = 0, denominatorError = 0, frobenius = 0, sink = 0, entropy = 0;
};

Truth truthOf(const Rig& rig, int head, int query) {
    Truth t;
    std::vector<double> e = rig.weights(head, query), left = e;
    for (int i = 0; i < kTokens; ++i)
        left[std::size_t(i)] *= rig.isKept(rig.kvOf(head), i);
    double all = 0, some = 0, squares = 0;
    for (int i = 0; i < kTokens; ++i) {
        all += e[std::size_t(i)];
        some += left[std::size_t(i)];
        squares += e[std::size_t(i)] * e[std::size_t(i)];
        t.sink += i < 4 ? e[std::size_t(i)] : 0;
        for (int c = 0; c < kDim && i <= kCut + query; ++c)
            t.frobenius += std::pow(rig.layer.row(rig.layer.values, rig.kvOf(head), i)[c], 2);
    }
    t.frobenius = std::sqrt(t.frobenius);
    t.a = rig.sum(head, e);
    t.z = rig.sum(head, left);
    t.numeratorError = naive::distance(t.z, t.a) / (std::sqrt(squares) * t.frobenius);
    for (int c = 0; c < kDim; ++c) {
        t.a[std::size_t(c)] /= all;
        t.z[std::size_t(c)] /= some;
    }
    t.pNorm = std::sqrt(squares) / all;
    t.mass = some / all;
    t.denominatorError = std::abs(some - all) / all;
    t.sink /= all;
    for (const double x : e)
        t.entropy -= x > 0 ? x / all * std::log(x / all) : 0;
    return t;
}

double operatorNorm(const Rig& rig, int kvHead, int rows) {
    naive::Block block{1, rows, kDim, {}};
    const float* first = rig.layer.row(rig.layer.values, kvHead, 0);
    block.numbers.assign(first, first + rows * kDim);
    return naive::singularValues(block, {}).front();
}

std::vector<double> afterProjection(const Rig& rig, int head, const std::vector<double>& x) {
    std::vector<double> out(kHidden);
    for (int row = 0; row < kHidden; ++row)
        for (int c = 0; c < kDim; ++c)
            out[std::size_t(row)] +=
                double{rig.projection.data[std::size_t((row * kHeads + head) * kDim + c)]} * x[std::size_t(c)];
    return out;
}

std::vector<double> minus(std::vector<double> x, const std::vector<double>& y) {
    for (std::size_t i = 0; i < x.size(); ++i)
        x[i] -= y[i];
    return x;
}

} // namespace

class MeasuresTest : public QObject {
    Q_OBJECT

private:
    void expectPerQuery(const Rig& rig, const std::string& id,
                        const std::function<double(const Truth&, int, int)>& formula) {
        const MeasureValues values = rig.get(id);
        QCOMPARE(values.perQuery.shape, (Shape{kHeads, kJudges}));
        for (int h = 0; h < kHeads; ++h) {
            double mean = 0;
            for (int j = 0; j < kJudges; ++j) {
                const double expected = formula(truthOf(rig, h, j), h, j);
                const double got = values.perQuery.data[std::size_t(h * kJudges + j)];
                QVERIFY2(near(got, expected), qPrintable(QString("%1 head %2 query %3: %4, not %5")
                                                             .arg(id.c_str())
                                                             .arg(h)
                                                             .arg(j)
                                                             .arg(got)
                                                             .arg(expected)));
                mean += expected / kJudges;
            }
            QVERIFY(near(values.perHead[std::size_t(h)], mean));
        }
    }

private slots:
    void perQueryByFormula() {
        const Rig rig;
        expectPerQuery(rig, "output_error",
                       [](const Truth& t, int, int) { return naive::distance(t.z, t.a) / naive::norm(t.a); });
        expectPerQuery(rig, "retained_mass", [](const Truth& t, int, int) { return t.mass; });
        expectPerQuery(rig, "eps_f",
                       [](const Truth& t, int, int) { return naive::distance(t.z, t.a) / (t.pNorm * t.frobenius); });
        expectPerQuery(rig, "eps_op", [&](const Truth& t, int h, int j) {
            return naive::distance(t.z, t.a) / (t.pNorm * operatorNorm(rig, rig.kvOf(h), kCut + j + 1));
        });
        expectPerQuery(rig, "numerator_error", [](const Truth& t, int, int) { return t.numeratorError; });
        expectPerQuery(rig, "denominator_error", [](const Truth& t, int, int) { return t.denominatorError; });
        expectPerQuery(rig, "attention_norm", [](const Truth& t, int, int) { return t.pNorm; });
        expectPerQuery(rig, "sink_mass", [](const Truth& t, int, int) { return t.sink; });
        expectPerQuery(rig, "output_error_wo", [&](const Truth& t, int h, int) {
            return naive::norm(afterProjection(rig, h, minus(t.z, t.a))) / naive::norm(afterProjection(rig, h, t.a));
        });
    }

    // With a softcap the logit is no linear function of the key; a window hides the early tokens.
    void entropyFollowsTheRuleOfTheLayer() {
        for (const auto& [softcap, window] : {std::pair(0.0, 0), std::pair(1.5, 0), std::pair(0.0, 20), std::pair(1.5, 20)}) {
            Rig rig;
            LayerInfo& info = rig.capture->captureInfo.layers.front();
            rig.layer.rule.softcap = info.softcap = softcap;
            rig.layer.rule.slidingWindow = info.slidingWindow = window;
            rig.run("keydiff@0.3");
            expectPerQuery(rig, "entropy", [](const Truth& t, int, int) { return t.entropy; });
            expectPerQuery(rig, "effective_tokens", [](const Truth& t, int, int) { return std::exp(t.entropy); });
            const auto norms = rig.get("attention_norm").perQuery.data, tokens = rig.get("effective_tokens").perQuery.data;
            for (std::size_t i = 0; i < norms.size(); ++i) // Rényi: of order 2 not above order 1, and that not above all
                QVERIFY(1 / (norms[i] * norms[i]) <= tokens[i] * (1 + 1e-5) && tokens[i] <= float(window ? window : kTokens) * (1 + 1e-5));
        }
    }

    // 1/sqrt j <= ||p_j|| <= 1 and eps_F <= eps_op <= sqrt(rank V) eps_F.
    void inequalities() {
        const Rig rig("uniform@0.2");
        const auto norms = rig.get("attention_norm").perQuery.data, f = rig.get("eps_f").perQuery.data,
                   op = rig.get("eps_op").perQuery.data;
        for (int h = 0; h < kHeads; ++h)
            for (int j = 0; j < kJudges; ++j) {
                const auto at = std::size_t(h * kJudges + j);
                QVERIFY(norms[at] >= 1 / std::sqrt(kCut + j + 1.0) - 1e-6 && norms[at] <= 1 + 1e-6);
                QVERIFY(f[at] <= op[at] * (1 + 1e-6) && op[at] <= std::sqrt(double{kDim}) * f[at] * (1 + 1e-6));
            }
    }

    void layerErrorAddsTheHeadsFirst() {
        const Rig rig;
        const MeasureValues values = rig.get("layer_error_wo");
        QCOMPARE(values.perQuery.shape, (Shape{1, kJudges}));
        for (int j = 0; j < kJudges; ++j) {
            std::vector<double> error(kHidden), exact(kHidden);
            for (int h = 0; h < kHeads; ++h) {
                const Truth t = truthOf(rig, h, j);
                error = minus(error, afterProjection(rig, h, minus(t.a, t.z)));
                exact = minus(exact, afterProjection(rig, h, t.a));
            }
            QVERIFY(near(values.perQuery.data[std::size_t(j)], naive::norm(error) / naive::norm(exact)));
        }
    }

    void aggregateErrorIsARatioOfNorms() {
        const Rig rig;
        const MeasureValues values = rig.get("output_error_frobenius");
        for (int h = 0; h < kHeads; ++h) {
            double errors = 0, norms = 0;
            for (int j = 0; j < kJudges; ++j) {
                const Truth t = truthOf(rig, h, j);
                errors += std::pow(naive::distance(t.z, t.a), 2);
                norms += std::pow(naive::norm(t.a), 2);
            }
            QVERIFY(near(values.perHead[std::size_t(h)], std::sqrt(errors / norms)));
        }
    }

    void lossAndCorrelationLookAtLaterAttention() {
        const Rig rig;
        const MeasureValues loss = rig.get("largest_loss"), rho = rig.get("score_correlation");
        for (int h = 0; h < kHeads; ++h) {
            std::vector<double> mass(kTokens), score(kCut);
            for (int j = 0; j < kJudges; ++j) {
                const std::vector<double> e = rig.weights(h, j);
                double all = 0;
                for (double x : e)
                    all += x;
                for (int i = 0; i < kTokens; ++i)
                    mass[std::size_t(i)] += e[std::size_t(i)] / all / kJudges;
            }
            double largest = 0;
            for (int i = 0; i < kCut; ++i) {
                largest = rig.isKept(rig.kvOf(h), i) ? largest : std::max(largest, mass[std::size_t(i)]);
                score[std::size_t(i)] = rig.result->scores.data[std::size_t(rig.kvOf(h) * kCut + i)];
            }
            QVERIFY(near(loss.perHead[std::size_t(h)], largest));
            mass.resize(kCut);
            QVERIFY(std::abs(rho.perHead[std::size_t(h)] - spearman(score, mass)) < 1e-3); // neighbours may swap
        }
    }

    // What describes the layer is the same for every selection, and says so on its card.
    void measuresOfTheLayerDoNotDependOnWhatIsKept() {
        Rig rig("keydiff@0.3");
        rig.capture->tensors[{LayerIndex(0), TensorRole::KeysPreRope}] = randomKeys();
        rig.capture->captureInfo.layers.front().hasKeysPreRope = true;
        std::map<std::string, std::vector<double>> before;
        for (const MeasureCard& card : allMeasures())
            if (card.need != MeasureNeed::Scores)
                before[card.id] = rig.get(card.id).perHead;
        rig.run("uniform@0.8");
        for (const auto& [id, values] : before) {
            const bool same = rig.get(id).perHead == values;
            // Eight singular values count however many keys are kept.
            QVERIFY2(same == (measureById(id).subject == MeasureSubject::Layer || id == "log_det_count"), id.c_str());
        }
    }

    void keepingAllMeasuresNothingLost() {
        const Rig rig("exact@1");
        for (const char* id : {"output_error", "eps_f", "eps_op", "numerator_error", "denominator_error",
                               "largest_loss", "layer_error_wo"})
            for (const double value : rig.get(id).perHead)
                QVERIFY2(std::abs(value) < 1e-6, id);
    }

    void everyCardIsComplete() {
        std::set<std::string> ids;
        for (const MeasureCard& card : allMeasures())
            QVERIFY2(ids.insert(card.id).second && !card.label.empty() && card.help.size() > 10, card.id.c_str());
        QCOMPARE(measureById("eps_f").id, std::string("eps_f"));
    }

    void whatCannotBeMeasuredIsRefused() {
        Rig rig("exact@1"); // has no scores
        QVERIFY_EXCEPTION_THROWN(rig.get("score_correlation"), Error);
        QVERIFY_EXCEPTION_THROWN(rig.get("output_eror"), Error);
        rig.capture->captureInfo.layers.front().hasOutputProjection = false;
        QVERIFY_EXCEPTION_THROWN(rig.get("layer_error_wo"), Error);
    }
};

KVSCOPE_TEST(MeasuresTest)
#include "measures_test.moc"
