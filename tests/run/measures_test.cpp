// Every measure against double loops from its formula, and the inequalities between them.
#include "core/base/error.h"
#include "core/capture/memory_capture.h"
#include "core/metrics/statistics.h"
#include "core/run/run.h"
#include "tests/run/naive_attention.h"
#include "tests/support/naive/naive_engine.h"

#include <QtTest>

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace kvscope;

namespace {

constexpr int kTokens = 60, kCut = 45, kJudges = 15, kHeads = 4, kKvHeads = 2, kDim = 8, kHidden = 20;
constexpr double kTolerance = 1e-5; // outputs and logarithms are floats

/// A run on a random capture, and everything its measures should be made of, in double.
struct Rig {
    std::shared_ptr<MemoryCapture> capture = makeRandomCapture(5, kTokens, 1, kHeads, kKvHeads, kDim);
    LayerRunner runner{std::shared_ptr<const Engine>(makeCpuEngine(2))};
    std::shared_ptr<const RunResult> result;
    naive::Layer layer;
    HostTensor projection;

    explicit Rig(const std::string& policy = "keydiff@0.3") {
        std::mt19937 random(6);
        std::normal_distribution<float> normal;
        projection = {{kHidden, kHeads, kDim}, std::vector<float>(kHidden * kHeads * kDim)};
        for (float& x : projection.data)
            x = normal(random);
        capture->captureInfo.layers.front().hasOutputProjection = true;
        capture->tensors[{LayerIndex(0), TensorRole::OutputProjection}] = projection;
        run(policy);
        layer.keys = capture->read(LayerIndex(0), TensorRole::Keys, {});
        layer.values = capture->read(LayerIndex(0), TensorRole::Values, {});
        const HostTensor all = capture->read(LayerIndex(0), TensorRole::Queries, {});
        layer.queries = {{kHeads, kJudges, kDim}, {}};
        for (int h = 0; h < kHeads; ++h)
            layer.queries.data.insert(layer.queries.data.end(), all.data.begin() + (h * kTokens + kCut) * kDim,
                                      all.data.begin() + (h + 1) * kTokens * kDim);
        layer.firstQuery = kCut;
        const LayerInfo& info = capture->info().layers.front();
        layer.rule = {info.scaling, 0, 0, info.kvOfQ};
    }

    void run(const std::string& policy) {
        RunRequest request;
        request.capture = capture;
        request.policy = PolicySpec::parse(policy);
        request.budget = request.policy.budget.value_or(Budget{});
        request.cut = Cut::resolve(std::to_string(kCut), *capture);
        result = LayerRunner(std::shared_ptr<const Engine>(makeCpuEngine(2))).run(request, {});
    }
    MeasureValues get(const std::string& id) const {
        const std::vector<std::string> ids = {id};
        return runner.measure(*result, ids, {}).front();
    }
    const std::vector<TokenIndex>& kept(int kvHead) const { return result->selection.heads[std::size_t(kvHead)].kept; }
    bool isKept(int kvHead, int token) const {
        return token >= kCut || std::binary_search(kept(kvHead).begin(), kept(kvHead).end(), token);
    }
    int kvOf(int head) const { return layer.rule.kvOfQ[std::size_t(head)]; }
    std::vector<double> weights(int head, int query) const { // e^logit of what the query sees
        std::vector<double> e(kTokens);
        for (int i = 0; i <= kCut + query; ++i)
            e[std::size_t(i)] = layer.sees(kCut + query, i) ? std::exp(layer.logit(head, query, i)) : 0;
        return e;
    }
    std::vector<double> sum(int head, const std::vector<double>& factors) const { // of the values
        std::vector<double> out(kDim);
        for (int i = 0; i < kTokens; ++i)
            for (int c = 0; c < kDim; ++c)
                out[std::size_t(c)] += factors[std::size_t(i)] * layer.row(layer.values, kvOf(head), i)[c];
        return out;
    }
};

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

HostTensor randomKeys() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    HostTensor keys{{kKvHeads, kTokens, kDim}, std::vector<float>(kKvHeads * kTokens * kDim)};
    for (std::size_t i = 0; i < keys.data.size(); ++i)
        keys.data[i] = normal(random) * (i / kDim % 7 == 0 ? 4 : 1); // every seventh key is long
    return keys;
}

/// k_i^T x with (K^T K) x = k_i, by Gauss-Jordan with pivots.
double leverageOf(const std::function<const float*(int)>& key, int token) {
    std::vector<std::vector<double>> a(kDim, std::vector<double>(kDim + 1));
    for (int r = 0; r < kDim; ++r) {
        for (int c = 0; c < kDim; ++c)
            for (int i = 0; i < kCut; ++i)
                a[std::size_t(r)][std::size_t(c)] += double{key(i)[r]} * key(i)[c];
        a[std::size_t(r)][kDim] = key(token)[r];
    }
    for (std::size_t p = 0; p < kDim; ++p) {
        const auto below = [&](const auto& x, const auto& y) { return std::abs(x[p]) < std::abs(y[p]); };
        std::swap(a[p], *std::max_element(a.begin() + std::ptrdiff_t(p), a.end(), below));
        for (std::size_t r = 0; r < kDim; ++r) {
            const double factor = r == p ? 0 : a[r][p] / a[p][p];
            for (std::size_t c = p; c <= kDim; ++c)
                a[r][c] -= factor * a[p][c];
        }
    }
    double leverage = 0;
    for (std::size_t c = 0; c < kDim; ++c)
        leverage += key(token)[c] * a[c][kDim] / a[c][c];
    return leverage;
}

bool near(double got, double expected) {
    return std::abs(got - expected) <= kTolerance * std::max(1.0, std::abs(expected));
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

    void keyMeasuresByFormula() {
        const Rig rig;
        const auto keyNorm = rig.get("key_norm").perHead, shifted = rig.get("shifted_key_norm").perHead,
                   valueNorm = rig.get("value_norm").perHead, cosines = rig.get("cosine_sum").perHead,
                   least = rig.get("cosine_sum_min").perHead, logDet = rig.get("log_det").perHead,
                   count = rig.get("log_det_count").perHead;
        for (int h = 0; h < kKvHeads; ++h) {
            std::vector<double> mean(kDim), values(kDim);
            double norms = 0, distances = 0, valueNorms = 0, double_sum = 0;
            const auto key = [&](int i) {
                const float* row = rig.layer.row(rig.layer.keys, h, i);
                return std::vector<double>(row, row + kDim);
            };
            for (int i = 0; i < kCut; ++i)
                for (int c = 0; c < kDim; ++c)
                    mean[std::size_t(c)] += key(i)[std::size_t(c)] / kCut;
            for (int i = 0; i < kCut; ++i) {
                const float* row = rig.layer.row(rig.layer.values, h, i);
                norms += naive::norm(key(i)) / kCut;
                distances += naive::distance(key(i), mean) / kCut;
                valueNorms += naive::norm({row, row + kDim}) / kCut;
            }
            for (const TokenIndex i : rig.kept(h))
                for (const TokenIndex j : rig.kept(h)) {
                    const auto a = key(i), b = key(j);
                    double product = 0;
                    for (int c = 0; c < kDim; ++c)
                        product += a[std::size_t(c)] * b[std::size_t(c)];
                    double_sum += product / (naive::norm(a) * naive::norm(b));
                }
            const auto at = std::size_t(h);
            QVERIFY(near(keyNorm[at], norms) && near(shifted[at], distances) && near(valueNorm[at], valueNorms));
            QVERIFY(near(cosines[at], double_sum) && least[at] <= cosines[at] + 1e-9);
            naive::Block block{1, std::int64_t(rig.kept(h).size()), kDim, {}};
            for (const TokenIndex i : rig.kept(h))
                for (double x : key(i))
                    block.numbers.push_back(float(x));
            double volume = 0;
            for (double s : naive::singularValues(block, {}))
                volume += 2 * std::log(s);
            QVERIFY(near(logDet[at], volume) && count[at] == kDim);
        }
    }

    void directionsByFormula() {
        const Rig rig;
        const auto means = rig.get("cos_means").perHead, distinct = rig.get("cos_distinct").perHead,
                   norms = rig.get("query_norm").perHead;
        const auto cosine = [](const std::vector<double>& a, const std::vector<double>& b) {
            double product = 0;
            for (std::size_t c = 0; c < a.size(); ++c)
                product += a[c] * b[c];
            return product / (naive::norm(a) * naive::norm(b));
        };
        for (int h = 0; h < kHeads; ++h) {
            std::vector<double> query(kDim), key(kDim), farthest;
            double length = 0, lowest = 2;
            for (int j = 0; j < kJudges; ++j) {
                const float* row = rig.layer.row(rig.layer.queries, h, j);
                length += naive::norm({row, row + kDim}) / kJudges;
                for (int c = 0; c < kDim; ++c)
                    query[std::size_t(c)] += row[c];
            }
            for (int i = 0; i < kCut; ++i)
                for (int c = 0; c < kDim; ++c)
                    key[std::size_t(c)] += rig.layer.row(rig.layer.keys, rig.kvOf(h), i)[c];
            for (int i = 0; i < kCut; ++i) {
                const float* row = rig.layer.row(rig.layer.keys, rig.kvOf(h), i);
                const std::vector<double> one(row, row + kDim);
                farthest = cosine(one, key) < lowest ? one : farthest;
                lowest = std::min(lowest, cosine(one, key));
            }
            const auto at = std::size_t(h);
            QVERIFY(near(means[at], cosine(key, query)) && near(distinct[at], cosine(farthest, query)) &&
                    near(norms[at], length));
        }
    }

    // k^T (K^T K)^+ k by elimination on a matrix of 8 x 8, sorted.
    void leverageConcentrationByFormula() {
        Rig rig;
        const HostTensor& keys = rig.capture->tensors[{LayerIndex(0), TensorRole::KeysPreRope}] = randomKeys();
        rig.capture->captureInfo.layers.front().hasKeysPreRope = true;
        const auto got = rig.get("leverage_concentration").perHead;
        QCOMPARE(got.size(), std::size_t{kKvHeads});
        for (int h = 0; h < kKvHeads; ++h) {
            const auto key = [&](int i) { return keys.data.data() + (h * kTokens + i) * kDim; };
            std::vector<double> leverage;
            for (int i = 0; i < kCut; ++i)
                leverage.push_back(leverageOf(key, i));
            std::sort(leverage.rbegin(), leverage.rend());
            double all = 0, most = 0;
            for (int i = 0; i < kCut; ++i) {
                all += leverage[std::size_t(i)];
                most += i < 5 ? leverage[std::size_t(i)] : 0; // a tenth of 45, rounded up
            }
            QVERIFY(near(all, kDim)); // leverages add up to the rank
            QVERIFY2(near(got[std::size_t(h)], most / all), qPrintable(QString("%1, not %2").arg(got[std::size_t(h)]).arg(most / all)));
        }
    }

    void effectiveBudgetIsKishsSampleSize() {
        const Rig plain("keydiff@0.3");
        for (int h = 0; h < kKvHeads; ++h)
            QCOMPARE(plain.get("effective_budget").perHead[std::size_t(h)], double(plain.kept(h).size()));
        for (const char* policy : {"balancekv,sink=2,recent=3,block=8@0.4", "balancekv_stream:greedy,batch=16,levels=2", "subgen"}) {
            const Rig rig(policy);
            const auto got = rig.get("effective_budget").perHead;
            for (int h = 0; h < kKvHeads; ++h) {
                const HeadSelection& head = rig.result->selection.heads[std::size_t(h)];
                std::vector<double> weight(kTokens);
                for (std::size_t i = 0; i < head.kept.size(); ++i)
                    weight[std::size_t(head.kept[i])] += double{head.denominatorWeights.at(i)};
                double sum = 0, squares = 0;
                for (const double w : weight) {
                    sum += w;
                    squares += w * w;
                }
                const auto distinct = double(std::count_if(weight.begin(), weight.end(), [](double w) { return w > 0; }));
                QVERIFY2(near(got[std::size_t(h)], sum * sum / squares), policy);
                QVERIFY2(got[std::size_t(h)] < distinct - 1e-6, policy); // unequal weights are worth fewer tokens
            }
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

QTEST_APPLESS_MAIN(MeasuresTest)
#include "measures_test.moc"
