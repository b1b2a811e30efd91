// What is kept beside frozen data: one value of each thing, made anew for another key, by one thread at a time.
#include "core/base/memo.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <atomic>
#include <stdexcept>
#include <thread>

using namespace kvscope;

namespace {

auto makes(int value) {
    return [value] { return std::make_shared<int>(value); };
}

} // namespace

class MemoTest : public QObject {
    Q_OBJECT

private slots:
    void oneEntryPerThing() {
        const Memo memo;
        const auto means = memo.get("means", "a", makes(1)), norms = memo.get("norms", "a", makes(2));
        QCOMPARE(*norms, 2);
        QCOMPARE(memo.get("means", "a", makes(3)), means);
        QCOMPARE(memo.get("norms", "a", makes(3)), norms);
    }

    void anotherKeyMakesAnew() {
        const Memo memo;
        const auto first = memo.get("means", "a", makes(1));
        QCOMPARE(*memo.get("means", "b", makes(2)), 2);
        QCOMPARE(*memo.get("means", "b", makes(3)), 2);
        QCOMPARE(*memo.get("means", "a", makes(4)), 4); // the last one alone is kept
        QCOMPARE(*first, 1);                            // by whom it was given
    }

    void aCopyBeginsEmpty() {
        Memo memo;
        memo.get("means", "a", makes(1));
        const Memo copy(memo);
        QCOMPARE(*copy.get("means", "a", makes(2)), 2);
        QCOMPARE(*memo.get("means", "a", makes(3)), 1);
        memo = copy;
        QCOMPARE(*memo.get("means", "a", makes(4)), 4);
    }

    void whereMakingThrowsTheLastOneStays() {
        const Memo memo;
        const auto throws = []() -> std::shared_ptr<int> { throw std::runtime_error("cancelled"); };
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, memo.get("means", "a", throws));
        QCOMPARE(*memo.get("means", "a", makes(1)), 1);
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, memo.get("means", "b", throws));
        QCOMPARE(*memo.get("means", "a", makes(2)), 1);
    }

    // Also for the thread sanitizer: assignments in between empty the memo under its readers.
    void severalThreadsMakeOnce() {
        Memo memo;
        std::atomic<int> made = 0, wrong = 0;
        const auto read = [&](const std::string& key) {
            for (int i = 0; i < 2000; ++i)
                if (*memo.get("means", key, [&] {
                        ++made;
                        return std::make_shared<std::string>(key);
                    }) != key)
                    ++wrong;
        };
        std::thread one(read, "a"), other(read, "a");
        one.join(), other.join();
        QCOMPARE(made.load(), 1);
        std::thread a(read, "a"), b(read, "b"), empties([&] {
            for (int i = 0; i < 2000; ++i) memo = Memo();
        });
        a.join(), b.join(), empties.join();
        QCOMPARE(wrong.load(), 0);
    }
};

KVSCOPE_TEST(MemoTest)
#include "memo_test.moc"
