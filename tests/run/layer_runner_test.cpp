// The runner: what is cached, what a policy may see, which queries evaluate, and that nothing depends on threads.
#include "core/metrics/fidelity.h"
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "core/run/token_decision.h"
#include "tests/run/counting_engine.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cstring>
#include <future>
#include <random>

using namespace kvscope;

namespace {

using Capture = std::shared_ptr<const CaptureReader>;

constexpr int kTokens = 120, kQueryHeads = 4, kKvHeads = 2, kDim = 8;

std::shared_ptr<MemoryCapture> someCapture(std::uint64_t seed = 1, int layers = 2) {
    return makeRandomCapture(seed, kTokens, layers, kQueryHeads, kKvHeads, kDim);
}

RunRequest requestOf(const Capture& capture, const std::string& spec, const std::string& cut = "80") {
    return runRequest(capture, spec, cut, "0.25");
}

using Fixture = CountedRuns;

const std::vector<std::string> kSpecs = {"exact",
                                         "uniform",
                                         "streaming_llm",
                                         "key_norm",
                                         "tova",
                                         "snapkv,window=8",
                                         "keydiff",
                                         "keydiff:sliding_window",
                                         "keydiff,prompt_block=16",
                                         "snapkv,window=8,prompt_block=32",
                                         "pyramidkv",
                                         "h2o",
                                         "h2o:keydiff,prompt_block=32"};

/// Tokens that each head keeps: those asked for, unless the policy's layers differ (PyramidKV).
std::size_t keptInLayer(const RunResult& result) {
    const RunRequest& request = result.request;
    return static_cast<std::size_t>(policyById(request.policy.policy)
                                        .layerCount(request.layer, request.capture->info().numLayers, result.visible,
                                                    request.policy.values, result.requested));
}

/// Overwrites everything from token `cut` on with something else.
std::shared_ptr<MemoryCapture> withAnotherFuture(const MemoryCapture& capture, TokenIndex cut) {
    auto other = std::make_shared<MemoryCapture>(capture);
    std::mt19937 random(99);
    for (auto& [place, tensor] : other->tensors)
        for (std::int64_t h = 0; h < tensor.shape[0]; ++h)
            for (std::int64_t row = cut; row < tensor.shape[1]; ++row)
                for (std::int64_t c = 0; c < tensor.shape[2]; ++c)
                    tensor.data[static_cast<std::size_t>((h * tensor.shape[1] + row) * tensor.shape[2] + c)] =
                        std::normal_distribution<float>(3, 5)(random);
    return other;
}

/// Only the last `count` queries stay.
void forgetQueries(MemoryCapture& capture, std::int64_t count) {
    for (LayerInfo& layer : capture.captureInfo.layers) {
        HostTensor& all = capture.tensors.at({layer.layer, TensorRole::Queries});
        HostTensor last{{all.shape[0], count, all.shape[2]}, {}};
        for (std::int64_t h = 0; h < all.shape[0]; ++h) {
            const auto end = all.data.begin() + (h + 1) * all.shape[1] * all.shape[2];
            last.data.insert(last.data.end(), end - count * all.shape[2], end);
        }
        all = last;
        layer.queryCount = count;
    }
}

} // namespace

class LayerRunnerTest : public QObject {
    Q_OBJECT

private slots:
    // In a layer with a window W, a query at the cut or later sees tokens from cut - W + 1 on.
    void keptTokensBehindTheWindowAreNamed() {
        const auto capture = someCapture();
        const auto noted = [&](const std::string& spec, const std::string& cut) {
            const auto result = Fixture().run(requestOf(capture, spec, cut));
            std::string all;
            for (const std::string& note : result->notes) all += note + "; ";
            return std::pair(result, all);
        };
        QVERIFY(noted("snapkv:kvpress@0.5", "80").second.find("window of") == std::string::npos);
        capture->captureInfo.layers[0].slidingWindow = 30;
        const auto [result, notes] = noted("snapkv:kvpress@0.5", "80");
        std::int64_t behind = 0, kept = 0;
        for (const HeadSelection& head : result->selection.heads) {
            kept += std::ssize(head.kept);
            behind += std::count_if(head.kept.begin(), head.kept.end(), [](TokenIndex i) { return i <= 80 - 30; });
        }
        QVERIFY(behind > 0);
        const std::string words = "window of 30 tokens: " + std::to_string(behind) + " of " + std::to_string(kept);
        QVERIFY2(notes.find(words) != std::string::npos, notes.c_str());
        QVERIFY(notes.find("kvpress may not count the window") != std::string::npos);
        QVERIFY(noted("snapkv:kvpress@0.5", "none").second.find("not count the window of") != std::string::npos);
        QVERIFY(noted("keydiff@0.5", "80").second.find("kvpress") == std::string::npos);
        QVERIFY(noted("keydiff@0.5", "none").second.find("window of") == std::string::npos);
        capture->captureInfo.layers[0].slidingWindow = 81; // reaches every token before the cut
        QVERIFY(noted("snapkv:kvpress@0.5", "80").second.find("window of") == std::string::npos);
        auto& sinks = capture->captureInfo.layers[0].sinks;
        sinks.assign(capture->captureInfo.layers[0].gqaGroupOf.size(), 1);
        QVERIFY(noted("snapkv:kvpress@0.5", "80").second.find("not count the attention sinks") != std::string::npos);
        QVERIFY(noted("keydiff:kvpress@0.5", "80").second.find("attention sinks") == std::string::npos);
    }

    // whole_layers: every token of the layers of that kind, and in the others exactly the list without the parameter.
    void layersCanBeLeftWhole() {
        const auto capture = someCapture();
        capture->captureInfo.layers[1].slidingWindow = 30;
        const Fixture fixture;
        const auto keptIn = [&](int layer, const std::string& spec) {
            RunRequest request = requestOf(capture, spec);
            request.layer = LayerIndex(layer);
            return fixture.run(request);
        };
        for (const std::string policy :
             {"snapkv,window=8", "h2o,prompt_block=16", "balancekv,sink=8,recent=8", "subgen", "balancekv_stream"})
            for (const int sliding : {0, 1}) {
                const std::string kind = sliding == 1 ? "sliding" : "global";
                const auto whole = keptIn(sliding, policy + ",whole_layers=" + kind);
                for (const HeadSelection& head : whole->selection.heads) {
                    QCOMPARE(std::ssize(head.kept), std::ptrdiff_t{80});
                    QCOMPARE(head.kept.back(), TokenIndex{79});
                    QVERIFY(head.numeratorWeights.empty() && head.protectedTokens.empty());
                }
                for (const double error : whole->fidelity->meanOutputError) QVERIFY(error < 1e-6);
                QVERIFY(!whole->simulated && whole->steps.empty());
                const auto pruned = keptIn(1 - sliding, policy + ",whole_layers=" + kind);
                const auto plain = keptIn(1 - sliding, policy);
                QVERIFY2(pruned->selection.sameLists(plain->selection), policy.c_str());
                QCOMPARE(pruned->requested, plain->requested);
                QVERIFY(pruned->notes == plain->notes);
                const std::string note = "layer " + std::to_string(sliding) + " is left whole (whole_layers=" + kind;
                QVERIFY(std::ranges::any_of(whole->notes, [&](const auto& text) { return text.starts_with(note); }));
            }
        RunRequest logged = requestOf(capture, "balancekv,sink=8,recent=8,whole_layers=global");
        logged.recordSteps = true;
        const std::string refused = errorMessage([&] { (void)fixture.run(logged); });
        QVERIFY2(refused.find("layer 0 is left whole") != std::string::npos, refused.c_str());
        const auto whole = keptIn(1, "snapkv:kvpress,whole_layers=sliding");
        QCOMPARE(tokenDecisionOf(*whole, KvHeadIndex(0), 3).flipBudget, std::int64_t{0});
        capture->captureInfo.layers[1].slidingWindow = 0;
        const auto none = keptIn(0, "key_norm,whole_layers=sliding");
        QVERIFY(none->notes.back().find("the capture has no such layer") != std::string::npos);
    }

    void resultsAreWhole_data() {
        QTest::addColumn<QString>("spec");
        for (const std::string& spec : kSpecs) QTest::newRow(spec.c_str()) << QString::fromStdString(spec);
    }

    void resultsAreWhole() {
        QFETCH(QString, spec);
        const RunRequest request = requestOf(someCapture(), spec.toStdString());
        const auto result = Fixture().run(request);
        const bool exact = spec == "exact";
        QCOMPARE(result->visible, 80);
        QCOMPARE(result->requested, exact ? 80 : 20); // a quarter of what is visible, not of all 120
        QCOMPARE(result->selection.heads.size(), std::size_t{kKvHeads});
        for (const HeadSelection& head : result->selection.heads) {
            QCOMPARE(head.kept.size(), keptInLayer(*result));
            QVERIFY(std::is_sorted(head.kept.begin(), head.kept.end()) && head.kept.back() < 80);
        }
        QVERIFY(exact ? result->scores.empty() : result->scores.shape == Shape({kKvHeads, 80}));
        for (const auto& [name, part] : result->parts) QVERIFY(part.shape == result->scores.shape);
        QCOMPARE(result->simulated, spec.contains("prompt_block"));
        QCOMPARE(!result->steps.empty(), spec.contains("prompt_block"));
        QCOMPARE(result->anchor.empty(), !(spec == "keydiff" || spec == "keydiff:sliding_window"));
        QCOMPARE(result->fidelity->firstQuery, 80);
        QCOMPARE(result->fidelity->queryCount, 40);
        QVERIFY(!result->fidelity->seenQueries);
        QCOMPARE(result->engine, std::string("cpu"));
        if (exact)
            QCOMPARE(
                *std::max_element(result->fidelity->outputError.data.begin(), result->fidelity->outputError.data.end()),
                0.0F);
        QCOMPARE(storedBytes(*result), std::uint64_t{keptInLayer(*result)} * kKvHeads * 2 * kDim * 4);
    }

    void nothingAfterTheCutReachesThePolicy_data() { resultsAreWhole_data(); }

    void nothingAfterTheCutReachesThePolicy() {
        QFETCH(QString, spec);
        const auto capture = someCapture();
        const auto other = withAnotherFuture(*capture, 80);
        const auto a = Fixture().run(requestOf(capture, spec.toStdString()));
        const auto b = Fixture().run(requestOf(Capture(other), spec.toStdString()));
        QVERIFY(a->selection.sameLists(b->selection));
        const auto hasSameBits = [](float x, float y) { return std::memcmp(&x, &y, sizeof x) == 0; }; // NaN, too
        QVERIFY(std::ranges::equal(a->scores.data, b->scores.data, hasSameBits));
        if (spec != "exact")
            QVERIFY(a->fidelity->meanOutputError != b->fidelity->meanOutputError); // but it does enter the measures
    }

    void nothingDependsOnThreads_data() { resultsAreWhole_data(); }

    void nothingDependsOnThreads() {
        QFETCH(QString, spec);
        const RunRequest request = requestOf(someCapture(), spec.toStdString());
        const auto one = LayerRunner(std::make_shared<CountingEngine>(1)).run(request, {});
        const auto three = LayerRunner(std::make_shared<CountingEngine>(3)).run(request, {});
        QVERIFY(one->selection.sameLists(three->selection));
        QVERIFY(one->fidelity->meanOutputError == three->fidelity->meanOutputError);
        QVERIFY(one->fidelity->meanRetainedMass == three->fidelity->meanRetainedMass);
    }

    void selectionComesFirst() {
        const auto capture = someCapture();
        std::vector<std::shared_ptr<const RunResult>> partial;
        const auto keep = [&](std::shared_ptr<const RunResult> result) { partial.push_back(std::move(result)); };
        Fixture fixture;
        const auto whole = fixture.runner.run(requestOf(capture, "keydiff"), {}, keep);
        QCOMPARE(partial.size(), 1u);
        QVERIFY(!partial[0]->fidelity && whole->fidelity);
        QVERIFY(partial[0]->selection.sameLists(whole->selection));
        RunRequest unmeasured = requestOf(capture, "keydiff");
        unmeasured.measure = false;
        QVERIFY(!fixture.runner.run(unmeasured, {}, keep)->fidelity);
        QCOMPARE(partial.size(), 2u);
        QVERIFY(!errorMessage([&] { requireFidelity(*partial[1]); }).empty());
        QVERIFY(&requireFidelity(*whole) == whole->fidelity.get());
    }

    void aBudgetDragOnlySelects() {
        Fixture fixture;
        const auto capture = someCapture();
        fixture.run(requestOf(capture, "snapkv,window=8@0.5"));
        const auto result = fixture.run(requestOf(capture, "snapkv,window=8@0.4"));
        QVERIFY(result->times.featuresFromCache && result->times.scoresFromCache && !result->times.selectionFromCache);
        QCOMPARE(fixture.engine->count("attentionColumnSums"), 1);
        QCOMPARE(fixture.engine->count("exact attention"), 1); // measured anew, but against the same exact outputs
        QCOMPARE(fixture.engine->count("kept attention"), 2);
        const auto back = fixture.run(requestOf(capture, "snapkv,window=8@0.5")); // undo: nothing runs at all
        QVERIFY(back->times.selectionFromCache && back->times.fidelityFromCache);
        QCOMPARE(fixture.engine->count("kept attention"), 2);
    }

    void everyStageSaysWhatItTook() {
        const Fixture fixture;
        const RunRequest request = requestOf(someCapture(), "snapkv,window=8");
        const StageTimes times = fixture.run(request)->times;
        QVERIFY(times.readMs > 0 && times.featuresMs > 0 && times.combineMs > 0);
        QVERIFY(times.selectMs > 0 && times.measureMs > 0);
        const StageTimes again = fixture.run(request)->times; // what it once cost
        QCOMPARE(again.combineMs, times.combineMs);
        QCOMPARE(again.selectMs, times.selectMs);
        QCOMPARE(again.measureMs, times.measureMs);
        QVERIFY(fixture.run(requestOf(someCapture(), "keydiff,prompt_block=16"))->times.selectMs > 0);
    }

    void aCombineKnobKeepsFeatures() {
        Fixture fixture;
        const auto capture = someCapture();
        fixture.run(requestOf(capture, "snapkv,window=8"));
        const auto result = fixture.run(requestOf(capture, "snapkv,window=8,pool_width=7"));
        QVERIFY(result->times.featuresFromCache && !result->times.scoresFromCache);
        QCOMPARE(fixture.engine->count("attentionColumnSums"), 1);
        fixture.run(requestOf(capture, "snapkv,window=9,pool_width=7"));
        QCOMPARE(fixture.engine->count("attentionColumnSums"), 2);
    }

    void keysTellRequestsApart() {
        Fixture fixture;
        const auto capture = someCapture(), other = someCapture(2);
        const auto base = fixture.run(requestOf(capture, "key_norm"));
        RunRequest layer = requestOf(capture, "key_norm");
        layer.layer = LayerIndex(1);
        QVERIFY(!fixture.run(layer)->selection.sameLists(base->selection));
        QVERIFY(!fixture.run(requestOf(Capture(other), "key_norm"))->selection.sameLists(base->selection));
        QCOMPARE(fixture.run(requestOf(capture, "key_norm", "60"))->visible, 60);
        QCOMPARE(fixture.engine->count("rowNorms"), 4);
        RunRequest seeded = requestOf(capture, "key_norm");
        seeded.seed = 7; // draws no random number, so nothing is computed again
        fixture.run(seeded);
        QCOMPARE(fixture.engine->count("rowNorms"), 4);
        RunRequest uniform = requestOf(capture, "uniform");
        const auto first = fixture.run(uniform);
        uniform.seed = 7;
        QVERIFY(!fixture.run(uniform)->selection.sameLists(first->selection));
    }

    void aNewReaderIsANewCapture() {
        Fixture fixture;
        {
            const auto capture = someCapture(1);
            fixture.run(requestOf(capture, "key_norm"));
        }
        const auto reloaded = someCapture(2); // perhaps at the very address of the first
        const auto result = fixture.run(requestOf(reloaded, "key_norm"));
        QVERIFY(result->selection.sameLists(Fixture().run(requestOf(reloaded, "key_norm"))->selection));
        QCOMPARE(fixture.engine->count("rowNorms"), 2);
    }

    void aTinyCacheIsOnlySlow() {
        const auto engine = std::make_shared<CountingEngine>();
        const LayerRunner tiny(engine, 1);
        const auto capture = someCapture();
        for (const std::string& spec : kSpecs) {
            const RunRequest request = requestOf(capture, spec);
            QVERIFY(tiny.run(request, {})->selection.sameLists(Fixture().run(request)->selection));
        }
    }

    void twoThreadsComputeOnce() {
        Fixture fixture;
        const RunRequest request = requestOf(someCapture(), "keydiff");
        std::vector<std::future<std::shared_ptr<const RunResult>>> runs;
        for (int i = 0; i < 4; ++i)
            runs.push_back(std::async(std::launch::async, [&] { return fixture.run(request); }));
        const auto first = runs[0].get();
        for (std::size_t i = 1; i < runs.size(); ++i) QVERIFY(runs[i].get()->selection.sameLists(first->selection));
        QCOMPARE(fixture.engine->count("anchor"), 1);
        QCOMPARE(fixture.engine->count("kept attention"), 1);
    }

    void cancelledRunsLeaveNoTrace() {
        Fixture fixture;
        const RunRequest request = requestOf(someCapture(), "keydiff");
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_THROWS_EXCEPTION(Cancelled, fixture.runner.run(request, Checkpoint(stop.get_token())));
        QVERIFY(fixture.run(request)->fidelity);
    }

    void cutNoneEvaluatesOnSeenQueries() {
        const auto result = Fixture().run(requestOf(someCapture(), "key_norm", "none"));
        QCOMPARE(result->visible, kTokens);
        QVERIFY(result->fidelity->seenQueries);
        QCOMPARE(result->fidelity->firstQuery, 0); // 256 would be more than there are
        QCOMPARE(result->fidelity->queryCount, kTokens);
        QCOMPARE(result->requested, 30);
    }

    void fewerQueriesThanWanted() {
        const auto capture = someCapture();
        forgetQueries(*capture, 30); // queries 90 to 119
        const auto early = Fixture().run(requestOf(capture, "key_norm", "80"));
        QCOMPARE(early->fidelity->firstQuery, 90);
        QCOMPARE(early->fidelity->queryCount, 30);
        QCOMPARE(early->notes,
                 std::vector<std::string>({"measured on the last 30 of 40 queries after the cut: the capture "
                                           "holds no others"}));
        const auto late = Fixture().run(requestOf(capture, "snapkv,window=8", "95")); // queries 90 to 94 are seen
        QCOMPARE(late->fidelity->firstQuery, 95);
        QCOMPARE(late->notes.size(), 1u);
        QVERIFY(late->notes[0].find("5 of its 8 window queries") != std::string::npos);
        const std::string none = errorMessage([&] { Fixture().run(requestOf(capture, "snapkv,window=8", "80")); });
        QVERIFY2(none.find("needs queries before token 80") != std::string::npos, none.c_str());
    }

    void withoutQueriesThereIsNoMeasure() {
        const auto capture = someCapture();
        forgetQueries(*capture, 0);
        capture->tensors.erase({LayerIndex(0), TensorRole::Queries});
        const auto result = Fixture().run(requestOf(capture, "keydiff"));
        QVERIFY(!result->fidelity);
        const std::string message = errorMessage([&] { requireFidelity(*result); });
        QVERIFY2(message.find("holds no queries") != std::string::npos, message.c_str());
    }

    void blockRunsMarkWhatLeftTheCache() {
        const auto result = Fixture().run(requestOf(someCapture(), "key_norm,prompt_block=16"));
        const auto kept = result->selection.heads[0].kept;
        std::int64_t scored = 0;
        for (TokenIndex t = 0; t < 80; ++t) {
            const bool hasScore = !std::isnan(result->scores.data[static_cast<std::size_t>(t)]);
            scored += hasScore ? 1 : 0;
            QVERIFY(hasScore || !std::binary_search(kept.begin(), kept.end(), t));
        }
        QCOMPARE(scored, 20 + 16); // the cache and the last block
    }

    void errorsOfTheRequest() {
        Fixture fixture;
        const auto capture = someCapture();
        RunRequest request = requestOf(capture, "keydiff");
        request.budget = Budget::parse("81t");
        QVERIFY(errorMessage([&] { fixture.run(request); }).find("80 tokens lie before the cut") != std::string::npos);
        request = requestOf(capture, "keydiff");
        request.layer = LayerIndex(5);
        QVERIFY(!errorMessage([&] { fixture.run(request); }).empty());
    }

    void tensorsAreShared() {
        Fixture fixture;
        const auto capture = someCapture();
        const Tensor keys = fixture.runner.tensor(capture, LayerIndex(0), TensorRole::Keys, {});
        QVERIFY(keys.shape() == Shape({kKvHeads, kTokens, kDim}));
        QVERIFY(keys.storage() == fixture.runner.tensor(capture, LayerIndex(0), TensorRole::Keys, {}).storage());
    }
};

KVSCOPE_TEST(LayerRunnerTest)
#include "layer_runner_test.moc"
