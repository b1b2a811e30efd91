// Memory of tensors for later tensors: who gets it, and when it goes back to the system.
#include "core/base/spare_memory.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <utility>

using namespace kvscope;

namespace {

constexpr std::size_t kCount = SpareMemory::kLeast;

/// Gives numbers of a mark, to be known again.
void giveMarked(std::size_t count, float mark) { SpareMemory::give(std::vector<float>(count, mark)); }

bool isFresh(const std::vector<float>& numbers) {
    return std::ranges::all_of(numbers, [](float x) { return x == 0; });
}

} // namespace

class SpareMemoryTest : public QObject {
    Q_OBJECT

private slots:
    void memoryIsTakenOnce() {
        const SpareMemory kept;
        std::vector<float> numbers(kCount, 3.0F);
        const float* place = numbers.data();
        SpareMemory::give(std::move(numbers));
        const std::vector<float> taken = SpareMemory::take(kCount), other = SpareMemory::take(kCount);
        QVERIFY(taken.data() == place && taken.size() == kCount);
        QVERIFY(other.size() == kCount && isFresh(other));
    }

    void onlyOfTheSameSize() {
        const SpareMemory kept;
        giveMarked(kCount + 8, 1);
        QVERIFY(isFresh(SpareMemory::take(kCount)));
        QCOMPARE(SpareMemory::take(kCount + 8).front(), 1.0F);
    }

    void smallTensorsAreNotKept() {
        const SpareMemory kept;
        giveMarked(kCount - 1, 1);
        QVERIFY(isFresh(SpareMemory::take(kCount - 1)));
    }

    void nothingIsKeptUnlessAsked() {
        giveMarked(kCount, 1);
        {
            const SpareMemory outer;
            QVERIFY(isFresh(SpareMemory::take(kCount)));
            giveMarked(kCount, 2);
            { const SpareMemory inner; }
            QCOMPARE(SpareMemory::take(kCount).front(), 2.0F);
            giveMarked(kCount, 3);
        }
        const SpareMemory later;
        QVERIFY(isFresh(SpareMemory::take(kCount)));
    }

    void theOldestGoesFirst() {
        const SpareMemory kept;
        for (int i = 0; i < 5; ++i) giveMarked(kCount + static_cast<std::size_t>(i), 1);
        QVERIFY(isFresh(SpareMemory::take(kCount)));
        QCOMPARE(SpareMemory::take(kCount + 1).front(), 1.0F);
    }
};

KVSCOPE_TEST(SpareMemoryTest)
#include "spare_memory_test.moc"
