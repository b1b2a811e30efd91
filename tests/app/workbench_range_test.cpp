// The shown part of a view: it asks for nothing of others, and slow data wait until it rests.
#include "tests/app/manual_workbench.h"
#include "tests/support/test_program.h"
#include "views/attention_map/attention_map_data.h"
#include "views/view.h"

#include <QSignalSpy>
#include <QTest>

#include <algorithm>

using namespace kvscope;
using namespace std::chrono_literals;
using kvscope::testing::kSample;
using kvscope::testing::ManualExecutor;

namespace {

constexpr Viewport::Range kPart{200, 400, 500, 700};

std::unique_ptr<Workbench> makeWorkbench(ManualExecutor& executor) {
    auto bench = kvscope::testing::manualWorkbench(executor);
    bench->showView(viewById("key_projection"));
    bench->showView(viewById("attention_map"));
    return bench;
}

} // namespace

class WorkbenchRangeTest : public QObject {
    Q_OBJECT

private slots:
    // The part that a view shows is nobody else's business.
    void anotherPartAsksForNothingElse() {
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        bench->openCapture(kSample);
        executor.runAll();
        const QSignalSpy session(bench.get(), &Workbench::sessionChanged), range(bench.get(), &Workbench::rangeChanged);
        const QSignalSpy data(bench.get(), &Workbench::dataChanged);
        bench->setRange(viewById("key_projection"), Viewport::Range{0, 1, 0, 1}); // has the same data in every part
        QVERIFY(executor.tasks.empty() && data.empty());
        bench->setRange(viewById("attention_map"), kPart);
        bench->setRange(viewById("attention_map"), kPart);
        QCOMPARE(range.count(), 2);
        QCOMPARE(range.at(1).at(0).toString(), QString("attention_map"));
        QVERIFY(session.empty() && !bench->history().canUndo());
        QVERIFY(bench->session().look.ranges.at("attention_map").xMin == kPart.xMin && !bench->history().isSaved());
        bench->setRange(viewById("attention_map"), std::nullopt);
        QVERIFY(!bench->session().look.ranges.contains("attention_map"));
        QCOMPARE(range.count(), 3);
    }

    // Another layer's lists, known already, arrive before its map.
    void noPictureMixesTwoLayers() {
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        const View& map = viewById("attention_map");
        bench->openCapture(kSample);
        const auto show = [&](int layer) { bench->change([&](Session& s) { s.layer = LayerIndex(layer); }, "Layer"); };
        for (const int layer : {0, 1, 0}) {
            show(layer);
            executor.settle();
        }
        ViewInput before;
        int looks = 0;
        const auto look = [&] {
            ++looks;
            const ViewInput input = bench->drawn(map).input;
            QCOMPARE(input.data.value == before.data.value, input.panes[0].result == before.panes[0].result);
        };
        QObject looking; // until it goes
        connect(bench.get(), &Workbench::paneChanged, &looking, look);
        connect(bench.get(), &Workbench::dataChanged, &looking, look);
        for (const int layer : {1, 2}) { // of 2 nothing is known
            before = bench->drawn(map).input;
            QVERIFY(before.data.value);
            looks = 0;
            show(layer);
            QVERIFY(looks > 0 && bench->drawn(map).isOutdated);
            std::ranges::reverse(executor.tasks); // the map is there before the lists
            executor.settle();
            QVERIFY(!bench->drawn(map).isOutdated && bench->drawn(map).input.data.value != before.data.value);
        }
    }

    // Headlines are read where no canvas shows them.
    void aHiddenViewForgetsAnotherLayersData() {
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        bench->openCapture(kSample);
        executor.settle();
        bench->hideView(viewById("attention_map"));
        QVERIFY(bench->viewInput(viewById("attention_map")).data.value);
        bench->change([](Session& s) { s.layer = LayerIndex(0); }, "Layer");
        QVERIFY(!bench->viewInput(viewById("attention_map")).data.value);
    }

    // What takes long is not begun at every step of a movement, and then once, for where it ended.
    void slowDataWaitForTheHandToRest() {
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        bench->openCapture(kSample);
        executor.runTask();
        while (executor.deliver()) {
        }
        executor.clock.advance(40ms); // the whole map takes so long
        executor.runAll();
        const auto keys = [&] {
            return dataAs<AttentionMapData>(bench->viewInput(viewById("attention_map")))->keyBegin;
        };
        for (double moved = 0; moved < 4; ++moved) {
            bench->setRange(viewById("attention_map"), Viewport::Range{100 + moved, 300 + moved, 100, 300});
            QVERIFY(executor.tasks.empty());
            QVERIFY(bench->viewInput(viewById("attention_map")).data.computing);
            QCOMPARE(keys(), 0); // the old picture stays
        }
        executor.clock.advance(79ms);
        QVERIFY(executor.tasks.empty());
        executor.clock.advance(1ms);
        QCOMPARE(executor.tasks.size(), std::size_t{1});
        executor.runAll();
        QCOMPARE(keys(), 103);
        QVERIFY(!bench->viewInput(viewById("attention_map")).data.computing);
        // That part was there at once, and so is the next one asked for.
        bench->setRange(viewById("attention_map"), Viewport::Range{700, 710, 800, 810});
        QCOMPARE(executor.tasks.size(), std::size_t{1});
    }

    // A part that is there at once (from the cache, say) does not make the next one quick: what is taken back again and
    // again is seen to be slow.
    void whatIsNeverDoneIsSlow() {
        ManualExecutor executor;
        const auto bench = makeWorkbench(executor);
        bench->openCapture(kSample);
        executor.runAll();
        bench->change([&](Session& s) { s.look.ranges["attention_map"] = {500, 510, 600, 610}; }, "Range");
        executor.runAll();
        for (double moved = 0; moved < 6; ++moved) {
            bench->setRange(viewById("attention_map"), Viewport::Range{100 + moved, 300 + moved, 100, 300});
            executor.clock.advance(10ms);
        }
        const std::size_t begun = executor.tasks.size();
        while (executor.runTask()) {
        }
        QVERIFY(begun <= 4);
        bench->setRange(viewById("attention_map"), Viewport::Range{110, 310, 100, 300});
        QVERIFY(executor.tasks.empty()); // it waits
        executor.clock.advance(80ms);
        QCOMPARE(executor.tasks.size(), std::size_t{1});
    }

    // Hidden, closed or asked for something else meanwhile: nothing is begun for what nobody wants any more.
    void whatWaitsIsForgottenWithItsView() {
        for (const int how : {0, 1, 2}) {
            ManualExecutor executor;
            const auto bench = makeWorkbench(executor);
            bench->openCapture(kSample);
            executor.runTask();
            while (executor.deliver()) {
            }
            executor.clock.advance(40ms);
            executor.runAll();
            bench->setRange(viewById("attention_map"), kPart);
            QVERIFY(executor.tasks.empty());
            if (how == 0)
                bench->hideView(viewById("attention_map"));
            else if (how == 1)
                bench->closeCapture();
            else
                bench->change([](Session& s) { setViewOption(s, "attention_map", "map", "non_causal"); }, "Map");
            executor.runAll();
            const auto shown = bench->viewInput(viewById("attention_map")).data.value;
            executor.clock.advance(80ms);
            QVERIFY(executor.tasks.empty());
            QVERIFY(bench->viewInput(viewById("attention_map")).data.value == shown);
            QVERIFY(how != 2 || !bench->viewInput(viewById("attention_map")).data.computing);
        }
    }
};

KVSCOPE_CORE_TEST(WorkbenchRangeTest)
#include "workbench_range_test.moc"
