// The cache: a value is made once, however many ask; failure and cancellation hand the work on; the oldest go first.
#include "core/base/error.h"
#include "core/base/thread_wait.h"
#include "core/jobs/scheduler.h"
#include "core/run/stage_cache.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

using namespace kvscope;

namespace {

StageCache::Made<int> made(int value, std::size_t bytes = 10) { return {value, bytes}; }

} // namespace

class StageCacheTest : public QObject {
    Q_OBJECT

private slots:
    void makesOnceAndSaysSo() {
        StageCache cache(100);
        int calls = 0;
        bool wasThere = true;
        const auto make = [&] { return made(++calls); };
        QCOMPARE(*cache.get<int>("a", {}, make, &wasThere), 1);
        QVERIFY(!wasThere);
        QCOMPARE(*cache.get<int>("a", {}, make, &wasThere), 1);
        QVERIFY(wasThere);
        QCOMPARE(*cache.get<int>("b", {}, make), 2);
        QCOMPARE(cache.bytes(), 20u);
    }

    void leastRecentlyUsedGoesFirst() {
        StageCache cache(30);
        std::vector<std::string> log;
        const auto use = [&](const std::string& key) {
            cache.get<int>(key, {}, [&] {
                log.push_back(key);
                return made(0);
            });
        };
        for (const char* key : {"a", "b", "c", "a", "d", "a", "c", "b"})
            use(key); // d pushes b out, since a was used again; then b pushes d out
        QVERIFY(log == std::vector<std::string>({"a", "b", "c", "d", "b"}));
        use("d");
        QCOMPARE(log.back(), std::string("d"));
        QCOMPARE(cache.bytes(), 30u);
    }

    void whatIsTooLargeIsNotKeptButReturned() {
        StageCache cache(30);
        QCOMPARE(*cache.get<int>("large", {}, [] { return made(7, 31); }), 7);
        QCOMPARE(cache.bytes(), 0u);
    }

    void droppedValuesLiveOnForTheirUsers() {
        StageCache cache(30);
        const auto value = cache.get<int>("1|a", {}, [] { return made(7); });
        cache.get<int>("1|b", {}, [] { return made(8); });
        cache.get<int>("11|a", {}, [] { return made(9); });
        cache.drop("1|");
        QCOMPARE(cache.bytes(), 10u);
        QCOMPARE(*value, 7);
        QCOMPARE(*cache.get<int>("1|a", {}, [] { return made(1); }), 1);
        QCOMPARE(*cache.get<int>("11|a", {}, [] { return made(1); }), 9);
    }

    void failureLeavesNothing() {
        StageCache cache(30);
        QVERIFY_THROWS_EXCEPTION(Error, cache.get<int>("a", {}, []() -> StageCache::Made<int> {
            throw Error({"no", {}, {}, {}});
        }));
        QCOMPARE(*cache.get<int>("a", {}, [] { return made(2); }), 2);
    }

    void twoThreadsOneComputation() {
        StageCache cache(100);
        std::promise<void> started, release;
        std::shared_future<void> mayEnd = release.get_future().share();
        std::atomic<int> calls{0};
        auto first = std::async(std::launch::async, [&] {
            return *cache.get<int>("a", {}, [&] {
                ++calls;
                started.set_value();
                mayEnd.wait();
                return made(5);
            });
        });
        started.get_future().wait();
        auto second = std::async(std::launch::async, [&] {
            return *cache.get<int>("a", {}, [&] {
                ++calls;
                return made(6);
            });
        });
        release.set_value();
        QCOMPARE(first.get(), 5);
        QCOMPARE(second.get(), 5);
        QCOMPARE(calls.load(), 1);
    }

    void theNextOneComputesWhenTheFirstIsCancelled() {
        StageCache cache(100);
        std::promise<void> started, release;
        auto first = std::async(std::launch::async, [&] {
            cache.get<int>("a", {}, [&]() -> StageCache::Made<int> {
                started.set_value();
                release.get_future().wait();
                throw Cancelled{};
            });
        });
        started.get_future().wait();
        auto second = std::async(std::launch::async, [&] { return *cache.get<int>("a", {}, [] { return made(6); }); });
        release.set_value();
        QVERIFY_THROWS_EXCEPTION(Cancelled, first.get());
        QCOMPARE(second.get(), 6);
    }

    /// The first waits for another process, the second for the first: a pool of one thread still has it for the third.
    void whoWaitsForAValueLetsOthersCompute() {
        StageCache cache(100);
        std::promise<void> release;
        std::promise<int> first, second;
        WorkerPool pool(1);
        const auto get = [&](std::promise<int>& got) {
            return [&] {
                got.set_value(*cache.get<int>("a", {}, [&] {
                    const ThreadWait wait(ThreadWait::After::AtOnce);
                    const auto found = release.get_future().wait_for(std::chrono::minutes(1));
                    return made(found == std::future_status::ready ? 5 : 6);
                }));
            };
        };
        pool.run(get(first));
        pool.run(get(second));
        pool.run([&] { release.set_value(); });
        QCOMPARE(first.get_future().get(), 5);
        QCOMPARE(second.get_future().get(), 5);
    }

    void waitingCanBeCancelled() {
        StageCache cache(100);
        std::promise<void> started, release;
        auto first = std::async(std::launch::async, [&] {
            cache.get<int>("a", {}, [&] {
                started.set_value();
                release.get_future().wait();
                return made(5);
            });
        });
        started.get_future().wait();
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_THROWS_EXCEPTION(Cancelled, cache.get<int>("a", Checkpoint(stop.get_token()), [] { return made(6); }));
        release.set_value();
        first.get();
        QCOMPARE(*cache.get<int>("a", {}, [] { return made(6); }), 5);
    }

    void manyThreadsManyKeys() {
        StageCache cache(50); // five of the eight values fit
        std::vector<std::future<bool>> threads;
        for (int t = 0; t < 4; ++t)
            threads.push_back(std::async(std::launch::async, [&cache, t] {
                bool right = true;
                for (int i = 0; i < 2000; ++i) {
                    const int key = (i * (t + 1)) % 8;
                    right = right && *cache.get<int>(std::to_string(key), {}, [&] { return made(key); }) == key;
                }
                return right;
            }));
        for (auto& thread : threads) QVERIFY(thread.get());
        QCOMPARE(cache.bytes(), 50u);
    }
};

KVSCOPE_TEST(StageCacheTest)
#include "stage_cache_test.moc"
