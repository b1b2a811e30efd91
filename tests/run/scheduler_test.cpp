// The scheduler's races, stepped through by hand: the executor and the delivery are queues that the test empties.
#include "core/base/thread_wait.h"
#include "core/jobs/scheduler.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <thread>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace kvscope;

namespace {

/// A queue of tasks that runs when told to.
struct ManualQueue {
    std::deque<Scheduler::Task> tasks;

    void operator()(Scheduler::Task task) { tasks.push_back(std::move(task)); }
    bool step() {
        if (tasks.empty()) return false;
        Scheduler::Task task = std::move(tasks.front());
        tasks.pop_front();
        task();
        return true;
    }
    void drain() {
        while (step()) {
        }
    }
};

struct Bench {
    ManualQueue worker, owner;
    QStringList log;
    std::unique_ptr<Scheduler> scheduler = std::make_unique<Scheduler>(
        [this](Scheduler::Task t) { worker(std::move(t)); }, [this](Scheduler::Task t) { owner(std::move(t)); });

    using Inside = std::function<void(const Checkpoint&)>;
    /// A job that writes what happens to it into the log; `inside` runs in the middle of it.
    Scheduler::Job job(const QString& name, Inside inside = {}) {
        Scheduler::Job job;
        job.work = [this, name, inside](const Checkpoint& checkpoint,
                                        const std::function<void(Scheduler::Task)>& post) {
            log << name + " starts";
            if (inside) inside(checkpoint);
            post([this, name] { log << name + " result"; });
        };
        job.progress = [this, name](double fraction) { log << QString("%1 at %2").arg(name).arg(fraction); };
        job.failed = [this, name](std::exception_ptr) { log << name + " failed"; };
        job.finished = [this, name] { log << name + " finished"; };
        return job;
    }
    void drain() {
        while (worker.step() || owner.step()) {
        }
    }
};

void stopPoint(const Checkpoint& checkpoint) { checkpoint.at(1, 2); }

} // namespace

class SchedulerTest : public QObject {
    Q_OBJECT

private slots:
    void runsAndFinishes() {
        Bench bench;
        QVERIFY(!bench.scheduler->busy("a"));
        bench.scheduler->submit("a", bench.job("1"));
        QVERIFY(bench.scheduler->busy("a"));
        bench.worker.drain();
        QCOMPARE(bench.log, QStringList{"1 starts"});
        QVERIFY(bench.scheduler->busy("a")); // its deliveries are under way
        bench.owner.drain();
        QCOMPARE(bench.log, QStringList({"1 starts", "1 result", "1 finished"}));
        QVERIFY(!bench.scheduler->busy("a"));
    }

    void replacedBeforeItStarts() {
        Bench bench;
        const auto first = bench.scheduler->submit("a", bench.job("1"));
        const auto second = bench.scheduler->submit("a", bench.job("2"));
        QVERIFY(second > first);
        bench.drain();
        QCOMPARE(bench.log, QStringList({"2 starts", "2 result", "2 finished"}));
    }

    void replacedWhileRunning() {
        Bench bench;
        bench.scheduler->submit("a", bench.job("1", [&](const Checkpoint& checkpoint) {
            stopPoint(checkpoint); // not yet asked to stop
            bench.scheduler->submit("a", bench.job("2"));
            QVERIFY(bench.worker.tasks.empty()); // one job of a slot at a time
            stopPoint(checkpoint);
            QFAIL("the stop point let an outdated job pass");
        }));
        bench.drain();
        QCOMPARE(bench.log, QStringList({"1 starts", "2 starts", "2 result", "2 finished"}));
        QVERIFY(!bench.scheduler->busy("a"));
    }

    void outdatedJobThatNeverStopsIsDroppedOnTheWorker() {
        Bench bench;
        bench.scheduler->submit(
            "a", bench.job("1", [&](const Checkpoint&) { bench.scheduler->submit("a", bench.job("2")); }));
        QVERIFY(bench.worker.step());
        QVERIFY(bench.owner.tasks.empty()); // first check
        bench.drain();
        QCOMPARE(bench.log, QStringList({"1 starts", "2 starts", "2 result", "2 finished"}));
    }

    void replacedAfterPostingIsDroppedOnTheOwnersThread() {
        Bench bench;
        bench.scheduler->submit("a", bench.job("1"));
        bench.worker.drain();
        QCOMPARE(bench.owner.tasks.size(), 2u); // result and finished wait
        bench.scheduler->submit("a", bench.job("2"));
        bench.owner.drain(); // second check
        QCOMPARE(bench.log, QStringList{"1 starts"});
        QVERIFY(bench.scheduler->busy("a"));
        bench.drain();
        QCOMPARE(bench.log, QStringList({"1 starts", "2 starts", "2 result", "2 finished"}));
    }

    void resubmitFromInsideADelivery() {
        Bench bench;
        Scheduler::Job first = bench.job("1");
        first.finished = [&] { bench.scheduler->submit("a", bench.job("2")); };
        bench.scheduler->submit("a", first);
        bench.drain();
        QCOMPARE(bench.log, QStringList({"1 starts", "1 result", "2 starts", "2 result", "2 finished"}));
    }

    void cancelBeforeDuringAndAfter() {
        Bench bench;
        bench.scheduler->cancel("never used");
        bench.scheduler->submit("a", bench.job("1"));
        bench.scheduler->cancel("a");
        QVERIFY(!bench.scheduler->busy("a"));
        bench.drain();
        QVERIFY(bench.log.isEmpty());

        bench.scheduler->submit("a", bench.job("2", [&](const Checkpoint& checkpoint) {
            bench.scheduler->cancel("a");
            stopPoint(checkpoint);
            QFAIL("a cancelled job went on");
        }));
        bench.drain();
        QCOMPARE(bench.log, QStringList{"2 starts"});

        bench.scheduler->submit("a", bench.job("3"));
        bench.worker.drain();
        bench.scheduler->cancel("a");
        bench.drain();
        QCOMPARE(bench.log, QStringList({"2 starts", "3 starts"}));
    }

    void slotsAreIndependent() {
        Bench bench;
        bench.scheduler->submit("a", bench.job("1"));
        bench.scheduler->submit("b", bench.job("2"));
        bench.scheduler->submit("a", bench.job("3"));
        bench.scheduler->cancel("a");
        bench.drain();
        QCOMPARE(bench.log, QStringList({"2 starts", "2 result", "2 finished"}));
        bench.scheduler->submit("a", bench.job("4"));
        bench.scheduler->submit("b", bench.job("5"));
        bench.scheduler->cancelAll();
        bench.drain();
        QCOMPARE(bench.log.size(), 3);
    }

    void failureIsDeliveredOnceAndEndsTheJob() {
        Bench bench;
        Scheduler::Job job = bench.job("1", [](const Checkpoint&) { throw std::runtime_error("broken"); });
        std::string text;
        job.failed = [&](std::exception_ptr error) {
            try {
                std::rethrow_exception(error);
            } catch (const std::exception& e) {
                text = e.what();
            }
        };
        bench.scheduler->submit("a", job);
        bench.drain();
        QCOMPARE(text, std::string("broken"));
        QCOMPARE(bench.log, QStringList({"1 starts", "1 finished"}));
        QVERIFY(!bench.scheduler->busy("a"));
    }

    void failureOfAnOutdatedJobIsDropped() {
        Bench bench;
        bench.scheduler->submit("a", bench.job("1", [&](const Checkpoint&) {
            bench.scheduler->submit("a", bench.job("2"));
            throw std::runtime_error("broken");
        }));
        bench.drain();
        QCOMPARE(bench.log, QStringList({"1 starts", "2 starts", "2 result", "2 finished"}));
    }

    void cancelledIsNoFailure() {
        Bench bench;
        bench.scheduler->submit("a", bench.job("1", [](const Checkpoint&) { throw Cancelled{}; }));
        bench.drain();
        QCOMPARE(bench.log, QStringList({"1 starts", "1 finished"}));
    }

    void progressIsMergedAndNeverOutdated() {
        Bench bench;
        bench.scheduler->submit("a", bench.job("1", [&](const Checkpoint& checkpoint) {
            checkpoint.at(1, 4);
            checkpoint.at(2, 4); // merged: the owner has not read the first one
            QCOMPARE(bench.owner.tasks.size(), 1u);
            bench.owner.drain();
            checkpoint.at(3, 4);
        }));
        bench.worker.drain();
        bench.owner.drain();
        QCOMPARE(bench.log, QStringList({"1 starts", "1 at 0.5", "1 at 0.75", "1 result", "1 finished"}));

        bench.log.clear();
        bench.scheduler->submit("a", bench.job("2", [&](const Checkpoint& checkpoint) { checkpoint.at(1, 4); }));
        bench.worker.drain();
        bench.scheduler->submit("a", bench.job("3"));
        bench.drain();
        QCOMPARE(bench.log, QStringList({"2 starts", "3 starts", "3 result", "3 finished"}));
    }

    void destructionWithARunningJob() {
        Bench bench;
        bool stopped = false;
        bench.scheduler->submit("a", bench.job("1", [&](const Checkpoint& checkpoint) {
            checkpoint.at(1, 2);
            bench.scheduler.reset();
            try {
                checkpoint.at(2, 2);
            } catch (const Cancelled&) {
                stopped = true;
                throw;
            }
        }));
        bench.drain();
        QVERIFY(stopped);
        QCOMPARE(bench.log, QStringList{"1 starts"});
    }

    void destructionWithWaitingTasksAndDeliveries() {
        Bench bench;
        bench.scheduler->submit("a", bench.job("1"));
        bench.worker.drain();
        bench.scheduler->submit("b", bench.job("2"));
        bench.scheduler.reset();
        bench.drain();
        QCOMPARE(bench.log, QStringList{"1 starts"});
    }

    void resultsOfAReplacedJobDieWithIt() {
        Bench bench;
        const auto held = std::make_shared<int>(1);
        bench.scheduler->submit("a", bench.job("1", [held](const Checkpoint&) {}));
        bench.scheduler->submit("a", bench.job("2"));
        QCOMPARE(held.use_count(), 1L);
    }

    void poolRunsAtLowPriorityAndJoins() {
        std::promise<int> niceness;
        const int own = getpriority(PRIO_PROCESS, 0);
        {
            WorkerPool pool(2);
            pool.run([&] { niceness.set_value(getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)))); });
            QCOMPARE(niceness.get_future().get(), std::max(10, own));
        }
        QCOMPARE(getpriority(PRIO_PROCESS, 0), own);
    }

    void aTaskThatWaitsLetsAnotherCompute() {
        std::promise<void> made;
        std::promise<std::future_status> found;
        WorkerPool pool(1);
        pool.run([&] {
            const ThreadWait wait(ThreadWait::After::AtOnce);
            found.set_value(made.get_future().wait_for(std::chrono::minutes(1)));
        });
        pool.run([&] { made.set_value(); });
        QVERIFY(found.get_future().get() == std::future_status::ready);
    }

    void tasksThatHaveWaitedComputeOneAfterTheOther() {
        constexpr int kTasks = 6;
        std::promise<void> made;
        const std::shared_future<void> isMade = made.get_future().share();
        std::atomic<int> computing = 0, most = 0, done = 0;
        std::promise<void> end;
        const auto compute = [&] {
            most = std::max(most.load(), ++computing);
            for (int i = 0; i < 1000; ++i) std::this_thread::yield();
            --computing;
        };
        WorkerPool pool(1);
        for (int i = 0; i < kTasks; ++i)
            pool.run([&] {
                {
                    const ThreadWait wait(ThreadWait::After::InTurn);
                    isMade.wait();
                }
                compute();
                if (++done == kTasks) end.set_value();
            });
        pool.run([&] {
            made.set_value();
            compute();
        });
        QVERIFY(end.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready);
        QCOMPARE(most.load(), 1);
    }

    void realThreadsLastSubmitWins() {
        WorkerPool pool(3);
        std::mutex mutex;
        std::condition_variable arrived;
        std::deque<Scheduler::Task> owner;
        Scheduler scheduler([&](Scheduler::Task t) { pool.run(std::move(t)); },
                            [&](Scheduler::Task t) {
                                const std::lock_guard lock(mutex);
                                owner.push_back(std::move(t));
                                arrived.notify_one();
                            });
        int newest = -1;
        bool finished = false;
        constexpr int count = 200;
        for (int i = 0; i < count; ++i) {
            Scheduler::Job job;
            job.work = [&newest, i](const Checkpoint& checkpoint, const std::function<void(Scheduler::Task)>& post) {
                for (int step = 0; step < 100; ++step) checkpoint.at(step, 100);
                post([&newest, i] { newest = i; });
            };
            job.progress = [](double) {};
            job.finished = [&finished, i] { finished = i == count - 1; };
            scheduler.submit("picture", std::move(job));
        }
        while (!finished) {
            std::unique_lock lock(mutex);
            QVERIFY(arrived.wait_for(lock, std::chrono::seconds(30), [&] { return !owner.empty(); }));
            Scheduler::Task task = std::move(owner.front());
            owner.pop_front();
            lock.unlock();
            task();
        }
        QCOMPARE(newest, count - 1);
        QVERIFY(!scheduler.busy("picture"));
    }
};

KVSCOPE_TEST(SchedulerTest)
#include "scheduler_test.moc"
