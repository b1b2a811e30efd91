// A device that runs out of memory, loses its numbers or is slow to stop, played by the CPU engine: results stay right,
// nothing is uploaded twice without need, and the notice says what happened.
#include "core/capture/memory_capture.h"
#include "core/engine/tensors_lost.h"
#include "core/run/run.h"
#include "core/studies/sweep.h"
#include "tests/parity/fake_device.h"
#include "tests/support/test_program.h"
#include "tests/support/thread_state.h"

#include <QtTest>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>

using namespace kvscope;

namespace {

HostTensor someRows(std::int64_t heads, std::int64_t n, std::int64_t d, float shift = 0) {
    HostTensor rows{Shape{heads, n, d}, {}};
    for (std::int64_t i = 0; i < heads * n * d; ++i)
        rows.data.push_back(std::sin(static_cast<float>(i) * 0.7F) + shift);
    return rows;
}

std::vector<float> normsOnCpu(const HostTensor& rows) {
    const auto cpu = makeCpuEngine(1);
    return cpu->download(cpu->rowNorms(cpu->upload(rows), {})).data;
}

std::vector<float> normsOn(const Engine& engine, const Tensor& rows) {
    return engine.download(engine.rowNorms(rows, {})).data;
}

} // namespace

class ResidentEngineTest : public QObject {
    Q_OBJECT

private slots:
    void aTensorIsUploadedOnceAndOnlyWhenItIsNeeded() {
        const Fixture fixture;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        QCOMPARE(fixture.device->calls["upload"], 0);
        for (int i = 0; i < 3; ++i)
            QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.device->calls["upload"], 1);
        QCOMPARE(fixture.engine->state().residentBytes, std::size_t{2 * 30 * 4 * 4}); // the norms were let go
        QVERIFY(fixture.engine->state().notice.empty());
    }

    void rowsShareTheNumbersWhereverTheyAre() {
        const Fixture fixture;
        const HostTensor whole = someRows(3, 20, 2);
        const Tensor part = fixture.engine->rows(fixture.engine->rows(fixture.engine->upload(whole), 4, 18), 1, 6);
        const auto cpu = makeCpuEngine(1);
        const HostTensor expected = cpu->download(cpu->rows(cpu->upload(whole), 5, 10));
        QVERIFY(fixture.engine->download(part).shape == expected.shape);
        QCOMPARE(fixture.engine->download(part).data, expected.data);                        // on the host
        QCOMPARE(normsOn(*fixture.engine, part), normsOnCpu(expected));                      // on the device
        const Tensor norms = fixture.engine->rows(fixture.engine->rowNorms(part, {}), 2, 4); // of a result
        QCOMPARE(fixture.engine->download(norms).shape[1], std::int64_t{2});
        QCOMPARE(fixture.engine->download(norms).data[0], normsOnCpu(expected)[2]);
    }

    void theLeastRecentlyUsedLeavesFirst() {
        constexpr std::size_t kLayer = 2 * 50 * 4 * 4, kNorms = 2 * 50 * 4;
        const Fixture fixture(3 * kLayer + kNorms);
        std::vector<Tensor> layers;
        for (int i = 0; i < 4; ++i)
            layers.push_back(fixture.engine->upload(someRows(2, 50, 4, static_cast<float>(i))));
        for (const int i : {0, 1, 2, 0, 3}) // 1 is the oldest when 3 comes
            normsOn(*fixture.engine, layers[static_cast<std::size_t>(i)]);
        QCOMPARE(fixture.device->calls["upload"], 4);
        QVERIFY(fixture.engine->state().residentBytes <= fixture.engine->state().memoryBytes);
        normsOn(*fixture.engine, layers[0]);
        QCOMPARE(fixture.device->calls["upload"], 4);
        QCOMPARE(normsOn(*fixture.engine, layers[1]), normsOnCpu(someRows(2, 50, 4, 1)));
        QCOMPARE(fixture.device->calls["upload"], 5);
    }

    void resultsThatMustGoComeBack() {
        const Fixture fixture(2 * 50 * 4 * 4); // one layer, nothing beside it
        const Tensor first = fixture.engine->upload(someRows(2, 50, 4)),
                     second = fixture.engine->upload(someRows(2, 50, 4, 9));
        const Tensor norms = fixture.engine->rowNorms(first, {});
        fixture.engine->rowNorms(second, {});
        QVERIFY(fixture.device->calls["download"] >= 1); // the norms had to be saved
        QCOMPARE(fixture.engine->download(norms).data, normsOnCpu(someRows(2, 50, 4)));
        QCOMPARE(fixture.engine->download(fixture.engine->scale(norms, 1)).data, normsOnCpu(someRows(2, 50, 4)));
    }

    void outOfMemoryMakesBatchesSmallerFirst() {
        const Fixture fixture;
        fixture.device->shrinksLeft = 3;
        fixture.device->outOfMemory["rowNorms"] = 2;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.device->calls["rowNorms"], 3);
        QCOMPARE(fixture.device->shrinksLeft, 1);
        QCOMPARE(fixture.engine->state().notice, std::string("GPU memory is full: smaller batches"));
    }

    void thenTheCallRunsOnTheCpuAndTheNextOneOnTheDevice() {
        const Fixture fixture;
        fixture.device->outOfMemory["rowNorms"] = 1;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4)), norms = fixture.engine->rowNorms(rows, {});
        QCOMPARE(fixture.engine->download(norms).data, normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.engine->state().notice, std::string("GPU memory is full: rowNorms ran on the CPU"));
        const int before = fixture.device->calls["scale"];
        fixture.engine->scale(norms, 2); // a result of the CPU goes to the device
        QCOMPARE(fixture.device->calls["scale"], before + 1);
    }

    void memoryThatIsFullForUploadsIsNoFailureEither() {
        const Fixture fixture;
        fixture.device->outOfMemory["upload"] = 1;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QVERIFY(!fixture.engine->state().notice.empty());
    }

    void aCallThatTheDeviceRefusesRunsOnTheCpuWithOneLine() {
        const Fixture fixture;
        fixture.device->refused = "rowNorms";
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.engine->state().notice, std::string("The GPU could not run rowNorms: it ran on the CPU"));
        fixture.engine->anchor(rows, AnchorKind::Mean, {});
        QCOMPARE(fixture.device->calls["anchor"], 1); // the device goes on
    }

    void numbersThatTheDeviceDoesNotGiveBackAreLost() {
        const Fixture fixture;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4)), norms = fixture.engine->rowNorms(rows, {});
        fixture.device->refused = "download";
        QVERIFY_EXCEPTION_THROWN(fixture.engine->download(norms), TensorsLost);
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
    }

    // Making room copies results to the host; a device that is lost then is lost, and nothing escapes.
    void aDeviceMayBeLostWhileRoomIsMade() {
        const Fixture fixture;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4)), norms = fixture.engine->rowNorms(rows, {});
        fixture.device->outOfMemory["anchor"] = 1;
        fixture.device->goneFrom = "download";
        const auto cpu = makeCpuEngine(1);
        QCOMPARE(fixture.engine->download(fixture.engine->anchor(rows, AnchorKind::Mean, {})).data,
                 cpu->download(cpu->anchor(cpu->upload(someRows(2, 30, 4)), AnchorKind::Mean, {})).data);
        QCOMPARE(fixture.engine->state().notice, std::string("The GPU stopped answering: going on with the CPU"));
    }

    void aLostDeviceLeavesWhatTheHostHas() {
        const Fixture fixture;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4)), norms = fixture.engine->rowNorms(rows, {});
        fixture.device->goneFrom = "anchor";
        const Tensor anchor = fixture.engine->anchor(rows, AnchorKind::Mean, {}); // uploaded rows are still on the host
        const auto cpu = makeCpuEngine(1);
        QCOMPARE(fixture.engine->download(anchor).data,
                 cpu->download(cpu->anchor(cpu->upload(someRows(2, 30, 4)), AnchorKind::Mean, {})).data);
        QCOMPARE(fixture.engine->state().notice, std::string("The GPU stopped answering: going on with the CPU"));
        QCOMPARE(fixture.engine->state().residentBytes, std::size_t{0});
        QVERIFY_EXCEPTION_THROWN(fixture.engine->download(norms), TensorsLost); // a result that only the device had
        QVERIFY_EXCEPTION_THROWN(fixture.engine->scale(norms, 2), TensorsLost);
        const int before = fixture.device->calls["rowNorms"];
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.device->calls["rowNorms"], before); // it is never asked again
    }

    void aRunSurvivesTheLossOfItsDevice() {
        const auto capture = makeRandomCapture(7, 120, 1, 4, 2, 8);
        RunRequest request;
        request.capture = capture;
        request.policy = PolicySpec::parse("keydiff");
        request.budget = Budget::parse("0.25");
        request.cut = Cut::resolve("80", *capture);
        const LayerRunner plain{std::shared_ptr<const Engine>(makeCpuEngine(1))};
        for (const char* call : {"anchor", "similarity", "topK", "download", "kept attention", "upload"}) {
            const Fixture fixture;
            fixture.device->goneFrom = call;
            const LayerRunner runner(fixture.engine);
            const auto result = runner.run(request, {});
            QVERIFY2(fixture.device->gone, call);
            QVERIFY2(result->selection.sameLists(plain.run(request, {})->selection), call);
            QVERIFY2(result->fidelity, call);
            const std::vector<std::string> notes = runner.run(request, {})->notes;
            QVERIFY2(std::find(notes.begin(), notes.end(), "The GPU stopped answering: going on with the CPU") !=
                         notes.end(),
                     call);
        }
    }

    void whatIsBroughtAheadIsNotUploadedAgain() {
        const Fixture fixture;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4)), part = fixture.engine->rows(rows, 3, 20);
        fixture.engine->prefetch(part); // the whole: rows share their numbers
        fixture.engine->prefetch(rows);
        QCOMPARE(fixture.device->calls["uploadOnCopyStream"], 1);
        QCOMPARE(fixture.engine->state().residentBytes, std::size_t{2 * 30 * 4 * 4});
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.device->calls["upload"], 0);
        const Tensor norms = fixture.engine->rowNorms(rows, {}); // there already, and nowhere else
        fixture.engine->prefetch(norms);
        fixture.engine->prefetch(Tensor());
        QCOMPARE(fixture.device->calls["uploadOnCopyStream"], 1);
    }

    void bringingAheadThrowsNobodyOut() {
        const std::size_t bytes = 1 * 16 * 4 * 4;
        const Fixture fixture(2 * bytes);
        std::vector<Tensor> tensors;
        for (int i = 0; i < 3; ++i) {
            tensors.push_back(fixture.engine->upload(someRows(1, 16, 4, static_cast<float>(i))));
            fixture.engine->prefetch(tensors.back());
        }
        QCOMPARE(fixture.device->calls["uploadOnCopyStream"], 2);
        QCOMPARE(fixture.engine->state().residentBytes, 2 * bytes);
        QCOMPARE(normsOn(*fixture.engine, tensors[0]), normsOnCpu(someRows(1, 16, 4, 0)));
        QCOMPARE(fixture.device->calls["upload"], 0); // it is still there
    }

    // The copy ends only after a primitive on another tensor has ended: whoever held the other up would wait in vain.
    void primitivesGoOnWhileATensorIsCopied() {
        Fixture fixture;
        std::promise<void> begun, computed;
        fixture.device->duringCopy = [&, waiting = computed.get_future().share()] {
            begun.set_value();
            QVERIFY(waiting.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
        };
        const Tensor next = fixture.engine->upload(someRows(2, 40, 4, 1)),
                     now = fixture.engine->upload(someRows(2, 40, 4));
        auto copying = std::async(std::launch::async, [&] { fixture.engine->prefetch(next); });
        begun.get_future().wait();
        QCOMPARE(normsOn(*fixture.engine, now), normsOnCpu(someRows(2, 40, 4)));
        computed.set_value();
        copying.get();
        QCOMPARE(normsOn(*fixture.engine, next), normsOnCpu(someRows(2, 40, 4, 1)));
        QCOMPARE(fixture.device->calls["upload"], 1); // `now` alone
    }

    // A primitive that needs a tensor which is on its way waits for it instead of sending it again.
    void aTensorOnItsWayIsNotSentTwice() {
        Fixture fixture;
        std::promise<void> begun;
        std::atomic<bool> isAsked = false;
        fixture.device->duringCopy = [&, primitive = gettid()] { // until the primitive waits, or sends it again
            begun.set_value();
            while (!isAsked || (!kvscope::testing::isAsleep(primitive) && fixture.device->count("upload") == 0))
                std::this_thread::yield();
        };
        const Tensor rows = fixture.engine->upload(someRows(2, 40, 4));
        auto copying = std::async(std::launch::async, [&] { fixture.engine->prefetch(rows); });
        begun.get_future().wait();
        const std::vector<float> expected = normsOnCpu(someRows(2, 40, 4));
        isAsked = true;
        QCOMPARE(normsOn(*fixture.engine, rows), expected);
        copying.get();
        QCOMPARE(fixture.device->calls["upload"], 0);
        fixture.device->duringCopy = nullptr;
        fixture.device->outOfMemory["uploadOnCopyStream"] = 1; // a copy that fails holds nobody up
        const Tensor others = fixture.engine->upload(someRows(2, 40, 4, 3));
        fixture.engine->prefetch(others);
        QCOMPARE(normsOn(*fixture.engine, others), normsOnCpu(someRows(2, 40, 4, 3)));
    }

    // The status bar asks while a layer is on its way to the device, and must not wait for it.
    void theStateIsToldDuringAnUpload() {
        Fixture fixture;
        bool told = false;
        std::future<EngineState> state;
        fixture.device->duringUpload = [&] {
            state = std::async(std::launch::async, [&] { return fixture.engine->state(); });
            told = state.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
        };
        normsOn(*fixture.engine, fixture.engine->upload(someRows(2, 40, 4)));
        state.wait();
        QVERIFY(told);
    }

    void whatCannotBePrefetchedIsUploadedInItsTurn() {
        const Fixture full;
        const Tensor rows = full.engine->upload(someRows(2, 30, 4));
        full.device->outOfMemory["uploadOnCopyStream"] = 1;
        full.engine->prefetch(rows);
        QVERIFY(full.engine->state().notice.empty());
        QCOMPARE(normsOn(*full.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        const Fixture lost;
        lost.device->goneFrom = "uploadOnCopyStream";
        const Tensor others = lost.engine->upload(someRows(2, 30, 4));
        lost.engine->prefetch(others);
        QVERIFY(lost.device->gone);
        QCOMPARE(normsOn(*lost.engine, others), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(lost.engine->state().notice, std::string("The GPU stopped answering: going on with the CPU"));
        lost.engine->prefetch(lost.engine->upload(someRows(1, 9, 2)));
        QCOMPARE(lost.device->calls["uploadOnCopyStream"], 1); // the device is not asked again
    }

    void aSweepBringsItsNextLayerAhead() {
        const auto capture = makeRandomCapture(11, 120, 3, 4, 2, 8);
        SweepRequest request;
        request.captures = {capture};
        request.cut = "80";
        request.policies = {PolicySpec::parse("snapkv,window=8")};
        request.budgets = {Budget::parse("0.25"), Budget::parse("0.5")};
        const Fixture fixture;
        const auto listsOf = [&](std::shared_ptr<const Engine> engine, const std::function<void(int)>& afterLayer) {
            std::vector<std::vector<TokenIndex>> lists;
            runSweep(LayerRunner(std::move(engine)), request, {}, [&](const SweepRow& row) {
                for (const HeadSelection& head : row.result->selection.heads)
                    lists.push_back(head.kept);
                afterLayer(row.result->request.layer.value);
            });
            return lists;
        };
        // Layers 0 and 1 are held back until keys, values and queries of the next one are there.
        const auto lists = listsOf(fixture.engine, [&](int layer) {
            if (layer < 2)
                QTRY_COMPARE_WITH_TIMEOUT(fixture.device->count("uploadOnCopyStream"), 3 * (layer + 1), 20000);
        });
        QCOMPARE(fixture.device->count("uploadOnCopyStream"), 6);
        QCOMPARE(lists.size(), std::size_t{3 * 2 * 2});
        QVERIFY(lists == listsOf(std::shared_ptr<const Engine>(makeCpuEngine(1)), [](int) {}));
    }

    void ourOwnErrorsPass() {
        const Fixture fixture;
        HostTensor scores{Shape{1, 3}, {1, std::nanf(""), 2}};
        QVERIFY_EXCEPTION_THROWN(fixture.engine->topK({fixture.engine->upload(scores), {1}, 0, 0}), Error);
        QCOMPARE(fixture.device->calls["topK"], 1);
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_EXCEPTION_THROWN(
            fixture.engine->rowNorms(fixture.engine->upload(someRows(1, 9, 2)), Checkpoint(stop.get_token())),
            Cancelled);
        QVERIFY(fixture.engine->state().notice.empty());
    }

    void tensorsMayOutliveTheirEngine() {
        Tensor rows, norms;
        {
            const Fixture fixture;
            rows = fixture.engine->upload(someRows(2, 30, 4));
            norms = fixture.engine->rowNorms(rows, {});
        }
        rows = Tensor();
        norms = Tensor(); // leaves the list that nobody reads any more
        QVERIFY(norms.empty());
    }
};

KVSCOPE_CORE_TEST(ResidentEngineTest)
#include "resident_engine_test.moc"
