// A device that runs out of memory, is lost or lacks a primitive, played by the CPU engine: results stay right,
// nothing is uploaded twice without need, and the notice says what happened.
#include "core/base/error.h"
#include "core/run/run.h"
#include "gpu/engine_factory.h"
#include "tests/parity/fake_device.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"
#include "tests/support/thread_state.h"

#include <QtTest>

#include <chrono>
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
    return cpu->rowNorms(cpu->upload(rows), {}).data;
}

std::vector<float> normsOn(const Engine& engine, const Tensor& rows) { return engine.rowNorms(rows, {}).data; }

} // namespace

class ResidentEngineTest : public QObject {
    Q_OBJECT

private slots:
    void aTensorIsUploadedOnceAndOnlyWhenItIsNeeded() {
        const Fixture fixture;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        QCOMPARE(fixture.device->calls["upload"], 0);
        for (int i = 0; i < 3; ++i) QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
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
        QCOMPARE(fixture.engine->download(part).data, expected.data);   // on the host
        QCOMPARE(normsOn(*fixture.engine, part), normsOnCpu(expected)); // on the device
    }

    /// Row lists of a range, a range of row lists, and row lists of row lists: on either side as on the CPU engine.
    void gatheredRowsAreTheCpuEngines() {
        const Fixture fixture;
        const auto cpu = makeCpuEngine(1);
        const auto all = [](const Engine& e) {
            const Tensor range = e.rows(e.upload(someRows(2, 20, 3)), 4, 18);
            const Tensor listed = e.gatherRows(range, {{0, 2, 5, 9}, {1, 1, 12, 13}});
            return std::vector<Tensor>{listed, e.rows(listed, 1, 3), e.gatherRows(listed, {{3, 0}, {2, 2}})};
        };
        const std::vector<Tensor> got = all(*fixture.engine), expected = all(*cpu);
        for (const bool gone : {false, true}) {
            fixture.device->gone = gone;
            for (std::size_t i = 0; i < got.size(); ++i) {
                QVERIFY(got[i].shape() == expected[i].shape());
                QCOMPARE(fixture.engine->download(got[i]).data, cpu->download(expected[i]).data);
                QCOMPARE(normsOn(*fixture.engine, got[i]), normsOn(*cpu, expected[i]));
            }
        }
        QCOMPARE(fixture.device->calls["upload"], 1);
    }

    void theLeastRecentlyUsedLeavesFirst() {
        constexpr std::size_t kLayer = 2 * 50 * 4 * 4;
        const Fixture fixture(3 * kLayer);
        std::vector<Tensor> layers;
        for (int i = 0; i < 4; ++i) layers.push_back(fixture.engine->upload(someRows(2, 50, 4, static_cast<float>(i))));
        for (const int i : {0, 1, 2, 0, 3}) // 1 is the oldest when 3 comes
            normsOn(*fixture.engine, layers[static_cast<std::size_t>(i)]);
        QCOMPARE(fixture.device->calls["upload"], 4);
        QVERIFY(fixture.engine->state().residentBytes <= fixture.engine->state().memoryBytes);
        normsOn(*fixture.engine, layers[0]);
        QCOMPARE(fixture.device->calls["upload"], 4);
        QCOMPARE(normsOn(*fixture.engine, layers[1]), normsOnCpu(someRows(2, 50, 4, 1)));
        QCOMPARE(fixture.device->calls["upload"], 5);
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
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.engine->state().notice, std::string("GPU memory is full: rowNorms ran on the CPU"));
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.device->calls["rowNorms"], 2);
        QCOMPARE(fixture.device->calls["upload"], 2); // the memory was emptied for the first call
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
        normsOn(*fixture.engine, rows);
        QCOMPARE(fixture.engine->state().fallbacks, (CallCounts{{"rowNorms", 2}}));
        QCOMPARE(fixture.engine->state().failure,
                 std::string("rowNorms of [2, 30, 4]: cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR"));
    }

    /// A mistake of ours is an Error in either mode, never repeated, and no fallback.
    void shapesThatDoNotFitAreNoFailureOfTheDevice() {
        for (const bool strict : {false, true}) {
            const Fixture fixture(0, strict);
            fixture.device->misused = "similarity";
            const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
            const std::string said = errorMessage([&] {
                fixture.engine->similarity(rows, {Shape{2, 4}, std::vector<float>(8)}, SimilarityMetric::Dot, {});
            });
            QVERIFY2(
                said.starts_with("similarity of [2, 30, 4] was given what it cannot compute: mat1 and mat2 shapes"),
                said.c_str());
            QCOMPARE(fixture.device->calls["similarity"], 1);
            QVERIFY(fixture.engine->state().fallbacks.empty() && fixture.engine->state().notice.empty());
        }
    }

    void aStrictEngineRunsNothingThatFailedOnTheCpu() {
        const Fixture fixture(0, true);
        fixture.device->refused = "rowNorms";
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        for (const int calls : {1, 2}) { // an error each time, and no repetition
            const std::string said = errorMessage([&] { normsOn(*fixture.engine, rows); });
            QVERIFY2(said.starts_with("rowNorms of [2, 30, 4] did not run on the device: cusolver error: "
                                      "CUSOLVER_STATUS_INTERNAL_ERROR (engine cpu, strict)"),
                     said.c_str());
            QCOMPARE(fixture.device->calls["rowNorms"], calls);
        }
        QVERIFY(fixture.engine->state().fallbacks.empty());
        QCOMPARE(fixture.engine->anchor(rows, AnchorKind::Mean, {}).data.size(), std::size_t{8}); // the device goes on
    }

    /// Smaller batches are no fallback; when they do not help either, that is an error.
    void aStrictEngineShrinksBatchesBeforeItFails() {
        const Fixture fixture(0, true);
        fixture.device->shrinksLeft = 1;
        fixture.device->outOfMemory["rowNorms"] = 1;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.device->calls["rowNorms"], 2);
        for (const char* call : {"rowNorms", "upload"}) {
            fixture.device->outOfMemory[call] = 1;
            const Tensor fresh = fixture.engine->upload(someRows(2, 30, 4, 1));
            const std::string said = errorMessage([&] { normsOn(*fixture.engine, fresh); });
            QVERIFY2(said.starts_with("rowNorms of [2, 30, 4] did not run on the device: "), said.c_str());
        }
    }

    void aStrictEngineFailsForGoodWithItsDevice() {
        const Fixture fixture(0, true);
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        fixture.device->goneFrom = "anchor";
        const char* lost = "it was lost in anchor of [2, 30, 4]: CUDA error: unspecified launch failure";
        const std::string first = errorMessage([&] { fixture.engine->anchor(rows, AnchorKind::Mean, {}); }),
                          second = errorMessage([&] { normsOn(*fixture.engine, rows); });
        QVERIFY2(first.starts_with(std::string("anchor did not run on the device: ") + lost), first.c_str());
        QVERIFY2(second.starts_with(std::string("rowNorms did not run on the device: ") + lost), second.c_str());
        QCOMPARE(fixture.device->calls["rowNorms"], 0);
    }

    /// Without device code there is nothing that could fail: counted apart, strict or not.
    void aStrictEngineLeavesWhatHasNoDeviceCodeToTheCpu() {
        const Fixture fixture(0, true);
        fixture.device->missing = "rowNorms";
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        for (int i = 0; i < 2; ++i) QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.engine->state().delegated, (CallCounts{{"rowNorms", 2}}));
        QVERIFY(fixture.engine->state().fallbacks.empty());
    }

    void aDeviceIsWarmedUpByWhatABudgetMoveCalls() {
        const Fixture fixture(0, true);
        warmUp(*fixture.engine);
        for (const char* call : {"rowNorms", "anchor", "similarity", "attentionColumnSums", "attentionChunkSums",
                                 "leverage", "exact attention"})
            QVERIFY2(fixture.device->count(call) > 0, call);
    }

    void aPrimitiveWithoutDeviceCodeRunsOnTheCpu() {
        const Fixture fixture;
        fixture.device->missing = "pairwiseSums";
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        const auto cpu = makeCpuEngine(1);
        QCOMPARE(fixture.engine->pairwiseSums(rows, SimilarityMetric::Dot, {}).data,
                 cpu->pairwiseSums(cpu->upload(someRows(2, 30, 4)), SimilarityMetric::Dot, {}).data);
        QCOMPARE(fixture.engine->state().delegated, (CallCounts{{"pairwiseSums", 1}}));
        QVERIFY(fixture.engine->state().notice.empty()); // it is no failure
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.device->calls["rowNorms"], 1);
    }

    void aLostDeviceLeavesWhatTheHostHas() {
        const Fixture fixture;
        const Tensor rows = fixture.engine->upload(someRows(2, 30, 4));
        normsOn(*fixture.engine, rows);
        fixture.device->goneFrom = "anchor";
        const HostTensor anchor =
            fixture.engine->anchor(rows, AnchorKind::Mean, {}); // uploaded rows are still on the host
        const auto cpu = makeCpuEngine(1);
        QCOMPARE(anchor.data, cpu->anchor(cpu->upload(someRows(2, 30, 4)), AnchorKind::Mean, {}).data);
        QCOMPARE(fixture.engine->state().notice, std::string("The GPU stopped answering: going on with the CPU"));
        QCOMPARE(fixture.engine->state().residentBytes, std::size_t{0});
        const int before = fixture.device->calls["rowNorms"];
        QCOMPARE(normsOn(*fixture.engine, rows), normsOnCpu(someRows(2, 30, 4)));
        QCOMPARE(fixture.device->calls["rowNorms"], before); // it is never asked again
        QCOMPARE(fixture.engine->state().fallbacks, (CallCounts{{"anchor", 1}, {"rowNorms", 1}}));
    }

    void aRunSurvivesTheLossOfItsDevice() {
        const auto capture = makeRandomCapture(7, 120, 1, 4, 2, 8);
        const RunRequest request = runRequest(capture, "keydiff", "80", "0.25");
        const LayerRunner plain{std::shared_ptr<const Engine>(makeCpuEngine(1))};
        for (const char* call : {"anchor", "similarity", "exact attention", "kept attention", "upload"}) {
            const Fixture fixture;
            fixture.device->goneFrom = call;
            const LayerRunner runner(fixture.engine);
            const auto result = runner.run(request, {});
            QVERIFY2(fixture.device->gone, call);
            QVERIFY2(result->selection.sameLists(plain.run(request, {})->selection), call);
            QVERIFY2(result->fidelity, call);
            const std::vector<std::string>& notes = result->notes;
            QVERIFY2(std::find(notes.begin(), notes.end(), "The GPU stopped answering: going on with the CPU") !=
                         notes.end(),
                     call);
            const std::string counts = "calls that failed on the device so far and ran on the CPU: ";
            QVERIFY2(
                std::any_of(notes.begin(), notes.end(), [&](const auto& note) { return note.starts_with(counts); }),
                call);
        }
    }

    // The upload ends only after a primitive on another tensor has ended: whoever held the other up would wait in vain.
    void primitivesGoOnWhileATensorIsUploaded() {
        Fixture fixture;
        const Tensor now = fixture.engine->upload(someRows(2, 40, 4)),
                     next = fixture.engine->upload(someRows(2, 40, 4, 1));
        normsOn(*fixture.engine, now);
        std::promise<void> begun, computed;
        fixture.device->duringUpload = [&, waiting = computed.get_future().share()] {
            begun.set_value();
            QVERIFY(waiting.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
        };
        auto uploading = std::async(std::launch::async, [&] { return normsOn(*fixture.engine, next); });
        begun.get_future().wait();
        QCOMPARE(normsOn(*fixture.engine, now), normsOnCpu(someRows(2, 40, 4)));
        computed.set_value();
        QCOMPARE(uploading.get(), normsOnCpu(someRows(2, 40, 4, 1)));
        QCOMPARE(fixture.device->calls["upload"], 2);
    }

    // Two primitives ask for a tensor at the same time; an upload that fails holds the other one up no longer.
    void aTensorIsNotUploadedTwice() {
        Fixture fixture;
        for (const bool fails : {false, true}) {
            const Tensor rows = fixture.engine->upload(someRows(2, 40, 4));
            std::promise<void> begun;
            std::atomic<bool> first = true, isAsked = false;
            const int before = fixture.device->count("upload");
            fixture.device->duringUpload = [&, other = gettid()] {
                if (!first.exchange(false)) return;
                begun.set_value();
                while (!isAsked ||
                       (!kvscope::testing::isAsleep(other) && fixture.device->count("upload") == before + 1))
                    std::this_thread::yield(); // until the other one waits, or uploads it again
                if (fails) throw CallRefused("cudaMemcpy: invalid argument");
            };
            auto one = std::async(std::launch::async, [&] { return normsOn(*fixture.engine, rows); });
            const std::vector<float> expected = normsOnCpu(someRows(2, 40, 4));
            begun.get_future().wait();
            isAsked = true;
            QCOMPARE(normsOn(*fixture.engine, rows), expected);
            QCOMPARE(one.get(), expected);
            QCOMPARE(fixture.device->count("upload") - before, fails ? 2 : 1);
        }
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

    // The window's thread may be the last owner of a tensor, and must not wait for an upload.
    void aTensorIsLetGoDuringAnUpload() {
        Fixture fixture;
        Tensor old = fixture.engine->upload(someRows(2, 30, 4));
        normsOn(*fixture.engine, old);
        bool freed = false;
        std::future<void> letGo;
        fixture.device->duringUpload = [&] {
            letGo = std::async(std::launch::async, [&] { old = Tensor(); });
            freed = letGo.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
        };
        const Tensor rows = fixture.engine->upload(someRows(2, 40, 4));
        normsOn(*fixture.engine, rows);
        letGo.wait();
        QVERIFY(freed);
        QCOMPARE(fixture.engine->state().residentBytes, std::size_t{2 * 40 * 4 * 4});
    }

    void ourOwnErrorsPass() {
        const Fixture fixture;
        const HostTensor keys{Shape{1, 3, 1}, {1, std::nanf(""), 2}};
        const CentersRequest request{.count = 2, .first = {0}};
        QVERIFY_THROWS_EXCEPTION(Error, fixture.engine->greedyCenters(fixture.engine->upload(keys), request, {}));
        QCOMPARE(fixture.device->calls["greedyCenters"], 1);
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_THROWS_EXCEPTION(Cancelled, fixture.engine->rowNorms(fixture.engine->upload(someRows(1, 9, 2)),
                                                                     Checkpoint(stop.get_token())));
        QVERIFY(fixture.engine->state().notice.empty());
    }

    void tensorsMayOutliveTheirEngine() {
        Tensor rows, part;
        {
            const Fixture fixture;
            rows = fixture.engine->upload(someRows(2, 30, 4));
            part = fixture.engine->gatherRows(rows, {{1, 2}, {3, 4}});
            normsOn(*fixture.engine, part);
        }
        rows = Tensor();
        part = Tensor(); // leaves the list that nobody reads any more
        QVERIFY(part.empty());
    }
};

KVSCOPE_CORE_TEST(ResidentEngineTest)
#include "resident_engine_test.moc"
