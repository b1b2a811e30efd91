// Writes captures and reads them back: every stored type, all queries or the last ones, with and without RoPE,
// compressed or not. What comes back must be what the stored type can hold, bit for bit.
#include "core/base/error.h"
#include "core/capture/capture_writer.h"
#include "core/capture/open_capture.h"
#include "tests/support/error_message.h"
#include "tests/support/memory_synthetic.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>

#include <thread>

using namespace kvscope;

namespace {

SyntheticSpec smallSpec() {
    return {.tokens = 150, .layers = 2, .queryHeads = 4, .kvHeads = 2, .headDim = 16, .seed = 11};
}

void compareTables(const TokenTable& a, const TokenTable& b) {
    QCOMPARE(a.ids, b.ids);
    QCOMPARE(a.positions, b.positions);
    QCOMPARE(a.bytes, b.bytes);
    QCOMPARE(a.offsets, b.offsets);
    QCOMPARE(a.segments.size(), b.segments.size());
    for (std::size_t i = 0; i < a.segments.size(); ++i) {
        QCOMPARE(a.segments[i].begin, b.segments[i].begin);
        QCOMPARE(a.segments[i].end, b.segments[i].end);
        QCOMPARE(a.segments[i].kind, b.segments[i].kind);
    }
}

} // namespace

class RoundTripTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string file(const char* name) const { return m_folder.filePath(name).toStdString(); }

private slots:
    void everyTypeComesBackBitForBit_data() {
        QTest::addColumn<int>("type");
        QTest::addColumn<int>("window");
        QTest::addColumn<bool>("rope");
        QTest::addColumn<int>("deflate");
        QTest::newRow("bf16") << int(StoredType::Bfloat16) << 0 << true << 0;
        QTest::newRow("f16, window, deflate") << int(StoredType::Float16) << 17 << true << 4;
        QTest::newRow("f32, no rope") << int(StoredType::Float32) << 0 << false << 1;
        QTest::newRow("f16, window of one") << int(StoredType::Float16) << 1 << false << 0;
    }

    void everyTypeComesBackBitForBit() {
        QFETCH(int, type);
        QFETCH(int, window);
        QFETCH(bool, rope);
        QFETCH(int, deflate);
        SyntheticSpec spec = smallSpec();
        spec.storedType = static_cast<StoredType>(type);
        spec.queryWindow = window;
        spec.rope = rope;
        const auto memory = makeSyntheticCapture(spec);
        writeCapture(*memory, file("a.h5"), {.deflateLevel = deflate}, {});
        const auto read = openCapture(file("a.h5"));
        compareTables(read->tokens(), memory->tokens());
        QCOMPARE(read->info().notes, memory->info().notes);
        QCOMPARE(read->info().rope.theta, memory->info().rope.theta);
        QCOMPARE(read->inverseFrequencies(LayerIndex(1)), memory->frequencies);
        QCOMPARE(read->computeHash({}), read->info().hash);
        for (const LayerInfo& layer : read->info().layers) {
            QCOMPARE(layer.storedType, spec.storedType);
            QCOMPARE(layer.queryCount, window > 0 ? window : spec.tokens);
            QCOMPARE(layer.hasRope, rope);
            QCOMPARE(layer.gqaGroupOf, (std::vector<std::int32_t>{0, 0, 1, 1}));
            for (const auto role :
                 {TensorRole::Keys, TensorRole::Values, TensorRole::Queries, TensorRole::KeysPreRope}) {
                const HostTensor expected = memory->read(layer.layer, role, {});
                const HostTensor found = read->read(layer.layer, role, {});
                QCOMPARE(found.shape, expected.shape);
                QCOMPARE(found.data, expected.data);
                const auto rows = read->rows(layer.layer, role);
                QVERIFY(rows && rows->shape() == found.shape);
                QCOMPARE(readAll(*rows).data, expected.data);
                const std::int64_t begin = expected.shape[1] / 3, count = expected.shape[1] / 2;
                std::vector<float> some(static_cast<std::size_t>(count * 16));
                rows->read(1, begin, count, some.data());
                const auto from = expected.data.begin() + (expected.shape[1] + begin) * 16;
                QVERIFY(std::equal(some.begin(), some.end(), from));
                if (role != TensorRole::Queries) continue;
                QCOMPARE(read->readQueries(layer.layer, begin, begin + count, {}).data,
                         memory->readQueries(layer.layer, begin, begin + count, {}).data);
            }
        }
    }

    void theStreamingWriterMakesTheSameFile() {
        const SyntheticSpec spec = smallSpec();
        writeSyntheticCapture(spec, file("streamed.h5"), 0, false, {});
        writeCapture(*makeSyntheticCapture(spec), file("copied.h5"), {.deflateLevel = 6}, {});
        QCOMPARE(openCapture(file("streamed.h5"))->info().hash, openCapture(file("copied.h5"))->info().hash);
    }

    void optionalTensorsAndLayerAttributesSurvive() {
        auto memory = makeSyntheticCapture(smallSpec());
        memory->captureInfo.sources = {{"scaling", "m.json, Transformers 5 (X)"}, {"rope", "assumed"}};
        memory->captureInfo.rope.rotaryDim -= 2;
        memory->captureInfo.rope.rotaryBegin = 2;
        memory->frequencies.pop_back();
        LayerInfo& layer = memory->captureInfo.layers[1];
        layer.hasKeysPreRope = layer.hasQueriesPreRope = layer.hasOutputProjection = layer.qkNorm = true;
        layer.softcap = 30;
        layer.slidingWindow = 64;
        layer.scaling = 0.07;
        layer.sinks = {0.5f, -3, 1e-3f, 7};
        memory->captureInfo.selfCheck =
            R"({"checks": [{"name": "loss", "outcome": "failed", "difference": 2.5, "tolerance": 0.001}]})";
        const LayerIndex one(1);
        HostTensor marked = memory->read(one, TensorRole::Keys, {});
        marked.data[5] = 42;
        memory->tensors[{one, TensorRole::KeysPreRope}] = marked;
        memory->tensors[{one, TensorRole::QueriesPreRope}] = memory->read(one, TensorRole::Queries, {});
        HostTensor projection{Shape{3, 4, 16}, std::vector<float>(3 * 4 * 16, 0.5f)};
        memory->tensors[{one, TensorRole::OutputProjection}] = projection;
        memory->tokenTable.nll.assign(150, 1.25f);
        writeCapture(*memory, file("full.h5"), {}, {});
        const auto read = openCapture(file("full.h5"));
        const LayerInfo& back = read->info().layerInfo(one);
        QVERIFY(back.hasKeysPreRope && back.hasQueriesPreRope && back.hasOutputProjection && back.qkNorm);
        QCOMPARE(back.softcap, 30.0);
        QCOMPARE(back.slidingWindow, std::int64_t(64));
        QCOMPARE(back.scaling, 0.07);
        QCOMPARE(back.sinks, layer.sinks);
        QCOMPARE(read->info().checks.at(0).difference, 2.5);
        QCOMPARE(read->info().checkWarning(), std::string("the capture failed its self-check (loss)"));
        const LayerIndex zero(0); // whose keys before RoPE are derived, from coordinate 2 on
        QCOMPARE(read->read(zero, TensorRole::KeysPreRope, {}).data,
                 memory->read(zero, TensorRole::KeysPreRope, {}).data);
        const HostTensor keys = read->read(zero, TensorRole::Keys, {});
        const HostTensor plain = read->read(zero, TensorRole::KeysPreRope, {});
        for (std::size_t c = 0; c < 16; ++c) // of token 9
            QCOMPARE(plain.data[9 * 16 + c] == keys.data[9 * 16 + c], c < 2);
        QCOMPARE(read->read(one, TensorRole::KeysPreRope, {}).data, marked.data);
        QCOMPARE(read->read(one, TensorRole::OutputProjection, {}).data, projection.data);
        QCOMPARE(read->tokens().nll, memory->tokenTable.nll);
        QCOMPARE(read->info().rope.rotaryBegin, 2);
        QVERIFY(read->info().sources == memory->captureInfo.sources);
        QVERIFY(!read->info().layerInfo(LayerIndex(0)).hasKeysPreRope);
    }

    void layersAboveHundredAreFound() {
        auto memory = makeSyntheticCapture(smallSpec());
        memory->captureInfo.numLayers = 126;
        memory->captureInfo.layers[1].layer = LayerIndex(125);
        for (const auto role : {TensorRole::Keys, TensorRole::Values, TensorRole::Queries})
            memory->tensors[{LayerIndex(125), role}] = memory->tensors.at({LayerIndex(1), role});
        writeCapture(*memory, file("deep.h5"), {}, {});
        const auto read = openCapture(file("deep.h5"));
        QCOMPARE(read->info().layers.back().layer.value, 125);
        QCOMPARE(read->read(LayerIndex(125), TensorRole::Keys, {}).data,
                 memory->tensors.at({LayerIndex(1), TensorRole::Keys}).data);
        QVERIFY_THROWS_EXCEPTION(Error, read->read(LayerIndex(7), TensorRole::Keys, {}));
    }

    void anUnfinishedOrRefusedCaptureLeavesNothing() {
        auto memory = makeSyntheticCapture(smallSpec());
        memory->captureInfo.layers[0].storedType = StoredType::Float16;
        memory->tensors.at({LayerIndex(0), TensorRole::Values}).data[3] = 65520.0f; // rounds to infinity as f16
        const Error::Parts refused = errorParts([&] { writeCapture(*memory, file("refused.h5"), {}, {}); });
        QCOMPARE(refused.sentence, std::string("65520 in head 0, row 0 cannot be stored as f16"));
        QCOMPARE(refused.place, std::string("layers/00/v"));
        std::stop_source stop;
        stop.request_stop();
        QVERIFY_THROWS_EXCEPTION(
            Cancelled, writeSyntheticCapture(smallSpec(), file("stopped.h5"), 0, false, Checkpoint(stop.get_token())));
        for (const QString& name : QDir(m_folder.path()).entryList(QDir::Files | QDir::Hidden))
            QVERIFY2(!name.contains("refused") && !name.contains("stopped"), qPrintable(name));
        QVERIFY_THROWS_EXCEPTION(Error, writeSyntheticCapture(smallSpec(), file("no/such/folder.h5"), 0, false, {}));
    }

    void twoThreadsReadAtTheSameTime() {
        writeSyntheticCapture(smallSpec(), file("shared.h5"), 0, false, {});
        const auto capture = openCapture(file("shared.h5"));
        const HostTensor expected[] = {capture->read(LayerIndex(0), TensorRole::Keys, {}),
                                       capture->read(LayerIndex(1), TensorRole::Queries, {})};
        std::vector<int> differences(4, 0);
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                const bool first = t % 2 == 0;
                const auto own = t < 2 ? capture : openCapture(file("shared.h5"));
                for (int i = 0; i < 20; ++i)
                    differences[t] +=
                        own->read(LayerIndex(first ? 0 : 1), first ? TensorRole::Keys : TensorRole::Queries, {}).data !=
                        expected[first ? 0 : 1].data;
            });
        threads.clear();
        QCOMPARE(differences, std::vector<int>(4, 0));
    }
};

KVSCOPE_TEST(RoundTripTest)
#include "round_trip_test.moc"
