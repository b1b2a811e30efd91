// The numbers of lessons against plain loops over the capture, written from their definitions.
#include <QTest>

#include "core/metrics/calibration.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/balance/balance_tree.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/subgen/subgen_log.h"
#include "tests/app/open_lesson.h"
#include "tests/run/naive_attention.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace kvscope;
using kvscope::testing::OpenLesson;

namespace {

double norm(const float* x, std::int64_t d) {
    double square = 0;
    for (std::int64_t c = 0; c < d; ++c) square += double{x[c]} * x[c];
    return std::sqrt(square);
}

bool near(double got, double expected, double relative) {
    if (std::abs(got - expected) <= relative * std::abs(expected)) return true;
    qWarning("got %.9g, expected %.9g", got, expected);
    return false;
}

/// The layer of an open lesson in host memory; its queries are those after the cut.
struct Loops {
    const OpenLesson& open;
    ViewDataRequest request = *open.bench->request();
    std::int64_t n = request.capture->info().numTokens, cut = request.cut.token, head = request.kvHead.value;
    naive::Layer layer;
    HostTensor allQueries;

    explicit Loops(const OpenLesson& lesson) : open(lesson) {
        const LayerInfo& info = request.capture->info().layerInfo(request.layer);
        const auto read = [&](TensorRole role) { return request.capture->read(request.layer, role, {}); };
        layer = {{}, read(TensorRole::Keys), read(TensorRole::Values), static_cast<TokenIndex>(cut), {}};
        layer.rule = {info.scaling, info.softcap, info.slidingWindow, info.gqaGroupOf};
        allQueries = read(TensorRole::Queries);
        const std::int64_t all = allQueries.shape[1], d = allQueries.shape[2], w = n - cut;
        layer.queries.shape = {allQueries.shape[0], w, d};
        for (std::int64_t h = 0; h < allQueries.shape[0]; ++h) {
            const auto from = allQueries.data.begin() + (h * all + all - w) * d;
            layer.queries.data.insert(layer.queries.data.end(), from, from + w * d);
        }
    }
    std::int64_t width() const { return n - cut; }
    std::vector<std::int64_t> queryHeads() const {
        std::vector<std::int64_t> heads;
        for (std::size_t q = 0; q < layer.rule.gqaGroupOf.size(); ++q)
            if (layer.rule.gqaGroupOf[q] == head) heads.push_back(static_cast<std::int64_t>(q));
        return heads;
    }
    const float* key(std::int64_t token) const { return layer.row(layer.keys, head, token); }
    std::int64_t d() const { return layer.keys.shape[2]; }

    /// [n] mean attention of the evaluation queries.
    std::vector<double> attention() const {
        std::vector<double> mean(static_cast<std::size_t>(n));
        for (const std::int64_t q : queryHeads())
            for (std::int64_t j = 0; j < width(); ++j) {
                double sum = 0;
                for (TokenIndex i = 0; i <= cut + j; ++i) sum += std::exp(layer.logit(q, j, i));
                for (TokenIndex i = 0; i <= cut + j; ++i)
                    mean[static_cast<std::size_t>(i)] +=
                        std::exp(layer.logit(q, j, i)) / sum / static_cast<double>(queryHeads().size() * width());
            }
        return mean;
    }
    /// Mean relative output error of the queries from the `first` after the cut on; `kept` has 1 for what is kept.
    double outputError(const std::vector<double>& kept, std::int64_t first) const {
        double sum = 0;
        for (const std::int64_t q : queryHeads())
            for (std::int64_t j = first; j < width(); ++j) {
                const auto at = naive::attend(layer, q, j, static_cast<TokenIndex>(cut), kept, kept,
                                              std::vector<bool>(kept.size(), true));
                double difference = 0, exact = 0;
                for (std::size_t c = 0; c < at.exact.size(); ++c) {
                    difference += (at.output[c] - at.exact[c]) * (at.output[c] - at.exact[c]);
                    exact += at.exact[c] * at.exact[c];
                }
                sum += std::sqrt(difference / exact);
            }
        return sum / static_cast<double>(static_cast<std::int64_t>(queryHeads().size()) * (width() - first));
    }
    /// Of every query || sum eta e^l v || / || sum e^l v || over a node's tokens, v = 1 in the denominator's tree; and
    /// the largest || sum eta e^l v || / (e^(|q|^2 / 2 sqrt d) R), R = e^(r^2 / 2 sqrt d) r_val.
    std::pair<std::vector<double>, double> errors(const BalanceNode& node, bool numerator) const {
        const auto width = static_cast<std::size_t>(numerator ? layer.values.shape[2] : 1);
        const auto valueOf = [&](TokenIndex token) { return layer.row(layer.values, head, token); };
        double key = 0, value = numerator ? 0 : 1, most = 0;
        for (const TokenIndex token : node.input) {
            key = std::max(key, norm(this->key(token), d()));
            if (numerator) value = std::max(value, norm(valueOf(token), layer.values.shape[2]));
        }
        std::vector<double> all;
        for (const std::int64_t q : queryHeads())
            for (std::int64_t j = 0; j < this->width(); ++j) {
                std::vector<double> whole(width), change(width);
                for (std::size_t i = 0; i < node.input.size(); ++i) {
                    const double e = std::exp(layer.logit(q, j, node.input[i]));
                    for (std::size_t c = 0; c < width; ++c) {
                        const double v = numerator ? double{valueOf(node.input[i])[c]} : 1;
                        whole[c] += e * v;
                        change[c] += node.signs[i] * e * v;
                    }
                }
                const auto length = [](const std::vector<double>& x) {
                    return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
                };
                const double query = norm(layer.row(layer.queries, q, j), d());
                const double unit = std::exp(layer.rule.scaling / 2 * (query * query + key * key)) * value;
                most = std::max(most, length(change) / unit);
                all.push_back(length(change) / length(whole));
            }
        return {all, most};
    }
    std::vector<double> meanOf(const HostTensor& rows, std::int64_t h, std::int64_t count) const {
        std::vector<double> mean(static_cast<std::size_t>(d()));
        for (std::int64_t i = 0; i < count; ++i)
            for (std::size_t c = 0; c < mean.size(); ++c)
                mean[c] += double{layer.row(rows, h, i)[c]} / static_cast<double>(count);
        return mean;
    }
};

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t c = 0; c < a.size(); ++c) ab += a[c] * b[c], aa += a[c] * a[c], bb += b[c] * b[c];
    return ab / std::sqrt(aa * bb);
}

} // namespace

class LessonQuantitiesTest : public QObject {
    Q_OBJECT

private slots:
    // What lies after the cut is not kept by anybody's choice.
    void keptMassCountsKeptTokensAlone() {
        const OpenLesson open("keydiff");
        const Loops loops(open);
        const std::vector<double> attention = loops.attention();
        for (std::size_t pane = 0; pane < 3; ++pane) {
            double kept = 0;
            const auto result = open.result(pane);
            for (const TokenIndex token : result->selection.heads[open.head()].kept)
                kept += attention[static_cast<std::size_t>(token)];
            QVERIFY(near(open.quantity("kept_mass", pane), kept, 1e-4));
        }
        double after = 0;
        for (std::int64_t i = loops.cut; i < loops.n; ++i) after += attention[static_cast<std::size_t>(i)];
        QVERIFY(near(open.quantity("mass_after_cut"), after, 1e-4));
    }

    void bytesAndEffectiveTokensOfACache() {
        const OpenLesson open("cache");
        const Loops loops(open);
        std::size_t numbers = 0; // that a cache of the prompt holds
        for (const LayerInfo& info : loops.request.capture->info().layers)
            for (const TensorRole role : {TensorRole::Keys, TensorRole::Values})
                numbers += loops.request.capture->read(info.layer, role, {}).data.size();
        const auto bytes = 2 * static_cast<double>(numbers); // bfloat16
        QCOMPARE(open.quantity("cache_bytes"), bytes);
        QCOMPARE(open.quantity("token_bytes"), bytes / static_cast<double>(loops.n));
        QCOMPARE(open.quantity("ungrouped_cache_bytes"), 4 * bytes);
        const CaptureInfo& info = loops.request.capture->info(); // as the answer states it
        const std::string shape = fmt::format("{} numbers, 2 bytes each, {} KV heads, {} layers", info.headDim,
                                              info.numKvHeads, info.numLayers);
        QVERIFY2(open.lesson.answer.find(shape) != std::string::npos, shape.c_str());
        double effective = 0;
        for (const std::int64_t q : loops.queryHeads())
            for (std::int64_t j = 0; j < loops.width(); ++j) {
                double sum = 0, entropy = 0;
                for (TokenIndex i = 0; i <= loops.cut + j; ++i) sum += std::exp(loops.layer.logit(q, j, i));
                for (TokenIndex i = 0; i <= loops.cut + j; ++i) {
                    const double p = std::exp(loops.layer.logit(q, j, i)) / sum;
                    entropy -= p > 0 ? p * std::log(p) : 0;
                }
                effective += std::exp(entropy) / static_cast<double>(loops.queryHeads().size() * loops.width());
            }
        QVERIFY(near(open.quantity("effective_tokens"), effective, 1e-4));
    }

    void whatTheSinksAreWorth() {
        const OpenLesson open("sinks");
        const Loops loops(open);
        const std::vector<double> attention = loops.attention();
        QVERIFY(near(open.quantity("sink_mass"), std::accumulate(attention.begin(), attention.begin() + 4, 0.0), 1e-4));
        // The first four and the last 96 tokens before the cut, and the last 100.
        const auto keeping = [&](std::int64_t first, std::int64_t last) {
            std::vector<double> kept(static_cast<std::size_t>(loops.cut));
            std::fill(kept.begin(), kept.begin() + first, 1);
            std::fill(kept.end() - last, kept.end(), 1);
            return loops.outputError(kept, 0);
        };
        QVERIFY(near(open.quantity("output_error"), keeping(4, 96), 1e-3));
        QVERIFY(near(open.quantity("next_error_ratio"), keeping(0, 100) / keeping(4, 96), 1e-3));
    }

    // With the question in sight, against the same lesson where it begins: with the cut before the question.
    void whatWasKeptBeforeTheQuestion() {
        OpenLesson open("cut");
        const OpenLesson before("cut");
        open.bench->change([&](Session& s) { applySetting(s, open.lesson.asked); }, "Question");
        open.executor.runAll();
        const Loops loops(before);
        const std::int64_t asked = open.bench->request()->cut.token;
        QVERIFY(loops.cut == 995 && asked == 1021);
        for (std::size_t pane = 0; pane < 3; ++pane) {
            std::vector<double> kept(static_cast<std::size_t>(loops.cut));
            const auto result = before.result(pane);
            for (const TokenIndex token : result->selection.heads[open.head()].kept)
                kept[static_cast<std::size_t>(token)] = 1;
            QCOMPARE(open.quantity("unasked_kept_selected", pane),
                     std::accumulate(kept.begin() + 611, kept.begin() + 627, 0.0));
            QVERIFY(
                near(open.quantity("unasked_output_error", pane), loops.outputError(kept, asked - loops.cut), 1e-3));
        }
        QCOMPARE(before.quantity("kept_selected"), open.quantity("unasked_kept_selected"));
    }

    void meansAndTheMostDistinctKey() {
        const OpenLesson open("premise");
        const Loops loops(open);
        const auto queries = loops.meanOf(loops.allQueries, loops.request.queryHead.value, loops.n);
        const auto seen = loops.meanOf(loops.layer.keys, loops.head, loops.cut);
        QVERIFY(near(open.quantity("cosine_of_means"), cosine(seen, queries), 1e-5));
        std::int64_t distinct = 0;
        double least = 2;
        for (std::int64_t i = 0; i < loops.cut; ++i) {
            const double with = cosine(std::vector<double>(loops.key(i), loops.key(i) + loops.d()), seen);
            if (with < least) least = with, distinct = i;
        }
        QVERIFY(
            near(open.quantity("attention_on_distinct"), loops.attention()[static_cast<std::size_t>(distinct)], 1e-4));
    }

    void theWorstQueryOfEachError() {
        const OpenLesson open("quotient");
        const Loops loops(open);
        const HeadSelection stored = open.result(0)->selection.heads[open.head()];
        std::vector<double> x(static_cast<std::size_t>(loops.cut)), y(x);
        for (std::size_t i = 0; i < stored.kept.size(); ++i) {
            x[static_cast<std::size_t>(stored.kept[i])] = double{stored.numeratorWeights[i]};
            y[static_cast<std::size_t>(stored.kept[i])] = double{stored.denominatorWeights[i]};
        }
        double output = 0, denominator = 0;
        for (const std::int64_t q : loops.queryHeads())
            for (std::int64_t j = 0; j < loops.width(); ++j) {
                const auto at = naive::attend(loops.layer, q, j, static_cast<TokenIndex>(loops.cut), x, y,
                                              std::vector<bool>(x.size(), true));
                double difference = 0, exact = 0, all = 0, left = 0;
                for (std::size_t c = 0; c < at.exact.size(); ++c) {
                    difference += (at.output[c] - at.exact[c]) * (at.output[c] - at.exact[c]);
                    exact += at.exact[c] * at.exact[c];
                }
                for (TokenIndex i = 0; i <= loops.cut + j; ++i) {
                    const double e = std::exp(loops.layer.logit(q, j, i));
                    all += e;
                    left += e * (i < loops.cut ? y[static_cast<std::size_t>(i)] : 1);
                }
                output = std::max(output, std::sqrt(difference / exact));
                denominator = std::max(denominator, std::abs(left / all - 1));
            }
        QVERIFY(near(open.quantity("worst_output_error"), output, 1e-3));
        QVERIFY(near(open.quantity("worst_denominator_error"), denominator, 1e-3));
    }

    void oneHalvingAsEveryQuerySeesIt() {
        const OpenLesson open("halving");
        const Loops loops(open);
        const auto log = std::dynamic_pointer_cast<const BalanceLog>(open.result(0, true)->log);
        const auto count = static_cast<double>(static_cast<std::int64_t>(loops.queryHeads().size()) * loops.width());
        double mean = 0, worst = 0, scaled = 0, bound = 1;
        std::size_t fullest = 0;
        for (const BalanceTree& tree : log->stream->trees) {
            if (tree.kvHead != loops.head) continue;
            for (const BalanceNode& node : tree.nodes[0]) {
                const auto s = static_cast<double>(tree.numerator ? loops.layer.values.shape[2] : 1);
                const double allowed = std::sqrt(s) * 30 * std::log(static_cast<double>(node.input.size()) * s / 0.01);
                const auto [errors, most] = loops.errors(node, tree.numerator);
                if (most / allowed > scaled / bound) scaled = most, bound = allowed;
                if (!tree.numerator || tree.rows.size() <= fullest || &node != tree.nodes[0].data()) continue;
                fullest = tree.rows.size();
                mean = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
                worst = *std::max_element(errors.begin(), errors.end());
            }
        }
        QVERIFY(near(open.quantity("mean_halving_error"), mean, 1e-6));
        QVERIFY(near(open.quantity("worst_halving_error"), worst, 1e-6));
        QVERIFY(near(open.quantity("scaled_discrepancy"), scaled, 1e-5));
        QVERIFY(near(open.quantity("discrepancy_bound"), bound, 1e-9));
    }

    void panesThatBeatCoinsAreCounted() {
        const OpenLesson open("walk");
        double below = 0;
        for (std::size_t pane = 0; pane < 4; ++pane) below += open.quantity("coin_ratio", pane) < 0.95 ? 1 : 0;
        QCOMPARE(open.quantity("panes_below_coins"), below);
    }

    // Where everything is kept, there is no error to compare with and nothing to balance.
    void aRatioToNothingIsRefused() {
        OpenLesson sinks("sinks"), walk("walk");
        for (OpenLesson* open : {&sinks, &walk}) {
            open->bench->change(
                [](Session& s) {
                    s.panesLinked = true;
                    setBudget(s, {Budget::Unit::Fraction, 1});
                },
                "Budget");
            open->executor.runAll();
        }
        const QString error = errorText([&] { (void)sinks.quantity("next_error_ratio"); });
        QVERIFY2(error.contains("this pane's output error is 0, so no ratio to it exists"), qPrintable(error));
        for (const std::size_t pane : {2, 3}) {
            const QString coins = errorText([&] { (void)walk.quantity("coin_ratio", pane); });
            QVERIFY2(coins.contains("no walk was taken in this head"), qPrintable(coins));
        }
        double below = 0; // a stream walks whatever it keeps
        for (const std::size_t pane : {0, 1}) below += walk.quantity("coin_ratio", pane) < 0.95 ? 1 : 0;
        QCOMPARE(walk.quantity("panes_below_coins"), below);
    }

    void aShareOfNothingIsRefused() {
        OpenLesson open("blocks");
        open.bench->change(
            [](Session& s) {
                s.panesLinked = true;
                setBudget(s, {Budget::Unit::Fraction, 1});
            },
            "Budget");
        open.executor.runAll();
        const QString error = errorText([&] { (void)open.quantity("same_block_evictions"); });
        QVERIFY2(error.contains("this pane evicts nothing, so no share of it exists"), qPrintable(error));
        QVERIFY(near(open.quantity("shared_with_next"), 1, 1e-12)); // of all tokens
    }

    void distortionIsAMeanOverSeeds() {
        OpenLesson open("leverage");
        double drawn = 0, top = 0;
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            RunRequest run = open.bench->request()->panes[0].run;
            run.seed = seed;
            run.recordSteps = true;
            const auto log = std::dynamic_pointer_cast<const LeverageLog>(open.bench->runner().run(run, {})->log);
            drawn += log->distortion[open.head()] / 10;
            top = log->topDistortion[open.head()];
        }
        QVERIFY(near(open.quantity("drawn_distortion"), drawn, 1e-12));
        QVERIFY(near(open.quantity("top_distortion"), top, 1e-12));
        QVERIFY(top <= 1 + 1e-6);
        QVERIFY(near(open.quantity("demanded_rows"), 64 * std::log(64 / 0.01) / 0.25, 1e-9));
    }

    void whatSubgenDemands() {
        const OpenLesson open("price");
        const Loops loops(open);
        double r = 0;
        for (const std::int64_t q : loops.queryHeads())
            for (std::int64_t j = 0; j < loops.width(); ++j)
                r = std::max(r, norm(loops.layer.row(loops.layer.queries, q, j), loops.d()) * loops.layer.rule.scaling);
        const auto samplesAt = [&](double delta) {
            return std::exp(2 * delta * r) * std::log(static_cast<double>(loops.cut)) / 0.25;
        };
        double least = INFINITY;
        for (std::size_t pane = 0; pane < 2; ++pane) {
            const auto log = std::dynamic_pointer_cast<const SubgenLog>(open.result(pane, true)->log);
            const double delta = log->heads[open.head()].delta;
            QVERIFY(near(open.quantity("demanded_slots", pane), samplesAt(delta), 1e-4));
            for (int quarter = 0; pane == 0 && quarter <= 8; ++quarter) {
                std::vector<std::int64_t>
                    centres; // the nearest within the radius takes the key, else it opens a cluster
                for (std::int64_t i = 0; i < loops.cut; ++i) {
                    const bool covered = std::any_of(centres.begin(), centres.end(), [&](std::int64_t centre) {
                        double square = 0;
                        for (std::int64_t c = 0; c < loops.d(); ++c)
                            square += std::pow(double{loops.key(i)[c]} - loops.key(centre)[c], 2);
                        return std::sqrt(square) <= delta * quarter / 4;
                    });
                    if (!covered) centres.push_back(i);
                }
                least =
                    std::min(least, static_cast<double>(centres.size()) * samplesAt(delta * quarter / 4) + 64 / 0.25);
            }
        }
        QVERIFY(near(open.quantity("least_subgen_memory"), least, 1e-4));
    }

    void whatTheCaseStudysContextsNeed() {
        const OpenLesson open("calibration");
        QVERIFY(open.quantity("needed_by_copies") > open.quantity("needed_by_stories"));
        for (const char* id : {"needed_by_copies", "needed_by_stories"})
            QVERIFY(open.quantity(id) > 0 && open.quantity(id) <= 1);
        QVERIFY(open.quantity("fit_residual") > 0 && open.quantity("fit_residual") < 0.5);
        QVERIFY(open.quantity("needed_by_copies", 1) != open.quantity("needed_by_copies", 0));
    }
};

KVSCOPE_CORE_TEST(LessonQuantitiesTest)
#include "lesson_quantities_test.moc"
