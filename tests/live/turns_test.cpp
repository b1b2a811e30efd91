// Threads that wait for their turn: first come, first served, and who is cancelled goes without it.
#include <QtTest>

#include "app/live/turns.h"
#include "tests/support/test_program.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

using namespace kvscope;
using live::Turns;

namespace {

/// A thread that waits for its turn, and is known to wait.
class Waiter {
public:
    Waiter(Turns& turns, std::function<void()> act) {
        const std::size_t before = turns.count();
        m_thread = std::thread([this, &turns, act = std::move(act)] {
            try {
                const Turns::Turn turn(turns, Checkpoint(m_stop.get_token()));
                act();
            } catch (const Cancelled&) {
                m_isCancelled = true;
            }
        });
        while (turns.count() == before) std::this_thread::yield();
    }
    ~Waiter() {
        if (m_thread.joinable()) m_thread.join();
    }
    void cancel() {
        m_stop.request_stop();
        m_thread.join();
    }
    bool isCancelled() const { return m_isCancelled; }

private:
    std::stop_source m_stop;
    std::atomic<bool> m_isCancelled = false;
    std::thread m_thread;
};

} // namespace

class TurnsTest : public QObject {
    Q_OBJECT

private slots:
    void theOneThatCameFirstIsFirst() {
        Turns turns;
        std::vector<int> order; // written by who has the turn
        std::optional<Turns::Turn> own;
        own.emplace(turns, Checkpoint());
        {
            std::vector<std::unique_ptr<Waiter>> waiters;
            for (int i = 0; i < 4; ++i)
                waiters.push_back(std::make_unique<Waiter>(turns, [&order, i] { order.push_back(i); }));
            own.reset();
            const Turns::Turn again(turns, {}); // behind them, though it asks at once
            order.push_back(4);
        }
        QCOMPARE(order, (std::vector<int>{0, 1, 2, 3, 4}));
    }

    void theOneThatIsCancelledGoesAtOnceAndIsInNobodysWay() {
        Turns turns;
        int passed = 0;
        std::optional<Turns::Turn> own;
        own.emplace(turns, Checkpoint());
        Waiter unwanted(turns, [&] { passed += 100; }), wanted(turns, [&] { ++passed; });
        unwanted.cancel(); // returns while this thread has the turn
        QVERIFY(unwanted.isCancelled() && !wanted.isCancelled());
        own.reset();
        const Turns::Turn again(turns, {});
        QCOMPARE(passed, 1);
    }

    void aStopBeforehandTakesNoTurn() {
        Turns turns;
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_THROWS_EXCEPTION(Cancelled, Turns::Turn(turns, Checkpoint(stop.get_token())));
        const Turns::Turn own(turns, {}); // or this waits for ever
    }
};

KVSCOPE_CORE_TEST(TurnsTest)
#include "turns_test.moc"
