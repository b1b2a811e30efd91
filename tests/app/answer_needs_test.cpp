// What the answer of a live context needs: asked of the worker once, and what kept lists make of it against loops over
// their tokens. The worker has no model: its numbers are functions of the places.
#include "app/study/answer_needs.h"
#include "app/study/live_rows.h"
#include "app/study/makers/view_data_maker.h"
#include "tests/app/answer_context.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/error_message.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"
#include "views/answer_needs/answer_needs_data.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace kvscope;
using namespace kvscope::testing;

namespace {

double scoreAt(int layer, int head, TokenIndex token) {
    return (100 * layer + 10 * head + static_cast<double>(token) / 8) * (token % 2 == 0 ? 1 : -1);
}

HeadSelection randomHead(std::mt19937& random) {
    HeadSelection head;
    for (TokenIndex token = 0; token < kCut; ++token)
        if (random() % 3 == 0) head.kept.push_back(token);
    return head;
}

} // namespace

class AnswerNeedsTest : public QObject {
    Q_OBJECT

private slots:
    void chunksAreAskedForOnce() {
        const FakeWorker fake(contextWith(true).get());
        const LayerRunner runner = testing::cpuRunner(1);
        const auto capture = opened(fake);
        const AnswerNeeds needs(runner, capture);
        QCOMPARE(needs.fullLoss({}), 0.5);
        std::vector<std::size_t> known;
        const auto rises = needs.chunkRises(2, {}, [&](const std::vector<double>& some, std::size_t answered) {
            known.push_back(
                static_cast<std::size_t>(std::ranges::count_if(some, [](double rise) { return std::isfinite(rise); })));
            QCOMPARE(answered, known.back());
        });
        QCOMPARE(rises.size(), std::size_t{31}); // two requests of 16 and 15
        QCOMPARE(known, (std::vector<std::size_t>{16, 31}));
        for (std::size_t i = 0; i < rises.size(); ++i) {
            const double begin = 2.0 * static_cast<double>(i), end = std::min<double>(begin + 2, kCut);
            QCOMPARE(rises[i], begin + end / 1024 + (i < 16 ? 4096 : 8192) - 0.5);
        }
        QCOMPARE(AnswerNeeds(runner, capture).chunkRises(2, {}), rises); // another answer would be another number
        QVERIFY(needs.chunkRises(32, {}) != rises);
    }

    /// One loss that is not finite leaves the others theirs; where none is finite, that is said.
    void aChunkWithoutALossIsUnknown() {
        const FakeWorker fake(contextWith(true).get());
        const LayerRunner runner = testing::cpuRunner(1);
        const AnswerNeeds needs(runner, opened(fake, "overflows"));
        std::vector<std::size_t> told;
        const auto rises =
            needs.chunkRises(2, {}, [&](const auto&, std::size_t answered) { told.push_back(answered); });
        QCOMPARE(told, (std::vector<std::size_t>{16, 31}));
        for (std::size_t i = 0; i < rises.size(); ++i) QCOMPARE(std::isnan(rises[i]), i % 16 == 1);
    }

    void scoresAreOfLayerHeadAndToken() {
        const FakeWorker fake(contextWith(true).get());
        const LayerRunner runner = testing::cpuRunner(1);
        const auto scores = AnswerNeeds(runner, opened(fake)).tokenScores(3, {});
        QVERIFY(scores->shape[0] == 2 && scores->shape[1] == 2 && scores->shape[2] == kCut);
        for (const int layer : {0, 1})
            for (const int head : {0, 1})
                for (TokenIndex token = 0; token < kCut; ++token)
                    QCOMPARE(double(scores->data[std::size_t((layer * 2 + head) * kCut + token)]),
                             scoreAt(layer, head, token));
    }

    void listsAgainstLoops() {
        std::mt19937 random(11);
        std::vector<Selection> selections(2);
        std::vector<live::LayerSelection> layers;
        for (int layer = 0; layer < 2; ++layer) {
            for (int head = 0; head < 2; ++head) selections[layer].heads.push_back(randomHead(random));
            layers.push_back({LayerIndex(layer), &selections[layer]});
        }
        HeadSelection& shared = selections[1].heads[0]; // its query heads keep sets of their own
        shared.queryHeads = {{0, randomHead(random).kept}, {1, randomHead(random).kept}};
        HostTensor scores{{2, 2, kCut}, {}};
        for (int row = 0; row < 4; ++row)
            for (TokenIndex token = 0; token < kCut; ++token)
                scores.data.push_back(static_cast<float>(scoreAt(row / 2, row % 2, token)));
        const auto rises = predictedRises(layers, scores);
        const auto chunks = chunksOf(kCut, 8);
        const auto shares = keptShares(layers, chunks);
        QVERIFY(chunks.back() == TokenRange(56, kCut));
        std::vector<double> wanted(chunks.size(), 0);
        const auto keeps = [](const std::vector<TokenIndex>& kept, TokenIndex token) {
            return std::ranges::find(kept, token) != kept.end();
        };
        for (int layer = 0; layer < 2; ++layer)
            for (int head = 0; head < 2; ++head) {
                const HeadSelection& own = selections[layer].heads[head];
                double rise = 0;
                for (TokenIndex token = 0; token < kCut; ++token) {
                    if (!keeps(own.kept, token)) rise += scoreAt(layer, head, token);
                    double kept = keeps(own.kept, token);
                    if (!own.queryHeads.empty())
                        kept = 0.5 * (keeps(own.queryHeads[0].kept, token) + keeps(own.queryHeads[1].kept, token));
                    const std::size_t chunk = static_cast<std::size_t>(token) / 8;
                    wanted[chunk] += kept / 4 / static_cast<double>(chunks[chunk].second - chunks[chunk].first);
                }
                if (own.queryHeads.empty())
                    QVERIFY(std::abs(rises[layer][head] - rise) < 1e-3);
                else
                    QVERIFY(std::isnan(rises[layer][head]));
            }
        for (std::size_t i = 0; i < chunks.size(); ++i) QVERIFY(std::abs(shares[i] - wanted[i]) < 1e-12);
    }

    /// A budget step asks for the panes alone, and tells nothing until all of them are there.
    void theViewsDataAreThoseOfTheParts() {
        const FakeWorker fake(contextWith(true).get());
        const LayerRunner runner = testing::cpuRunner(1);
        const auto capture = opened(fake);
        ViewDataRequest request;
        request.capture = capture;
        request.layer = LayerIndex(0);
        request.cut = Cut::resolve(std::to_string(kCut), *capture);
        request.options = ParameterValues(viewById("answer_needs").card().options);
        request.options.set("chunk", 8);
        request.options.set("steps", 3);
        const ViewDataMaker& maker = *makerFor(viewById("answer_needs"));
        int partial = 0;
        const auto made = [&](const char* spec) {
            request.panes = {PaneRequest{runRequest(capture, spec, std::to_string(kCut)), {}}};
            partial = 0;
            return std::dynamic_pointer_cast<const AnswerNeedsData>(
                maker.make(runner, request, {}, [&](const auto&) { ++partial; }));
        };
        const auto data = made("keydiff@20t");
        QVERIFY(partial >= 3); // chunks, scores, the pane
        const AnswerNeeds needs(runner, capture);
        QCOMPARE(data->rises, needs.chunkRises(8, {}));
        for (TokenIndex token = 0; token < kCut; ++token)
            QCOMPARE(data->scores[static_cast<std::size_t>(token)],
                     scoreAt(0, 0, token) + scoreAt(0, 1, token) + scoreAt(1, 0, token) + scoreAt(1, 1, token));
        LiveRow row{.pane = request.panes.front()};
        double predicted = 0, kept = 0;
        sendRow(row, runner, needs.answers(), {}, [&](const auto& layers) {
            for (const auto& layer : predictedRises(layers, *needs.tokenScores(3, {})))
                for (const double head : layer) predicted += head;
            kept = keptShares(layers, data->chunks).at(2);
        });
        askRows(std::span(&row, 1), needs.answers(), {.mostTokens = 0}, {});
        const AnswerNeedsData::Pane& pane = data->panes.at(0);
        QCOMPARE(pane.rise, row.expected->nll - 0.5);
        QCOMPARE(pane.predicted, predicted);
        QCOMPARE(pane.kept.at(2), kept);
        const auto next = made("keydiff@9t");
        QCOMPARE(partial, 0);
        QCOMPARE(next->rises, data->rises);
        QVERIFY(next->panes.at(0).rise != pane.rise);
    }

    /// The scores are of the tokens before the cut at which the model read the context.
    void risesOfAnotherCutAreRefused() {
        const FakeWorker fake(contextWith(true).get());
        const LayerRunner runner = testing::cpuRunner(1);
        const auto capture = opened(fake);
        const View& view = viewById("head_grid");
        const auto risesAt = [&](const char* cut) {
            ViewDataRequest request;
            request.capture = capture;
            request.layer = LayerIndex(0);
            request.cut = Cut::resolve(cut, *capture);
            request.options = ParameterValues(view.card().options);
            request.options.setText("quantity", "answer_rise");
            request.panes = {PaneRequest{runRequest(capture, "keydiff@20t", cut), {}}};
            return errorText([&] { makerFor(view)->make(runner, request, {}, [](const auto&) {}); });
        };
        QCOMPARE(risesAt("61"), QString());
        for (const auto& [cut, said] :
             {std::pair{"50", "chosen at 50"}, {"70", "chosen at 70"}, {"none", "without a cut"}})
            QVERIFY2(risesAt(cut).contains(said), cut);
    }

    void whereNothingCanBeAsked() {
        const LayerRunner runner = testing::cpuRunner(1);
        const auto why = [&](const std::shared_ptr<const CaptureReader>& capture) {
            return errorText([&] { AnswerNeeds(runner, capture); });
        };
        QVERIFY(why(contextWith(true)).contains("there is none behind a capture"));
        const FakeWorker fake(contextWith(false).get());
        QVERIFY(why(opened(fake)).contains("no answer is expected"));
    }
};

KVSCOPE_CORE_TEST(AnswerNeedsTest)
#include "answer_needs_test.moc"
