// The machine's clock keeps the promises of its interface, and the fake one keeps the same.
#include <QTest>

#include "tests/support/fake_clock.h"
#include "tests/support/test_program.h"

using namespace kvscope;
using namespace std::chrono_literals;
using kvscope::testing::FakeClock;

class ClockTest : public QObject {
    Q_OBJECT

private slots:
    void theMachinesTimerExpiresOnceAfterEachStart() {
        int expired = 0, later = 0;
        const auto timer = machineClock().makeTimer([&] { ++expired; });
        const auto last = machineClock().makeTimer([&] { ++later; });
        const auto begun = machineClock().now();
        timer->start(5ms);
        QVERIFY(timer->isActive());
        QTRY_COMPARE(expired, 1);
        QVERIFY(!timer->isActive() && machineClock().now() - begun >= 5ms);
        last->start(20ms);
        QTRY_COMPARE(later, 1);
        QCOMPARE(expired, 1); // it was not started again
    }

    void aStoppedOrDestroyedTimerDoesNotExpire() {
        int expired = 0, later = 0;
        const auto stopped = machineClock().makeTimer([&] { ++expired; });
        auto destroyed = machineClock().makeTimer([&] { ++expired; });
        const auto last = machineClock().makeTimer([&] { ++later; });
        stopped->start(1ms);
        destroyed->start(1ms);
        last->start(20ms);
        stopped->stop();
        destroyed.reset();
        QTRY_COMPARE(later, 1);
        QCOMPARE(expired, 0);
    }

    void fakeTimersExpireInTheOrderOfTheirTimes() {
        FakeClock clock;
        std::vector<std::pair<int, Clock::Duration>> expired;
        const auto begun = clock.now();
        const auto note = [&](int which) { expired.emplace_back(which, clock.now() - begun); };
        const auto slow = clock.makeTimer([&] { note(1); });
        std::unique_ptr<Clock::Timer> fast;
        fast = clock.makeTimer([&] {
            note(2);
            if (expired.size() < 3) fast->start(10ms);
        });
        slow->start(35ms);
        slow->start(25ms); // anew
        fast->start(10ms);
        clock.advance(9ms);
        QVERIFY(expired.empty());
        clock.advance(91ms);
        const std::vector<std::pair<int, Clock::Duration>> order = {{2, 10ms}, {2, 20ms}, {1, 25ms}, {2, 30ms}};
        QVERIFY(expired == order);
        QVERIFY(clock.now() - begun == 100ms && !clock.expireNext());
    }
};

KVSCOPE_CORE_TEST(ClockTest)
#include "clock_test.moc"
