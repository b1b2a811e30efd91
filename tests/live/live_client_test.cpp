// The client against workers that are right, that die, hang and lie: every failure is one sentence, and no process is
// left behind.
#include <QtTest>

#include "app/live/live_client.h"
#include "app/live/model_facts.h"
#include "app/live/worker_process.h"
#include "core/jobs/scheduler.h"
#include "tests/live/fake_worker.h"
#include "tests/support/test_program.h"
#include "tests/support/thread_state.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

using namespace kvscope;
using namespace kvscope::live;
using testing::FakeWorker;

namespace {

/// The greeting, a model, and the request at which fake workers misbehave.
void useWorker(const WorkerOptions& options, const Checkpoint& checkpoint = {}) {
    LiveClient client(options, checkpoint);
    client.call("model/open", {{"path", "x"}}, {}, checkpoint);
    client.call("context/read", {{"cut", 1}, {"capture_to", nullptr}}, {}, checkpoint);
}

std::string failureOf(const WorkerOptions& options) {
    try {
        useWorker(options);
    } catch (const Error& error) {
        return error.what();
    } catch (const Cancelled&) {
        return "cancelled";
    }
    return {};
}

} // namespace

class LiveClientTest : public QObject {
    Q_OBJECT

private slots:
    void aRightWorkerAnswers_data() {
        QTest::addColumn<QString>("mode");
        QTest::newRow("right") << "right";
        QTest::newRow("behind a banner") << "chatty";
    }
    void aRightWorkerAnswers() {
        QFETCH(QString, mode);
        const FakeWorker fake;
        {
            LiveClient client(fake.options(mode.toStdString()), {});
            QCOMPARE(client.worker()["worker"]["python"], "fake");
            QCOMPARE(client.call("model/open", {{"path", "x"}}, {}, {})["model_id"], "m");
            QVERIFY(fake.isAlive());
        }
        QVERIFY(!fake.isAlive());
    }

    // Jobs run on threads that gave their priority away; what they start has the window's all the same.
    void aWorkerIsAsNiceAsTheWindow() {
        keepNiceness();
        const FakeWorker fake;
        const auto nicenessOf = [](id_t process) { return ::getpriority(PRIO_PROCESS, process); };
        const int own = nicenessOf(0);
        int workers = -100;
        std::thread slower([&] {
            ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), std::min(own + 3, 19));
            const LiveClient client(fake.options("right"), {});
            workers = nicenessOf(fake.process().toUInt());
        });
        slower.join();
        QCOMPARE(workers, own);
    }

    void failuresAreSaid_data() {
        QTest::addColumn<QByteArray>("mode");
        QTest::addColumn<QByteArray>("words");
        const auto row = [](const char* mode, const char* words) {
            QTest::addRow("%s: %.20s", mode, words) << QByteArray(mode) << QByteArray(words);
        };
        row("dies", "the worker ended with exit code 3; its last words: Traceback (most recent call last): |   boom | "
                    "RuntimeError: the weights are gone");
        row("killed", "the worker was killed by signal 9");
        row("killed", "memory is short");
        row("half", "ended with exit code 0 in the middle of a message");
        row("garbage", "no frame: its header does not end within 1 KiB; it begins 'Loading checkpoint shards: 100%");
        row("huge", "its text has 9223372036854775808 bytes, of at most 16777216");
        row("endless", "64 KiB passed without the greeting");
        row("version", "the worker speaks version '2' of the protocol");
        row("newer", "the worker speaks version [2,0] of the protocol, this program version 1");
        row("stranger", "the worker answered what nobody asked");
        row("refuses", "needs 14.2 GiB, 11.8 GiB are free. Choose bf16");
        row("empty", "the worker refuses without a reason");
        row("outdated", "cancelled");
    }
    void failuresAreSaid() {
        QFETCH(QByteArray, mode);
        QFETCH(QByteArray, words);
        const FakeWorker fake;
        fake.write("context.json", R"({"tokens": {}, "info": {}, "hash": ""})");
        const QByteArray found = QByteArray::fromStdString(failureOf(fake.options(mode.toStdString())));
        QVERIFY2(found.contains(words), found);
        QVERIFY(!found.contains('\n'));
        QVERIFY(!fake.isAlive());
    }

    void silenceIsSaid_data() {
        QTest::addColumn<QString>("mode");
        for (const char* mode : {"hangs", "floods"}) QTest::newRow(mode) << mode;
    }
    void silenceIsSaid() {
        QFETCH(QString, mode);
        const FakeWorker fake;
        WorkerOptions options = fake.options(mode.toStdString());
        options.silence = std::chrono::milliseconds(200);
        const std::string found = failureOf(options);
        QVERIFY2(found.find("gives no sign of life") != std::string::npos, found.c_str());
        QVERIFY(!fake.isAlive());
    }

    void aWorkerThatNeverGreetsIsGivenUp() {
        WorkerOptions options;
        options.command = "tail -f /dev/null --";
        options.start = std::chrono::milliseconds(100);
        const std::string found = failureOf(options);
        QVERIFY2(found.find("did not greet within") != std::string::npos, found.c_str());
        QVERIFY2(found.find("output back (conda run needs --no-capture-output)") != std::string::npos, found.c_str());
    }

    void whatCannotStartIsSaid_data() {
        QTest::addColumn<QByteArray>("command");
        QTest::addColumn<QByteArray>("words");
        QTest::newRow("no program") << QByteArray("no-such-program-4711 x")
                                    << QByteArray("cannot start 'no-such-program-4711': No such file or directory");
        QTest::newRow("a variable") << QByteArray("HF_HOME=/tmp python3") << QByteArray("Write 'env' before variables");
        QTest::newRow("no module") << QByteArray("python3 -I -S")
                                   << QByteArray(
                                          "no module kvscope_live (python3 -I -S). Install it with `python3 -I -S "
                                          "-m pip install");
        QTest::newRow("a reason on standard output")
            << QByteArray("sh -c 'echo no such environment; exit 1'")
            << QByteArray("exit code 1 before it greeted; its last words: no such environment (sh");
        QTest::newRow("no input") << QByteArray("true")
                                  << QByteArray(
                                         "before it greeted (true). A worker ends like that when its input is "
                                         "closed: docker and podman need -i, conda run needs --no-capture-output");
        QTest::newRow("no input, and output at the end")
            << QByteArray("sh -c 'echo KVSCOPE 1'")
            << QByteArray("docker and podman need -i, conda run needs --no-capture-output");
        QTest::newRow("a terminal that is none") << QByteArray("sh -c 'echo the input device is not a TTY >&2; exit 1'")
                                                 << QByteArray("Leave out the option -t (docker, podman, ssh)");
        QTest::newRow("no Python") << QByteArray("false") << QByteArray("ended with exit code 1 before it greeted");
        QTest::newRow("empty") << QByteArray(" ") << QByteArray("is empty");
    }
    void whatCannotStartIsSaid() {
        QFETCH(QByteArray, command);
        QFETCH(QByteArray, words);
        WorkerOptions options;
        options.command = command.toStdString();
        const QByteArray found = QByteArray::fromStdString(failureOf(options));
        QVERIFY2(found.contains(words), found);
    }

    /// A worker elsewhere: another folder and environment, a login's words before the greeting, a shell that reads the
    /// words once more, and a line that breaks.
    void prefixesStartAWorkerElsewhere_data() {
        QTest::addColumn<QByteArray>("prefix");
        QTest::addColumn<QByteArray>("words"); // empty: it answers
        const QByteArray ssh =
            "python3 -S '" + QByteArray::fromStdString(testing::sourceDir()) + "/tests/live/fake_ssh.py' ";
        QTest::newRow("ssh") << ssh + "gpu7 " << QByteArray();
        QTest::newRow("env, as conda run and uv run do") << QByteArray("env -i PATH=/usr/bin:/bin ") << QByteArray();
        QTest::newRow("a shell's exec, as srun does")
            << QByteArray("sh -c 'cd / && exec \"$@\"' srun ") << QByteArray();
        QTest::newRow("no connection") << ssh + "nowhere "
                                       << QByteArray("ended with exit code 255 before it greeted; its last words: ssh: "
                                                     "connect to host nowhere port 22: Connection refused");
        QTest::newRow("a password") << ssh + "locked " << QByteArray("Permission denied (publickey,password)");
        QTest::newRow("a lost connection") << ssh + "drops "
                                           << QByteArray("ended with exit code 255 in the middle of a message; its "
                                                         "last words: client_loop: send disconnect: Broken pipe");
        QTest::newRow("and what to do then") << ssh + "drops " << QByteArray("The connection was lost, or");
        QTest::newRow("a wrapper without a command")
            << QByteArray("sh -c 'exec no-such-python' ") << QByteArray("Give a command that exists, with its path");
        QTest::newRow("a container without it")
            << QByteArray("sh -c 'exec /' ") << QByteArray("Give a command that exists, with its path");
        QTest::newRow("an unknown host") << ssh + "unknown "
                                         << QByteArray("its last words: Host key verification failed. (");
        QTest::newRow("and what to do about its key") << ssh + "unknown " << QByteArray("does not know its key");
        QTest::newRow("a killed job") << QByteArray("sh -c 'kill -9 $$' ") << QByteArray("when memory is short");
        QTest::newRow("a stopped container")
            << QByteArray("sh -c 'exit 137' ") << QByteArray("docker stop kills like that: start it again");
    }
    void prefixesStartAWorkerElsewhere() {
        QFETCH(QByteArray, prefix);
        QFETCH(QByteArray, words);
        const FakeWorker fake;
        fake.write("context.json", R"({"tokens": {}, "info": {}, "hash": ""})");
        WorkerOptions options = fake.options("right");
        options.command = prefix.toStdString() + options.command;
        const QByteArray found = QByteArray::fromStdString(failureOf(options));
        QVERIFY2(words.isEmpty() ? found.isEmpty() : found.contains(words), found);
        QVERIFY(!found.contains('\n'));
    }

    /// ssh asks on its terminal, and would stop for ever in a group in that terminal's background.
    void aWorkerHasNoTerminal() {
        const FakeWorker fake;
        const LiveClient client(fake.options("right"), {});
        const pid_t worker = fake.process().toInt();
        QVERIFY(worker > 0);
        QCOMPARE(::getsid(worker), worker);
    }

    /// Such as srun of its queue, before the greeting and never after it.
    void whatTheStartSaysIsPassedOn() {
        const FakeWorker fake;
        WorkerOptions options = fake.options("right");
        options.command = "sh -c 'printf \"job 4\\nqueued\\r\\n\" >&2; exec \"$@\"' srun " + options.command;
        std::string said;
        options.startSays = [&](const std::string& line) { said = line; };
        LiveClient client(options, {});
        QCOMPARE(said, "queued");
        QVERIFY(!client.options().startSays);
    }

    /// The stop comes with the worker's progress, so the request certainly runs.
    void aRequestIsCancelledAndTheWorkerStays() {
        const FakeWorker fake;
        std::stop_source stop;
        double reached = 0;
        const Checkpoint checkpoint(stop.get_token(), [&](double done, double total) {
            reached = done / total;
            stop.request_stop();
        });
        LiveClient client(fake.options("slow"), {});
        QVERIFY_THROWS_EXCEPTION(Cancelled, client.call("context/read", Json::object(), {}, checkpoint));
        QCOMPARE(reached, 0.25);
        QCOMPARE(client.call("model/open", {{"path", "x"}}, {}, {})["model_id"], "m");
        QVERIFY_THROWS_EXCEPTION(Cancelled, client.call("model/open", {{"path", "x"}}, {}, checkpoint));
    }

    /// While another one is under way, which ends after it.
    void aRequestThatWaitsForItsTurnIsCancelled() {
        const FakeWorker fake;
        std::stop_source first, second;
        std::promise<void> ended;
        std::thread waiting;
        std::atomic<pid_t> id = 0; // of that thread
        bool hasEnded = false;
        LiveClient client(fake.options("slow"), {});
        const Checkpoint checkpoint(first.get_token(), [&](double, double) {
            waiting = std::thread([&] {
                id = ::gettid();
                try {
                    client.call("model/open", {{"path", "x"}}, {}, Checkpoint(second.get_token()));
                } catch (const Cancelled&) {
                    ended.set_value();
                }
            });
            while (id == 0 || !testing::isAsleep(id)) std::this_thread::yield();
            second.request_stop();
            hasEnded = ended.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
            first.request_stop();
        });
        QVERIFY_THROWS_EXCEPTION(Cancelled, client.call("context/read", Json::object(), {}, checkpoint));
        waiting.join();
        QVERIFY(hasEnded);
    }

    void aWorkerThatIgnoresACancelIsKilled() {
        const FakeWorker fake;
        std::stop_source stop;
        const Checkpoint checkpoint(stop.get_token(), [&](double, double) { stop.request_stop(); });
        WorkerOptions options = fake.options("deaf");
        options.cancel = std::chrono::milliseconds(100);
        LiveClient client(options, {});
        QVERIFY_THROWS_EXCEPTION(Cancelled, client.call("context/read", Json::object(), {}, checkpoint));
        QVERIFY(!fake.process().isEmpty());
        const QString process = "/proc/" + fake.process();
        QTRY_VERIFY(!QFile::exists(process)); // nobody waits for it, and no zombie stays
        QVERIFY_THROWS_EXCEPTION(Error, client.call("model/open", {{"path", "x"}}, {}, {})); // and stays dead
    }

    /// PyTorch takes seconds to import and hears nothing meanwhile; nothing is lost with such a worker.
    void aWorkerThatImportsIsNotWaitedFor() {
        const FakeWorker fake;
        std::stop_source stop;
        const Checkpoint checkpoint(stop.get_token(), [&](double, double) { stop.request_stop(); });
        WorkerOptions options = fake.options("importing");
        options.cancel = std::chrono::hours(1);
        QVERIFY_THROWS_EXCEPTION(Cancelled, LiveClient(options, checkpoint));
        QTRY_VERIFY(!fake.isAlive());
    }

    /// As many and as long as a list can show, each on one line; another type is no list.
    void modelsAreListed() {
        const auto listed = [](const char* mode) {
            const FakeWorker fake;
            LiveClient client(fake.options(mode), {});
            return live::cachedModels(client, {});
        };
        QCOMPARE(listed("right"), (std::vector<std::string>{"org/small", "org/tiny"}));
        QVERIFY(listed("older").empty()); // it says nothing of lists and is not asked
        const std::vector<std::string> many = listed("many");
        QCOMPARE(many.size(), std::size_t{1000});
        QVERIFY(many[0].find('\n') == std::string::npos && many[1] == "many/0000");
        QVERIFY_THROWS_EXCEPTION(Error, listed("numbers"));
    }

    /// A worker in a job outlives srun where srun is killed, with whatever it has reserved.
    void aJobIsCancelled() {
        const FakeWorker fake;
        std::stop_source stop;
        const Checkpoint checkpoint(stop.get_token(), [&](double, double) { stop.request_stop(); });
        WorkerOptions options = fake.options("importing");
        options.command = "python3 -S '" + testing::sourceDir() + "/tests/live/fake_srun.py' " + options.command;
        QVERIFY_THROWS_EXCEPTION(Cancelled, LiveClient(options, checkpoint));
        QTRY_VERIFY(!fake.isAlive());
    }

    /// It removes the file that it has begun; one that only opens is not waited for.
    void aCancelledReadingThatWritesIsWaitedFor() {
        const FakeWorker fake;
        fake.write("context.json", R"({"tokens": {}, "info": {}, "hash": ""})");
        std::stop_source stop;
        const Checkpoint checkpoint(stop.get_token(), [&](double, double) { stop.request_stop(); });
        LiveClient client(fake.options("late_reader"), {});
        const live::Json writing = {{"capture_to", fake.path().toStdString() + "/out.h5"}, {"cut", 1}};
        QVERIFY_THROWS_EXCEPTION(Cancelled, client.call("context/read", writing, {}, checkpoint));
        QCOMPARE(client.lost(), std::string());
    }

    /// One waits for the worker, one for its turn: the pool's only thread is left to whoever computes.
    void callsThatWaitLetAPoolCompute() {
        const FakeWorker fake;
        std::stop_source stop;
        WorkerOptions options = fake.options("stuck");
        options.cancel = std::chrono::milliseconds(100);
        options.silence = std::chrono::minutes(10);
        LiveClient client(options, {});
        std::array<std::promise<bool>, 2> cancelled;
        std::promise<void> computed;
        WorkerPool pool(1);
        for (std::promise<bool>& one : cancelled)
            pool.run([&] {
                try {
                    client.call("answer/score", {{"selection_ids", live::Json::array()}}, {},
                                Checkpoint(stop.get_token()));
                    one.set_value(false);
                } catch (const Cancelled&) {
                    one.set_value(true);
                }
            });
        pool.run([&] { computed.set_value(); });
        const auto found = computed.get_future().wait_for(std::chrono::minutes(1));
        stop.request_stop();
        for (std::promise<bool>& one : cancelled) QVERIFY(one.get_future().get());
        QVERIFY(found == std::future_status::ready);
    }

    /// Reading the context again takes longer than any answer: while it gives signs of life it stays. Once the program
    /// ends, nothing is waited for.
    void aWorkerWithAContextIsWaitedForUntilTheProgramEnds() {
        for (const std::string mode : {"late", "stuck"}) {
            const FakeWorker fake;
            fake.write("context.json", R"({"tokens": {}, "info": {}, "hash": ""})");
            std::stop_source stop;
            const Checkpoint checkpoint(stop.get_token(), [&](double, double) { stop.request_stop(); });
            WorkerOptions options = fake.options(mode);
            options.cancel = std::chrono::milliseconds(100);
            options.silence = std::chrono::minutes(10); // none but the end of the program ends the stuck one
            LiveClient client(options, {});
            client.call("context/read", {{"capture_to", nullptr}, {"cut", 1}}, {}, {});
            if (mode == "stuck") leaveWorkers();
            const live::Json all = {{"selection_ids", live::Json::array()}};
            QVERIFY_THROWS_EXCEPTION(Cancelled, client.call("answer/score", all, {}, checkpoint));
            QCOMPARE(client.lost().empty(), mode == "late");
        }
    }
};

KVSCOPE_CORE_TEST(LiveClientTest)
#include "live_client_test.moc"
