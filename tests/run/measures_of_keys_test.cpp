// Measures of keys, of directions and of what is kept against double loops from their formulas.
#include <QtTest>

#include "tests/run/measures_fixture.h"
#include "tests/support/test_program.h"

#include <functional>

using namespace kvscope;
using namespace kvscope::measures_fixture;

namespace {

/// k_i^T x with (K^T K) x = k_i, by Gauss-Jordan with pivots.
double leverageOf(const std::function<const float*(int)>& key, int token) {
    std::vector<std::vector<double>> a(kDim, std::vector<double>(kDim + 1));
    for (int r = 0; r < kDim; ++r) {
        for (int c = 0; c < kDim; ++c)
            for (int i = 0; i < kCut; ++i) a[std::size_t(r)][std::size_t(c)] += double{key(i)[r]} * key(i)[c];
        a[std::size_t(r)][kDim] = key(token)[r];
    }
    for (std::size_t p = 0; p < kDim; ++p) {
        const auto below = [&](const auto& x, const auto& y) { return std::abs(x[p]) < std::abs(y[p]); };
        std::swap(a[p], *std::max_element(a.begin() + std::ptrdiff_t(p), a.end(), below));
        for (std::size_t r = 0; r < kDim; ++r) {
            const double factor = r == p ? 0 : a[r][p] / a[p][p];
            for (std::size_t c = p; c <= kDim; ++c) a[r][c] -= factor * a[p][c];
        }
    }
    double leverage = 0;
    for (std::size_t c = 0; c < kDim; ++c) leverage += key(token)[c] * a[c][kDim] / a[c][c];
    return leverage;
}

} // namespace

class MeasuresOfKeysTest : public QObject {
    Q_OBJECT

private slots:
    void keyMeasuresByFormula() {
        const Fixture fixture;
        const auto keyNorm = fixture.get("key_norm").perHead, shifted = fixture.get("shifted_key_norm").perHead,
                   valueNorm = fixture.get("value_norm").perHead, cosines = fixture.get("cosine_sum").perHead,
                   least = fixture.get("cosine_sum_min").perHead, logDet = fixture.get("log_det").perHead,
                   count = fixture.get("log_det_count").perHead;
        for (int h = 0; h < kKvHeads; ++h) {
            std::vector<double> mean(kDim), values(kDim);
            double norms = 0, distances = 0, valueNorms = 0, double_sum = 0;
            const auto key = [&](int i) {
                const float* row = fixture.layer.row(fixture.layer.keys, h, i);
                return std::vector<double>(row, row + kDim);
            };
            for (int i = 0; i < kCut; ++i)
                for (int c = 0; c < kDim; ++c) mean[std::size_t(c)] += key(i)[std::size_t(c)] / kCut;
            for (int i = 0; i < kCut; ++i) {
                const float* row = fixture.layer.row(fixture.layer.values, h, i);
                norms += naive::norm(key(i)) / kCut;
                distances += naive::distance(key(i), mean) / kCut;
                valueNorms += naive::norm({row, row + kDim}) / kCut;
            }
            for (const TokenIndex i : fixture.kept(h))
                for (const TokenIndex j : fixture.kept(h)) {
                    const auto a = key(i), b = key(j);
                    double product = 0;
                    for (int c = 0; c < kDim; ++c) product += a[std::size_t(c)] * b[std::size_t(c)];
                    double_sum += product / (naive::norm(a) * naive::norm(b));
                }
            const auto at = std::size_t(h);
            QVERIFY(near(keyNorm[at], norms) && near(shifted[at], distances) && near(valueNorm[at], valueNorms));
            QVERIFY(near(cosines[at], double_sum) && least[at] <= cosines[at] + 1e-9);
            naive::Block block{1, std::int64_t(fixture.kept(h).size()), kDim, {}};
            for (const TokenIndex i : fixture.kept(h))
                for (double x : key(i)) block.numbers.push_back(float(x));
            double volume = 0;
            for (double s : naive::singularValues(block, {})) volume += 2 * std::log(s);
            QVERIFY(near(logDet[at], volume) && count[at] == kDim);
        }
    }

    // KeyDiff's and BalanceKV's figures are about the queries of the whole prompt, before and after the cut.
    void directionsByFormula() {
        const Fixture fixture;
        const HostTensor queries = fixture.capture->read(LayerIndex(0), TensorRole::Queries, {});
        const auto means = fixture.get("cos_means").perHead, distinct = fixture.get("cos_distinct").perHead,
                   norms = fixture.get("query_norm").perHead;
        const auto cosine = [](const std::vector<double>& a, const std::vector<double>& b) {
            double product = 0;
            for (std::size_t c = 0; c < a.size(); ++c) product += a[c] * b[c];
            return product / (naive::norm(a) * naive::norm(b));
        };
        for (int h = 0; h < kHeads; ++h) {
            std::vector<double> query(kDim), key(kDim), farthest;
            double length = 0, lowest = 2;
            for (int j = 0; j < kTokens; ++j) {
                const float* row = queries.data.data() + (h * kTokens + j) * kDim;
                length += naive::norm({row, row + kDim}) / kTokens;
                for (int c = 0; c < kDim; ++c) query[std::size_t(c)] += row[c];
            }
            for (int i = 0; i < kCut; ++i)
                for (int c = 0; c < kDim; ++c)
                    key[std::size_t(c)] += fixture.layer.row(fixture.layer.keys, fixture.kvOf(h), i)[c];
            for (int i = 0; i < kCut; ++i) {
                const float* row = fixture.layer.row(fixture.layer.keys, fixture.kvOf(h), i);
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
        Fixture fixture;
        const HostTensor& keys = fixture.capture->tensors[{LayerIndex(0), TensorRole::KeysPreRope}] = randomKeys();
        fixture.capture->captureInfo.layers.front().hasKeysPreRope = true;
        const auto got = fixture.get("leverage_concentration").perHead;
        QCOMPARE(got.size(), std::size_t{kKvHeads});
        for (int h = 0; h < kKvHeads; ++h) {
            const auto key = [&](int i) { return keys.data.data() + (h * kTokens + i) * kDim; };
            std::vector<double> leverage;
            for (int i = 0; i < kCut; ++i) leverage.push_back(leverageOf(key, i));
            std::sort(leverage.rbegin(), leverage.rend());
            double all = 0, most = 0;
            for (int i = 0; i < kCut; ++i) {
                all += leverage[std::size_t(i)];
                most += i < 5 ? leverage[std::size_t(i)] : 0; // a tenth of 45, rounded up
            }
            QVERIFY(near(all, kDim)); // leverages add up to the rank
            QVERIFY2(near(got[std::size_t(h)], most / all),
                     qPrintable(QString("%1, not %2").arg(got[std::size_t(h)]).arg(most / all)));
        }
    }

    void effectiveBudgetIsKishsSampleSize() {
        const Fixture plain("keydiff@0.3");
        for (int h = 0; h < kKvHeads; ++h)
            QCOMPARE(plain.get("effective_budget").perHead[std::size_t(h)], double(plain.kept(h).size()));
        for (const char* policy :
             {"balancekv,sink=2,recent=3,block=8@0.4", "balancekv_stream:greedy,batch=16,levels=2", "subgen"}) {
            const Fixture fixture(policy);
            const auto got = fixture.get("effective_budget").perHead;
            for (int h = 0; h < kKvHeads; ++h) {
                const HeadSelection& head = fixture.result->selection.heads[std::size_t(h)];
                std::vector<double> weight(kTokens);
                for (std::size_t i = 0; i < head.kept.size(); ++i)
                    weight[std::size_t(head.kept[i])] += double{head.denominatorWeights.at(i)};
                double sum = 0, squares = 0;
                for (const double w : weight) {
                    sum += w;
                    squares += w * w;
                }
                const auto distinct =
                    double(std::count_if(weight.begin(), weight.end(), [](double w) { return w > 0; }));
                QVERIFY2(near(got[std::size_t(h)], sum * sum / squares), policy);
                QVERIFY2(got[std::size_t(h)] < distinct - 1e-6, policy); // unequal weights are worth fewer tokens
            }
        }
    }
};

KVSCOPE_TEST(MeasuresOfKeysTest)
#include "measures_of_keys_test.moc"
