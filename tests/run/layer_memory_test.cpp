// The way of a layer's memory: from a tensor that is gone into the next layer that is read.
#include "core/base/spare_memory.h"
#include "core/capture/open_capture.h"
#include "core/capture/synthetic_capture.h"
#include "core/engine/engine.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>

using namespace kvscope;

namespace {
constexpr auto kRows = static_cast<std::int64_t>(SpareMemory::kLeast / 128); // of 128 numbers: the least that is kept
}

class LayerMemoryTest : public QObject {
    Q_OBJECT

private slots:
    void aTensorThatIsGoneLeavesItsMemory() {
        const SpareMemory kept;
        std::vector<float> numbers(SpareMemory::kLeast, 5.0F);
        const float* place = numbers.data();
        const auto engine = makeCpuEngine(1);
        {
            const Tensor whole = engine->upload({{1, kRows, 128}, std::move(numbers)});
            const Tensor part = engine->rows(whole, 0, 1);
        }
        QVERIFY(SpareMemory::take(SpareMemory::kLeast).data() == place);
    }

    // The file holds zeros, so what is left of the earlier tensor would be seen.
    void aLayerIsReadIntoSpareMemory() {
        const QTemporaryDir folder;
        const std::string path = folder.filePath("zeros.h5").toStdString();
        writeSyntheticCapture({.tokens = kRows, .layers = 1, .kvHeads = 1, .headDim = 128, .queryWindow = 1}, path, 0,
                              true, {});
        const auto capture = openCapture(path);
        const SpareMemory kept;
        std::vector<float> numbers(SpareMemory::kLeast, 5.0F);
        const float* place = numbers.data();
        SpareMemory::give(std::move(numbers));
        const HostTensor keys = capture->read(LayerIndex(0), TensorRole::Keys, {});
        QVERIFY(keys.data.data() == place);
        QVERIFY(std::ranges::all_of(keys.data, [](float x) { return x == 0; }));
    }
};

KVSCOPE_TEST(LayerMemoryTest)
#include "layer_memory_test.moc"
