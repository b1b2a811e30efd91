// A context behind a worker as a capture: the same numbers, and so the same lists, as in memory; the bits of lists on
// their way to the worker; and tensors that cannot be.
#include <QtTest>

#include "app/live/live_answers.h"
#include "app/live/live_client.h"
#include "app/live/tensor_stream.h"
#include "core/policies/policy_spec.h"
#include "tests/live/fake_worker.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <limits>

using namespace kvscope;
using namespace kvscope::live;
using testing::FakeWorker;

namespace {

constexpr TokenIndex kCut = 61; // no multiple of 8

std::shared_ptr<const LiveCapture> readFrom(const FakeWorker& fake, const std::string& mode = "right") {
    const auto client = std::make_shared<LiveClient>(fake.options(mode), Checkpoint());
    const LiveModel model(client, ModelChoice(), {});
    const std::vector<TextPart> text = {{SegmentKind::Context, "ignored"}};
    return model.read(model.tokenize(text, {}, {}), kCut, "", {});
}

std::string refusalOf(const FakeWorker& fake, const std::string& mode = "right") {
    return errorMessage([&] { readFrom(fake, mode)->read(LayerIndex(1), TensorRole::Values, {}); });
}

RunRequest requestFor(std::shared_ptr<const CaptureReader> capture, const char* spec, int layer) {
    RunRequest request = runRequest(std::move(capture), spec, std::to_string(kCut));
    request.layer = LayerIndex(layer);
    request.measure = false;
    return request;
}

/// The worker's checksum of a selection, from a loop over its tokens: the rows as text, then the blobs.
double checksumOf(const std::vector<Selection>& layers) {
    std::string rows = "[", kept, numerator, denominator;
    bool weighted = false;
    for (std::size_t l = 0; l < layers.size(); ++l)
        for (std::size_t h = 0; h < layers[l].heads.size(); ++h) {
            const HeadSelection& head = layers[l].heads[h];
            rows += (rows == "[" ? "[" : ",[") + std::to_string(l) + "," + std::to_string(h) + "]";
            std::string bits((kCut + 7) / 8, '\0');
            for (std::size_t i = 0; i < head.kept.size(); ++i) {
                const auto at = static_cast<std::size_t>(head.kept[i]);
                bits[at / 8] = static_cast<char>(static_cast<unsigned char>(bits[at / 8]) + (1u << at % 8));
                const auto weight = [&](const std::vector<float>& of) { return of.empty() ? 1.0f : of[i]; };
                const float n = weight(head.numeratorWeights), d = weight(head.denominatorWeights);
                numerator.append(reinterpret_cast<const char*>(&n), 4);
                denominator.append(reinterpret_cast<const char*>(&d), 4);
            }
            weighted = weighted || !head.numeratorWeights.empty() || !head.denominatorWeights.empty();
            kept += bits;
        }
    std::string all = rows + "]" + kept;
    if (weighted) all += numerator + denominator;
    int sum = 0;
    for (const char c : all) sum = (sum * 31 + static_cast<unsigned char>(c)) % 1'000'003;
    return sum;
}

} // namespace

class LiveCaptureTest : public QObject {
    Q_OBJECT

    std::shared_ptr<MemoryCapture> m_memory = makeRandomCapture(7, 83, 2, 4, 2, 16);

private slots:
    void itHoldsTheWorkersNumbers() {
        const FakeWorker fake(m_memory.get());
        const auto capture = readFrom(fake);
        QCOMPARE(capture->info().numTokens, 83);
        QCOMPARE(capture->info().hash, std::string("abc"));
        QCOMPARE(capture->tokens().ids, m_memory->tokens().ids);
        QCOMPARE(capture->tokens().bytes, m_memory->tokens().bytes);
        QVERIFY(std::isnan(capture->tokens().nll.front()) && capture->tokens().nll[1] == 0.5f);
        for (const int layer : {0, 1})
            for (const TensorRole role :
                 {TensorRole::Keys, TensorRole::Values, TensorRole::Queries, TensorRole::KeysPreRope}) {
                const HostTensor live = capture->read(LayerIndex(layer), role, {});
                const HostTensor memory = m_memory->read(LayerIndex(layer), role, {});
                QVERIFY(live.shape == memory.shape);
                QVERIFY(live.data == memory.data);
            }
        QVERIFY(capture->readsQueriesInParts());
        QVERIFY(capture->readQueries(LayerIndex(1), 61, 83, {}).data ==
                m_memory->readQueries(LayerIndex(1), 61, 83, {}).data);
        QVERIFY_THROWS_EXCEPTION(Error, capture->read(LayerIndex(2), TensorRole::Keys, {}));
        QVERIFY_THROWS_EXCEPTION(Error, capture->read(LayerIndex(0), TensorRole::OutputProjection, {}));
    }

    void policiesKeepTheSame_data() {
        QTest::addColumn<QByteArray>("spec");
        for (const char* spec : {"keydiff@0.3", "snapkv@17t", "h2o@0.25", "balancekv@0.5", "subgen_kcenter@0.5"})
            QTest::newRow(spec) << QByteArray(spec);
    }
    /// On the live context as in memory; and the bits that arrive at the worker are those of the lists.
    void policiesKeepTheSame() {
        QFETCH(QByteArray, spec);
        const FakeWorker fake(m_memory.get());
        const auto capture = readFrom(fake);
        const LayerRunner runner = testing::cpuRunner(1);
        std::vector<std::shared_ptr<const RunResult>> results;
        std::vector<LayerSelection> layers;
        std::vector<Selection> selections;
        for (const int layer : {0, 1}) {
            results.push_back(runner.run(requestFor(capture, spec, layer), {}));
            const auto memory = runner.run(requestFor(m_memory, spec, layer), {});
            QVERIFY(results.back()->selection.sameLists(memory->selection));
            layers.push_back({LayerIndex(layer), &results.back()->selection});
            selections.push_back(memory->selection);
        }
        LiveAnswers answers(capture);
        const SentSelection sent = answers.send("a", layers, {});
        const auto rows = answers.score({std::nullopt, sent.id}, {});
        QCOMPARE(rows.size(), std::size_t{2});
        QCOMPARE(rows[0].nll, 0.5);
        QCOMPARE(rows[1].nll, checksumOf(selections));
        QVERIFY(std::isnan(rows[1].losses[0]) && rows[1].losses[1] == rows[1].nll);
        answers.beginRound();
        QVERIFY(answers.send("a", layers, {}).id.ends_with("/2"));
        std::string told;
        const auto texts = answers.generate({std::nullopt, sent.id}, {.mostTokens = 2}, {},
                                            [&](std::size_t row, std::size_t index, const std::string& text) {
                                                told += std::to_string(row) + std::to_string(index) + text + ";";
                                            });
        QVERIFY(texts[1].text == "forty two" && texts[1].firstDivergence == 1 && !texts[0].firstDivergence);
        QCOMPARE(told, std::string("00forty;01 two;10forty;11 two;"));
        QCOMPARE(texts[1].pieces, (std::vector<std::string>{"forty", " two"}));
    }

    /// The parts of one would come between those of the other.
    void uploadsOfOneNameAreKeptApart() {
        const FakeWorker fake(m_memory.get());
        const auto capture = readFrom(fake);
        const LiveAnswers answers(capture), beside(capture);
        QVERIFY(answers.send("a", {}, {}).id != beside.send("a", {}, {}).id); // the names that arrive
    }

    /// Without reading the context again, which takes time and its memory once more.
    void theCaptureIsWrittenFromWhatTheWorkerHolds() {
        const FakeWorker fake(m_memory.get());
        readFrom(fake)->writeCapture(fake.path().toStdString() + "/out.h5", {});
        QFile written(fake.path() + "/out.h5");
        QVERIFY(written.open(QIODevice::ReadOnly));
        QCOMPARE(written.readAll(), QByteArray("a saved capture"));
    }

    /// A slider that moves for hours: nothing is kept of a round that is over.
    void manyRoundsLeaveNothingBehind() {
        const FakeWorker fake(m_memory.get());
        const auto capture = readFrom(fake);
        Selection kept;
        kept.heads.assign(2, {});
        for (TokenIndex token = 0; token < kCut; token += 2)
            for (HeadSelection& head : kept.heads) head.kept.push_back(token);
        const std::vector<LayerSelection> layers = {{LayerIndex(0), &kept}, {LayerIndex(1), &kept}};
        LiveAnswers answers(capture);
        const auto memory = [] { // pages
            QFile statm("/proc/self/statm");
            return statm.open(QIODevice::ReadOnly) ? statm.readAll().split(' ').value(1).toLongLong() : 0;
        };
        const auto handles = [] { // pipes are broken links to QDir
            return QDir("/proc/self/fd").entryList(QDir::AllEntries | QDir::System).size();
        };
        const int rounds = qEnvironmentVariable("KVSCOPE_SLIDER_MOVES", "1000").toInt();
        qint64 before = 0;
        const auto handlesBefore = handles();
        for (int round = 0; round < rounds; ++round) {
            if (round == rounds / 5) before = memory();
            answers.beginRound();
            const SentSelection sent = answers.send("a", layers, {});
            QCOMPARE(answers.score({sent.id}, {}).front().nll, checksumOf({kept, kept}));
            QCOMPARE(answers.generate({sent.id}, {.mostTokens = 2}, {}).front().ids.size(), std::size_t{2});
        }
        QVERIFY(before > 0);
        QCOMPARE(handles(), handlesBefore);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which keep what was freed
        QVERIFY2(memory() - before < 512, qPrintable(QString("%1 pages more").arg(memory() - before)));
#endif
    }

    void questionAndAnswerLieBehindTheCut() {
        m_memory->tokenTable.segments = {
            {0, kCut, SegmentKind::Context}, {kCut, 70, SegmentKind::Question}, {72, 80, SegmentKind::Answer}};
        const FakeWorker fake(m_memory.get());
        const LiveAnswers answers(readFrom(fake));
        QCOMPARE(answers.question().size(), std::size_t{11}); // with what a chat template puts before the answer
        QCOMPARE(answers.question().front(), kCut);
        QCOMPARE(answers.answer().front(), 72);
        QCOMPARE(answers.answer().size(), std::size_t{8});
    }

    void tensorsThatCannotBe() {
        const FakeWorker fake(m_memory.get());
        const auto refused = [&](const std::string& mode, const char* words) {
            const std::string found = refusalOf(fake, mode);
            return found.find(words) != std::string::npos ? QByteArray() : QByteArray::fromStdString("found: " + found);
        };
        QCOMPARE(refused("shape", "(layer 1, v)"), QByteArray());
        QCOMPARE(refused("shape", "its shape is (3, 83, 16), not (2, 83, 16)"), QByteArray());
        QCOMPARE(refused("part", "it is not whole (layer 1, v)"), QByteArray());
        QCOMPARE(refused("right", ""), QByteArray());
        QFile file(fake.path() + "/1_v.f32");
        QVERIFY(file.open(QIODevice::ReadWrite));
        const float nan = std::numeric_limits<float>::quiet_NaN();
        file.seek(4 * (16 * (83 + 5) + 3)); // head 1, token 5
        file.write(reinterpret_cast<const char*>(&nan), 4);
        file.close();
        QCOMPARE(refused("right", "NaN in head 1, token 5 (layer 1, v)"), QByteArray());
        QVERIFY(file.resize(file.size() - 4));
        QCOMPARE(refused("right", "it has 10620 bytes, not 10624"), QByteArray());
    }

    void aTensorWithoutExtents() {
        TensorStream stream("layer 1, o_proj", {TensorStream::kAsStated, 4, 16}, Checkpoint());
        const Json params = {{"dtype", "f32"}, {"shape", Json::array()}, {"of", 0}, {"offset", 0}};
        std::vector<std::string> blobs(1);
        QVERIFY_THROWS_EXCEPTION(Error, stream.taker()("tensors/data", params, blobs));
    }

    void modelsThatCannotBe_data() {
        QTest::addColumn<QByteArray>("what");
        QTest::addColumn<QByteArray>("with");
        QTest::addColumn<QByteArray>("words");
        const auto row = [](const char* what, const char* with, const char* words) {
            QTest::addRow("%s -> %s", what, with) << QByteArray(what) << QByteArray(with) << QByteArray(words);
        };
        row("\"num_kv_heads\":2", "\"num_kv_heads\":0", "num_kv_heads is 0");
        row("\"head_dim\":16", "\"head_dim\":99999999999", "head_dim is 99999999999");
        row("\"head_dim\":16", "\"head_dim\":\"16\"", "is not what the protocol says");
        row("\"head_dim\":16,", "", "is not what the protocol says");
        row("\"queries\":83", "\"queries\":84", "queries is 84");
        row("\"layer\":1", "\"layer\":0", "its layers are not ascending");
        row("\"layer\":1", "\"layer\":2", "layer is 2");
        row("\"kv_of_q\":[0,0,1,1]", "\"kv_of_q\":[0,0,1,2]", "kv_of_q names no KV head");
        row("\"kv_of_q\":[0,0,1,1]", "\"kv_of_q\":[0,0,0,0]", "kv_of_q leaves out a KV head");
        row("\"dtype\":\"f32\"", "\"dtype\":\"f64\"", "have the type 'f64'");
        row("\"positions\":[0,", "\"positions\":[0,0,", "has read other tokens");
    }
    void modelsThatCannotBe() {
        QFETCH(QByteArray, what);
        QFETCH(QByteArray, with);
        QFETCH(QByteArray, words);
        const FakeWorker fake(m_memory.get());
        QFile file(fake.path() + "/context.json");
        QVERIFY(file.open(QIODevice::ReadOnly));
        QByteArray text = file.readAll();
        QVERIFY2(text.contains(what), text.left(600));
        fake.write("context.json", text.replace(what, with));
        const QByteArray found = QByteArray::fromStdString(refusalOf(fake));
        QVERIFY2(found.contains(words), found);
    }
};

KVSCOPE_CORE_TEST(LiveCaptureTest)
#include "live_capture_test.moc"
