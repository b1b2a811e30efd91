// Measures of the attention against double loops from their formulas, the inequalities between them, and every card.
// Those of keys and of what is kept are in measures_of_keys_test.cpp.
#include "core/base/error.h"
#include "core/metrics/measures.h"
#include "core/metrics/statistics.h"
#include "core/policies/policy_input.h"
#include "tests/run/measures_fixture.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <set>

using namespace kvscope;
using namespace kvscope::measures_fixture;

namespace {

struct Truth { ///< of one query
    std::vector<double> a, z;
    double pNorm = 0, mass = 0, numeratorError = 0, denominatorError = 0, frobenius = 0, sink = 0, entropy = 0;
};

Truth truthOf(const Fixture& fixture, int head, int query) {
    Truth t;
    std::vector<double> e = fixture.weights(head, query), left = e;
    for (int i = 0; i < kTokens; ++i) left[std::size_t(i)] *= fixture.isKept(fixture.kvOf(head), i);
    const double sink = std::exp(fixture.layer.rule.sinkOf(head)); // a token of value 0 that nothing evicts
    double all = sink, some = sink, squares = 0;
    for (int i = 0; i < kTokens; ++i) {
        all += e[std::size_t(i)];
        some += left[std::size_t(i)];
        squares += e[std::size_t(i)] * e[std::size_t(i)];
        t.sink += i < 4 ? e[std::size_t(i)] : 0;
        for (int c = 0; c < kDim && i <= kCut + query; ++c)
            t.frobenius += std::pow(fixture.layer.row(fixture.layer.values, fixture.kvOf(head), i)[c], 2);
    }
    t.frobenius = std::sqrt(t.frobenius);
    t.a = fixture.sum(head, e);
    t.z = fixture.sum(head, left);
    t.numeratorError = naive::distance(t.z, t.a) / (std::sqrt(squares) * t.frobenius);
    for (int c = 0; c < kDim; ++c) {
        t.a[std::size_t(c)] /= all;
        t.z[std::size_t(c)] /= some;
    }
    t.pNorm = std::sqrt(squares) / all;
    t.mass = some / all;
    t.denominatorError = std::abs(some - all) / all;
    t.sink /= all;
    e.push_back(sink);
    for (const double x : e) t.entropy -= x > 0 ? x / all * std::log(x / all) : 0;
    return t;
}

double operatorNorm(const Fixture& fixture, int kvHead, int rows) {
    naive::Block block{1, rows, kDim, {}};
    const float* first = fixture.layer.row(fixture.layer.values, kvHead, 0);
    block.numbers.assign(first, first + rows * kDim);
    return naive::singularValues(block, {}).front();
}

std::vector<double> afterProjection(const Fixture& fixture, int head, const std::vector<double>& x) {
    std::vector<double> out(kHidden);
    for (int row = 0; row < kHidden; ++row)
        for (int c = 0; c < kDim; ++c)
            out[std::size_t(row)] +=
                double{fixture.projection.data[std::size_t((row * kHeads + head) * kDim + c)]} * x[std::size_t(c)];
    return out;
}

std::vector<double> minus(std::vector<double> x, const std::vector<double>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= y[i];
    return x;
}

} // namespace

class MeasuresTest : public QObject {
    Q_OBJECT

private:
    void expectPerQuery(const Fixture& fixture, const std::string& id,
                        const std::function<double(const Truth&, int, int)>& formula) {
        const MeasureValues values = fixture.get(id);
        QCOMPARE(values.perQuery.shape, (Shape{kHeads, kEvaluationQueries}));
        for (int h = 0; h < kHeads; ++h) {
            double mean = 0;
            for (int j = 0; j < kEvaluationQueries; ++j) {
                const double expected = formula(truthOf(fixture, h, j), h, j);
                const double got = values.perQuery.data[std::size_t(h * kEvaluationQueries + j)];
                QVERIFY2(near(got, expected), qPrintable(QString("%1 head %2 query %3: %4, not %5")
                                                             .arg(id.c_str())
                                                             .arg(h)
                                                             .arg(j)
                                                             .arg(got)
                                                             .arg(expected)));
                mean += expected / kEvaluationQueries;
            }
            QVERIFY(near(values.perHead[std::size_t(h)], mean));
        }
    }

private slots:
    void perQueryByFormula() {
        perQueryByFormula(Fixture());
        Fixture fixture;
        fixture.layer.rule.sinks = fixture.capture->captureInfo.layers.front().sinks = {1.5F, -3, 4, 0};
        fixture.run("keydiff@0.3");
        perQueryByFormula(fixture);
        expectPerQuery(fixture, "entropy", [](const Truth& t, int, int) { return t.entropy; });
    }

private:
    void perQueryByFormula(const Fixture& fixture) {
        expectPerQuery(fixture, "output_error",
                       [](const Truth& t, int, int) { return naive::distance(t.z, t.a) / naive::norm(t.a); });
        expectPerQuery(fixture, "retained_mass", [](const Truth& t, int, int) { return t.mass; });
        expectPerQuery(fixture, "eps_f",
                       [](const Truth& t, int, int) { return naive::distance(t.z, t.a) / (t.pNorm * t.frobenius); });
        expectPerQuery(fixture, "eps_op", [&](const Truth& t, int h, int j) {
            return naive::distance(t.z, t.a) / (t.pNorm * operatorNorm(fixture, fixture.kvOf(h), kCut + j + 1));
        });
        expectPerQuery(fixture, "numerator_error", [](const Truth& t, int, int) { return t.numeratorError; });
        expectPerQuery(fixture, "denominator_error", [](const Truth& t, int, int) { return t.denominatorError; });
        expectPerQuery(fixture, "attention_norm", [](const Truth& t, int, int) { return t.pNorm; });
        expectPerQuery(fixture, "sink_mass", [](const Truth& t, int, int) { return t.sink; });
        expectPerQuery(fixture, "output_error_wo", [&](const Truth& t, int h, int) {
            return naive::norm(afterProjection(fixture, h, minus(t.z, t.a))) /
                   naive::norm(afterProjection(fixture, h, t.a));
        });
    }

private slots:
    // With a softcap the logit is no linear function of the key; a window hides the early tokens.
    void entropyFollowsTheRuleOfTheLayer() {
        for (const auto& [softcap, window] :
             {std::pair(0.0, 0), std::pair(1.5, 0), std::pair(0.0, 20), std::pair(1.5, 20)}) {
            Fixture fixture;
            LayerInfo& info = fixture.capture->captureInfo.layers.front();
            fixture.layer.rule.softcap = info.softcap = softcap;
            fixture.layer.rule.slidingWindow = info.slidingWindow = window;
            fixture.run("keydiff@0.3");
            expectPerQuery(fixture, "entropy", [](const Truth& t, int, int) { return t.entropy; });
            expectPerQuery(fixture, "effective_tokens", [](const Truth& t, int, int) { return std::exp(t.entropy); });
            const auto norms = fixture.get("attention_norm").perQuery.data,
                       tokens = fixture.get("effective_tokens").perQuery.data;
            for (std::size_t i = 0; i < norms.size();
                 ++i) // Rényi: of order 2 not above order 1, and that not above all
                QVERIFY(1 / (norms[i] * norms[i]) <= tokens[i] * (1 + 1e-5) &&
                        tokens[i] <= float(window ? window : kTokens) * (1 + 1e-5));
        }
    }

    // The float log-sum-exp of logits near 10,000 is off by half a thousandth, so the weights do not add up to 1.
    void entropyHoldsAtLargeLogits() {
        Fixture fixture;
        HostTensor& keys = fixture.capture->tensors[{LayerIndex(0), TensorRole::Keys}];
        for (float& x : keys.data) x *= 3000;
        fixture.layer.keys = keys;
        fixture.run("keydiff@0.3");
        const auto entropies = fixture.get("entropy").perQuery.data,
                   tokens = fixture.get("effective_tokens").perQuery.data;
        for (int h = 0; h < kHeads; ++h)
            for (int j = 0; j < kEvaluationQueries; ++j) {
                std::vector<double> logits;
                for (int i = 0; i <= kCut + j; ++i) logits.push_back(fixture.layer.logit(h, j, i));
                const double top = std::ranges::max(logits);
                double all = 0, expected = 0;
                for (const double logit : logits) all += std::exp(logit - top);
                for (const double logit : logits)
                    if (const double p = std::exp(logit - top) / all; p > 0) expected -= p * std::log(p);
                const auto at = std::size_t(h * kEvaluationQueries + j);
                QVERIFY2(near(entropies[at], expected),
                         qPrintable(QString("%1, not %2").arg(double{entropies[at]}).arg(expected)));
                QVERIFY(entropies[at] >= 0 && tokens[at] >= 1);
            }
    }

    // With cut none the first query is token 0, which sees one of the four sinks; later queries see all of them.
    void everyQueryCountsTheSinksThatItSees() {
        Fixture fixture;
        fixture.layer.firstQuery = 0;
        fixture.layer.queries = fixture.capture->read(LayerIndex(0), TensorRole::Queries, {});
        fixture.run("keydiff@0.3", "none");
        const HostTensor mass = fixture.get("sink_mass").perQuery;
        QCOMPARE(mass.shape, (Shape{kHeads, kTokens}));
        for (int h = 0; h < kHeads; ++h)
            for (int j = 0; j < kTokens; ++j) {
                double sinks = 0, all = 0;
                for (int i = 0; i <= j; ++i) {
                    all += std::exp(fixture.layer.logit(h, j, i));
                    sinks += i < 4 ? std::exp(fixture.layer.logit(h, j, i)) : 0;
                }
                const double got = mass.data[std::size_t(h * kTokens + j)];
                QVERIFY2(near(got, sinks / all),
                         qPrintable(QString("query %1: %2, not %3").arg(j).arg(got).arg(sinks / all)));
            }
    }

    // 1/sqrt j <= ||p_j|| <= 1 and eps_F <= eps_op <= sqrt(rank V) eps_F.
    void inequalities() {
        const Fixture fixture("uniform@0.2");
        const auto norms = fixture.get("attention_norm").perQuery.data, f = fixture.get("eps_f").perQuery.data,
                   op = fixture.get("eps_op").perQuery.data;
        for (int h = 0; h < kHeads; ++h)
            for (int j = 0; j < kEvaluationQueries; ++j) {
                const auto at = std::size_t(h * kEvaluationQueries + j);
                QVERIFY(norms[at] >= 1 / std::sqrt(kCut + j + 1.0) - 1e-6 && norms[at] <= 1 + 1e-6);
                QVERIFY(f[at] <= op[at] * (1 + 1e-6) && op[at] <= std::sqrt(double{kDim}) * f[at] * (1 + 1e-6));
            }
    }

    void layerErrorAddsTheHeadsFirst() {
        const Fixture fixture;
        const MeasureValues values = fixture.get("layer_error_wo");
        QCOMPARE(values.perQuery.shape, (Shape{1, kEvaluationQueries}));
        for (int j = 0; j < kEvaluationQueries; ++j) {
            std::vector<double> error(kHidden), exact(kHidden);
            for (int h = 0; h < kHeads; ++h) {
                const Truth t = truthOf(fixture, h, j);
                error = minus(error, afterProjection(fixture, h, minus(t.a, t.z)));
                exact = minus(exact, afterProjection(fixture, h, t.a));
            }
            QVERIFY(near(values.perQuery.data[std::size_t(j)], naive::norm(error) / naive::norm(exact)));
        }
    }

    // With cut none an early query may see a kept token in one head and none in another: the sum has a summand less.
    void layerErrorNeedsEveryHead() {
        Fixture fixture;
        fixture.run("keydiff@0.1", "none");
        const int first = fixture.kept(0).front(), second = fixture.kept(1).front();
        QVERIFY(first != second);
        const MeasureValues values = fixture.get("layer_error_wo");
        QCOMPARE(values.perQuery.shape, (Shape{1, kTokens}));
        for (int j = 0; j < kTokens; ++j)
            QCOMPARE(std::isnan(values.perQuery.data[std::size_t(j)]), j < std::max(first, second));
    }

    void aggregateErrorIsARatioOfNorms() {
        const Fixture fixture;
        const MeasureValues values = fixture.get("output_error_frobenius");
        for (int h = 0; h < kHeads; ++h) {
            double errors = 0, norms = 0;
            for (int j = 0; j < kEvaluationQueries; ++j) {
                const Truth t = truthOf(fixture, h, j);
                errors += std::pow(naive::distance(t.z, t.a), 2);
                norms += std::pow(naive::norm(t.a), 2);
            }
            QVERIFY(near(values.perHead[std::size_t(h)], std::sqrt(errors / norms)));
        }
    }

    void lossAndCorrelationLookAtLaterAttention() {
        const Fixture fixture;
        const MeasureValues loss = fixture.get("largest_loss"), rho = fixture.get("score_correlation");
        for (int h = 0; h < kHeads; ++h) {
            std::vector<double> mass(kTokens), score(kCut);
            for (int j = 0; j < kEvaluationQueries; ++j) {
                const std::vector<double> e = fixture.weights(h, j);
                double all = 0;
                for (double x : e) all += x;
                for (int i = 0; i < kTokens; ++i) mass[std::size_t(i)] += e[std::size_t(i)] / all / kEvaluationQueries;
            }
            double largest = 0;
            for (int i = 0; i < kCut; ++i) {
                largest = fixture.isKept(fixture.kvOf(h), i) ? largest : std::max(largest, mass[std::size_t(i)]);
                score[std::size_t(i)] = fixture.result->scores.data[std::size_t(fixture.kvOf(h) * kCut + i)];
            }
            QVERIFY(near(loss.perHead[std::size_t(h)], largest));
            mass.resize(kCut);
            QVERIFY(std::abs(rho.perHead[std::size_t(h)] - spearman(score, mass)) < 1e-3); // neighbours may swap
        }
    }

    // What describes the layer is the same for every selection, and says so on its card.
    void measuresOfTheLayerDoNotDependOnWhatIsKept() {
        Fixture some("keydiff@0.3"), most("uniform@0.8"); // each with a cache of its own
        for (Fixture* fixture : {&some, &most}) {
            fixture->capture->tensors[{LayerIndex(0), TensorRole::KeysPreRope}] = randomKeys();
            fixture->capture->captureInfo.layers.front().hasKeysPreRope = true;
        }
        for (const MeasureCard& card : allMeasures()) {
            const std::string& id = card.id;
            if (card.need == MeasureNeed::Scores) continue;
            const bool same = some.get(id).perHead == most.get(id).perHead;
            // Eight singular values count however many keys are kept.
            QVERIFY2(same == (measureById(id).subject == MeasureSubject::Layer || id == "log_det_count"), id.c_str());
        }
    }

    void keepingAllMeasuresNothingLost() {
        const Fixture fixture("exact@1");
        for (const char* id : {"output_error", "eps_f", "eps_op", "numerator_error", "denominator_error",
                               "largest_loss", "layer_error_wo"})
            for (const double value : fixture.get(id).perHead) QVERIFY2(std::abs(value) < 1e-6, id);
    }

    void everyCardIsComplete() {
        std::set<std::string> ids;
        for (const MeasureCard& card : allMeasures())
            QVERIFY2(ids.insert(card.id).second && !card.label.empty() && card.help.size() > 10, card.id.c_str());
        QCOMPARE(measureById("eps_f").id, std::string("eps_f"));
    }

    void whatCannotBeMeasuredIsRefused() {
        Fixture fixture("exact@1"); // has no scores
        QVERIFY_THROWS_EXCEPTION(Error, fixture.get("score_correlation"));
        QVERIFY_THROWS_EXCEPTION(Error, fixture.get("output_eror"));
        fixture.capture->captureInfo.layers.front().hasOutputProjection = false;
        QVERIFY_THROWS_EXCEPTION(Error, fixture.get("layer_error_wo"));
    }
};

KVSCOPE_TEST(MeasuresTest)
#include "measures_test.moc"
