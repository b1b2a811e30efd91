// A device that runs out of memory, loses its numbers or is slow to stop, played by the CPU engine: results stay right,
// nothing is uploaded twice without need, and the notice says what happened.
#include "core/capture/memory_capture.h"
#include "core/engine/tensors_lost.h"
#include "core/run/run.h"
#include "core/studies/sweep.h"
#include "tests/parity/fake_device.h"
#include "tests/support/test_program.h"

#include <QtTest>

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
        const Rig rig;
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4));
        QCOMPARE(rig.device->calls["upload"], 0);
        for (int i = 0; i < 3; ++i)
            QCOMPARE(normsOn(*rig.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(rig.device->calls["upload"], 1);
        QCOMPARE(rig.engine->state().residentBytes, std::size_t{2 * 30 * 4 * 4}); // the norms were let go
        QVERIFY(rig.engine->state().notice.empty());
    }

    void rowsShareTheNumbersWhereverTheyAre() {
        const Rig rig;
        const HostTensor whole = someRows(3, 20, 2);
        const Tensor part = rig.engine->rows(rig.engine->rows(rig.engine->upload(whole), 4, 18), 1, 6);
        const auto cpu = makeCpuEngine(1);
        const HostTensor expected = cpu->download(cpu->rows(cpu->upload(whole), 5, 10));
        QVERIFY(rig.engine->download(part).shape == expected.shape);
        QCOMPARE(rig.engine->download(part).data, expected.data);             // on the host
        QCOMPARE(normsOn(*rig.engine, part), normsOnCpu(expected));           // on the device
        const Tensor norms = rig.engine->rows(rig.engine->rowNorms(part, {}), 2, 4); // of a result
        QCOMPARE(rig.engine->download(norms).shape[1], std::int64_t{2});
        QCOMPARE(rig.engine->download(norms).data[0], normsOnCpu(expected)[2]);
    }

    void theLeastRecentlyUsedLeavesFirst() {
        constexpr std::size_t kLayer = 2 * 50 * 4 * 4, kNorms = 2 * 50 * 4;
        const Rig rig(3 * kLayer + kNorms);
        std::vector<Tensor> layers;
        for (int i = 0; i < 4; ++i)
            layers.push_back(rig.engine->upload(someRows(2, 50, 4, static_cast<float>(i))));
        for (const int i : {0, 1, 2, 0, 3}) // 1 is the oldest when 3 comes
            normsOn(*rig.engine, layers[static_cast<std::size_t>(i)]);
        QCOMPARE(rig.device->calls["upload"], 4);
        QVERIFY(rig.engine->state().residentBytes <= rig.engine->state().memoryBytes);
        normsOn(*rig.engine, layers[0]);
        QCOMPARE(rig.device->calls["upload"], 4);
        QCOMPARE(normsOn(*rig.engine, layers[1]), normsOnCpu(someRows(2, 50, 4, 1)));
        QCOMPARE(rig.device->calls["upload"], 5);
    }

    void resultsThatMustGoComeBack() {
        const Rig rig(2 * 50 * 4 * 4); // one layer, nothing beside it
        const Tensor first = rig.engine->upload(someRows(2, 50, 4)), second = rig.engine->upload(someRows(2, 50, 4, 9));
        const Tensor norms = rig.engine->rowNorms(first, {});
        rig.engine->rowNorms(second, {});
        QVERIFY(rig.device->calls["download"] >= 1); // the norms had to be saved
        QCOMPARE(rig.engine->download(norms).data, normsOnCpu(someRows(2, 50, 4)));
        QCOMPARE(rig.engine->download(rig.engine->scale(norms, 1)).data, normsOnCpu(someRows(2, 50, 4)));
    }

    void outOfMemoryMakesBatchesSmallerFirst() {
        const Rig rig;
        rig.device->shrinksLeft = 3;
        rig.device->outOfMemory["rowNorms"] = 2;
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4));
        QCOMPARE(normsOn(*rig.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(rig.device->calls["rowNorms"], 3);
        QCOMPARE(rig.device->shrinksLeft, 1);
        QCOMPARE(rig.engine->state().notice, std::string("GPU memory is full: smaller batches"));
    }

    void thenTheCallRunsOnTheCpuAndTheNextOneOnTheDevice() {
        const Rig rig;
        rig.device->outOfMemory["rowNorms"] = 1;
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4)), norms = rig.engine->rowNorms(rows, {});
        QCOMPARE(rig.engine->download(norms).data, normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(rig.engine->state().notice, std::string("GPU memory is full: rowNorms ran on the CPU"));
        const int before = rig.device->calls["scale"];
        rig.engine->scale(norms, 2); // a result of the CPU goes to the device
        QCOMPARE(rig.device->calls["scale"], before + 1);
    }

    void memoryThatIsFullForUploadsIsNoFailureEither() {
        const Rig rig;
        rig.device->outOfMemory["upload"] = 1;
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4));
        QCOMPARE(normsOn(*rig.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QVERIFY(!rig.engine->state().notice.empty());
    }

    void aCallThatTheDeviceRefusesRunsOnTheCpuWithOneLine() {
        const Rig rig;
        rig.device->refused = "rowNorms";
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4));
        QCOMPARE(normsOn(*rig.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(rig.engine->state().notice, std::string("The GPU could not run rowNorms: it ran on the CPU"));
        rig.engine->anchor(rows, AnchorKind::Mean, {});
        QCOMPARE(rig.device->calls["anchor"], 1); // the device goes on
    }

    void numbersThatTheDeviceDoesNotGiveBackAreLost() {
        const Rig rig;
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4)), norms = rig.engine->rowNorms(rows, {});
        rig.device->refused = "download";
        QVERIFY_EXCEPTION_THROWN(rig.engine->download(norms), TensorsLost);
        QCOMPARE(normsOn(*rig.engine, rows), normsOnCpu(someRows(2, 30, 4)));
    }

    // Making room copies results to the host; a device that is lost then is lost, and nothing escapes.
    void aDeviceMayBeLostWhileRoomIsMade() {
        const Rig rig;
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4)), norms = rig.engine->rowNorms(rows, {});
        rig.device->outOfMemory["anchor"] = 1;
        rig.device->goneFrom = "download";
        const auto cpu = makeCpuEngine(1);
        QCOMPARE(rig.engine->download(rig.engine->anchor(rows, AnchorKind::Mean, {})).data,
                 cpu->download(cpu->anchor(cpu->upload(someRows(2, 30, 4)), AnchorKind::Mean, {})).data);
        QCOMPARE(rig.engine->state().notice, std::string("The GPU stopped answering: going on with the CPU"));
    }

    void aLostDeviceLeavesWhatTheHostHas() {
        const Rig rig;
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4)), norms = rig.engine->rowNorms(rows, {});
        rig.device->goneFrom = "anchor";
        const Tensor anchor = rig.engine->anchor(rows, AnchorKind::Mean, {}); // uploaded rows are still on the host
        const auto cpu = makeCpuEngine(1);
        QCOMPARE(rig.engine->download(anchor).data,
                 cpu->download(cpu->anchor(cpu->upload(someRows(2, 30, 4)), AnchorKind::Mean, {})).data);
        QCOMPARE(rig.engine->state().notice, std::string("The GPU stopped answering: going on with the CPU"));
        QCOMPARE(rig.engine->state().residentBytes, std::size_t{0});
        QVERIFY_EXCEPTION_THROWN(rig.engine->download(norms), TensorsLost); // a result that only the device had
        QVERIFY_EXCEPTION_THROWN(rig.engine->scale(norms, 2), TensorsLost);
        const int before = rig.device->calls["rowNorms"];
        QCOMPARE(normsOn(*rig.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(rig.device->calls["rowNorms"], before); // it is never asked again
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
            const Rig rig;
            rig.device->goneFrom = call;
            const LayerRunner runner(rig.engine);
            const auto result = runner.run(request, {});
            QVERIFY2(rig.device->gone, call);
            QVERIFY2(result->selection.sameLists(plain.run(request, {})->selection), call);
            QVERIFY2(result->fidelity, call);
            const std::vector<std::string> notes = runner.run(request, {})->notes;
            QVERIFY2(std::find(notes.begin(), notes.end(), "The GPU stopped answering: going on with the CPU") != notes.end(),
                     call);
        }
    }

    void whatIsBroughtAheadIsNotUploadedAgain() {
        const Rig rig;
        const Tensor rows = rig.engine->upload(someRows(2, 30, 4)), part = rig.engine->rows(rows, 3, 20);
        rig.engine->prefetch(part); // the whole: rows share their numbers
        rig.engine->prefetch(rows);
        QCOMPARE(rig.device->calls["uploadBeside"], 1);
        QCOMPARE(rig.engine->state().residentBytes, std::size_t{2 * 30 * 4 * 4});
        QCOMPARE(normsOn(*rig.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(rig.device->calls["upload"], 0);
        const Tensor norms = rig.engine->rowNorms(rows, {}); // there already, and nowhere else
        rig.engine->prefetch(norms);
        rig.engine->prefetch(Tensor());
        QCOMPARE(rig.device->calls["uploadBeside"], 1);
    }

    void bringingAheadThrowsNobodyOut() {
        const std::size_t bytes = 1 * 16 * 4 * 4;
        const Rig rig(2 * bytes);
        std::vector<Tensor> tensors;
        for (int i = 0; i < 3; ++i) {
            tensors.push_back(rig.engine->upload(someRows(1, 16, 4, static_cast<float>(i))));
            rig.engine->prefetch(tensors.back());
        }
        QCOMPARE(rig.device->calls["uploadBeside"], 2);
        QCOMPARE(rig.engine->state().residentBytes, 2 * bytes);
        QCOMPARE(normsOn(*rig.engine, tensors[0]), normsOnCpu(someRows(1, 16, 4, 0)));
        QCOMPARE(rig.device->calls["upload"], 0); // it is still there
    }

    // The copy ends only after a primitive on another tensor has ended: whoever held the other up would wait in vain.
    void primitivesGoOnWhileATensorIsCopied() {
        Rig rig;
        std::promise<void> begun, computed;
        rig.device->duringCopy = [&, waiting = computed.get_future().share()] {
            begun.set_value();
            QVERIFY(waiting.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
        };
        const Tensor next = rig.engine->upload(someRows(2, 40, 4, 1)), now = rig.engine->upload(someRows(2, 40, 4));
        auto copying = std::async(std::launch::async, [&] { rig.engine->prefetch(next); });
        begun.get_future().wait();
        QCOMPARE(normsOn(*rig.engine, now), normsOnCpu(someRows(2, 40, 4)));
        computed.set_value();
        copying.get();
        QCOMPARE(normsOn(*rig.engine, next), normsOnCpu(someRows(2, 40, 4, 1)));
        QCOMPARE(rig.device->calls["upload"], 1); // `now` alone
    }

    // A primitive that needs a tensor which is on its way waits for it instead of sending it again.
    void aTensorOnItsWayIsNotSentTwice() {
        Rig rig;
        std::promise<void> begun;
        rig.device->duringCopy = [&] {
            begun.set_value();
            std::this_thread::sleep_for(std::chrono::milliseconds(200)); // long enough for the primitive to ask
        };
        const Tensor rows = rig.engine->upload(someRows(2, 40, 4));
        auto copying = std::async(std::launch::async, [&] { rig.engine->prefetch(rows); });
        begun.get_future().wait();
        QCOMPARE(normsOn(*rig.engine, rows), normsOnCpu(someRows(2, 40, 4)));
        copying.get();
        QCOMPARE(rig.device->calls["upload"], 0);
        rig.device->duringCopy = nullptr;
        rig.device->outOfMemory["uploadBeside"] = 1; // a copy that fails holds nobody up
        const Tensor others = rig.engine->upload(someRows(2, 40, 4, 3));
        rig.engine->prefetch(others);
        QCOMPARE(normsOn(*rig.engine, others), normsOnCpu(someRows(2, 40, 4, 3)));
    }

    // The status bar asks while a layer is on its way to the device, and must not wait for it.
    void theStateIsToldDuringAnUpload() {
        Rig rig;
        bool told = false;
        std::future<EngineState> state;
        rig.device->duringUpload = [&] {
            state = std::async(std::launch::async, [&] { return rig.engine->state(); });
            told = state.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
        };
        normsOn(*rig.engine, rig.engine->upload(someRows(2, 40, 4)));
        state.wait();
        QVERIFY(told);
    }

    void whatCannotBeBroughtAheadIsMetAgainInItsTurn() {
        const Rig full;
        const Tensor rows = full.engine->upload(someRows(2, 30, 4));
        full.device->outOfMemory["uploadBeside"] = 1;
        full.engine->prefetch(rows);
        QVERIFY(full.engine->state().notice.empty());
        QCOMPARE(normsOn(*full.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        const Rig lost;
        lost.device->goneFrom = "uploadBeside";
        const Tensor others = lost.engine->upload(someRows(2, 30, 4));
        lost.engine->prefetch(others);
        QVERIFY(lost.device->gone);
        QCOMPARE(normsOn(*lost.engine, others), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(lost.engine->state().notice, std::string("The GPU stopped answering: going on with the CPU"));
        lost.engine->prefetch(lost.engine->upload(someRows(1, 9, 2)));
        QCOMPARE(lost.device->calls["uploadBeside"], 1); // the device is not asked again
    }

    void aSweepBringsItsNextLayerAhead() {
        const auto capture = makeRandomCapture(11, 120, 3, 4, 2, 8);
        SweepRequest request;
        request.captures = {capture};
        request.cut = "80";
        request.policies = {PolicySpec::parse("snapkv,window=8")};
        request.budgets = {Budget::parse("0.25"), Budget::parse("0.5")};
        const Rig rig;
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
        const auto lists = listsOf(rig.engine, [&](int layer) {
            if (layer < 2)
                QTRY_COMPARE_WITH_TIMEOUT(rig.device->count("uploadBeside"), 3 * (layer + 1), 20000);
        });
        QCOMPARE(rig.device->count("uploadBeside"), 6);
        QCOMPARE(lists.size(), std::size_t{3 * 2 * 2});
        QVERIFY(lists == listsOf(std::shared_ptr<const Engine>(makeCpuEngine(1)), [](int) {}));
    }

    void ourOwnErrorsPass() {
        const Rig rig;
        HostTensor scores{Shape{1, 3}, {1, std::nanf(""), 2}};
        QVERIFY_EXCEPTION_THROWN(rig.engine->topK({rig.engine->upload(scores), {1}, 0, 0}), Error);
        QCOMPARE(rig.device->calls["topK"], 1);
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_EXCEPTION_THROWN(rig.engine->rowNorms(rig.engine->upload(someRows(1, 9, 2)), Checkpoint(stop.get_token())),
                                 Cancelled);
        QVERIFY(rig.engine->state().notice.empty());
    }

    void tensorsMayOutliveTheirEngine() {
        Tensor rows, norms;
        {
            const Rig rig;
            rows = rig.engine->upload(someRows(2, 30, 4));
            norms = rig.engine->rowNorms(rows, {});
        }
        rows = Tensor();
        norms = Tensor(); // leaves the list that nobody reads any more
        QVERIFY(norms.empty());
    }
};

KVSCOPE_CORE_TEST(ResidentEngineTest)
#include "resident_engine_test.moc"
