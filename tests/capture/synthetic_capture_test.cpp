// The synthetic captures must have the geometry that they promise, because policies are evaluated with it.
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "tests/support/error_message.h"
#include "tests/support/larger_error.h"
#include "tests/support/memory_synthetic.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>
#include <tbb/global_control.h>

#include <cmath>
#include <fstream>
#include <map>
#include <numeric>

using namespace kvscope;

namespace {

SyntheticSpec usualSpec() { return {.tokens = 1024}; }

HostTensor synthetic(const SyntheticSpec& spec, LayerIndex layer, TensorRole role) {
    return readAll(*syntheticRows(spec, layer, role));
}

// Plain causal softmax of the last query of a head: the mass on each token.
std::vector<double> lastAttention(const CaptureReader& capture, LayerIndex layer, int queryHead) {
    const HostTensor q = capture.read(layer, TensorRole::Queries, {}), k = capture.read(layer, TensorRole::Keys, {});
    const LayerInfo& info = capture.info().layerInfo(layer);
    const std::int64_t n = k.shape[1], d = k.shape[2], kv = info.gqaGroupOf[static_cast<std::size_t>(queryHead)];
    const float* query = q.data.data() + (queryHead * q.shape[1] + q.shape[1] - 1) * d;
    std::vector<double> mass;
    double sum = 0;
    for (std::int64_t t = 0; t < n; ++t) {
        double logit = 0;
        for (std::int64_t c = 0; c < d; ++c)
            logit += double(query[c]) * k.data[static_cast<std::size_t>((kv * n + t) * d + c)];
        mass.push_back(std::exp(info.scaling * logit));
        sum += mass.back();
    }
    for (double& m : mass) m /= sum;
    return mass;
}

double norm(const HostTensor& tensor, std::int64_t head, std::int64_t row) {
    double sum = 0;
    for (std::int64_t c = 0; c < tensor.shape[2]; ++c)
        sum += std::pow(tensor.data[static_cast<std::size_t>((head * tensor.shape[1] + row) * tensor.shape[2] + c)], 2);
    return std::sqrt(sum);
}

// Length of the mean unit vector of the keys: 0 for scattered keys, 1 for parallel ones.
double alignment(const HostTensor& keys) {
    std::vector<double> mean(static_cast<std::size_t>(keys.shape[2]));
    for (std::int64_t t = 0; t < keys.shape[1]; ++t)
        for (std::size_t c = 0; c < mean.size(); ++c)
            mean[c] +=
                keys.data[static_cast<std::size_t>(t) * mean.size() + c] / norm(keys, 0, t) / double(keys.shape[1]);
    double sum = 0;
    for (const double m : mean) sum += m * m;
    return std::sqrt(sum);
}

} // namespace

class SyntheticCaptureTest : public QObject {
    Q_OBJECT

private slots:
    void theSeedDecidesEverything() {
        SyntheticSpec spec = usualSpec();
        spec.tokens = 200;
        const HostTensor a = synthetic(spec, LayerIndex(1), TensorRole::Keys);
        {
            const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
            QCOMPARE(synthetic(spec, LayerIndex(1), TensorRole::Keys).data, a.data);
        }
        const std::string text = syntheticTokens(spec).bytes;
        spec.seed = 1;
        QVERIFY(synthetic(spec, LayerIndex(1), TensorRole::Keys).data != a.data);
        QVERIFY(syntheticTokens(spec).bytes != text);
    }

    void aPromptThatIsTooShortSaysWhatToGive() {
        SyntheticSpec spec = usualSpec();
        spec.tokens = 5;
        spec.sinks = 8;
        const auto refused = [&spec] { return errorParts([&] { checkSpec(spec); }); };
        QVERIFY(refused().remedy.ends_with(", or --needle-length 0 and at least 9"));
        spec.needleLength = 0;
        QCOMPARE(refused().remedy, std::string("Give at least 9, or fewer --sinks"));
        spec.tokens = 9;
        QCOMPARE(refused().sentence, std::string("accepted"));
    }

    void theAnswerIsTheCodeOfTheNeedle() {
        SyntheticSpec spec = usualSpec();
        spec.seed = 5;
        const TokenTable tokens = syntheticTokens(spec);
        QCOMPARE(tokens.ids.size(), std::size_t(1024));
        QCOMPARE(tokens.segments.size(), std::size_t(4));
        std::map<SegmentKind, std::string> digits;
        for (const Segment& s : tokens.segments)
            for (TokenIndex t = s.begin; t < s.end; ++t)
                for (const char c : tokens.textOf(t))
                    if (std::isdigit(static_cast<unsigned char>(c))) digits[s.kind] += c;
        QCOMPARE(digits[SegmentKind::Needle].size(), std::size_t(5));
        QCOMPARE(digits[SegmentKind::Answer], digits[SegmentKind::Needle]);
    }

    void sinksAreShortAndSeenByAll() {
        SyntheticSpec spec = usualSpec();
        spec.needleLength = 0;
        const auto capture = makeSyntheticCapture(spec);
        const HostTensor keys = capture->read(LayerIndex(0), TensorRole::Keys, {});
        QVERIFY(norm(keys, 0, 1) < 0.6 * norm(keys, 0, 500));
        const auto mass = lastAttention(*capture, LayerIndex(0), 3);
        QVERIFY(mass[0] + mass[1] + mass[2] + mass[3] > 0.5);
    }

    void theQuestionFindsTheNeedle_data() {
        QTest::addColumn<int>("tokens");
        QTest::newRow("short") << 128;
        QTest::newRow("usual") << 1024;
        QTest::newRow("long") << 16384;
    }

    void theQuestionFindsTheNeedle() {
        QFETCH(int, tokens);
        SyntheticSpec spec = usualSpec();
        spec.tokens = tokens;
        spec.layers = 1;
        const auto capture = makeSyntheticCapture(spec);
        const Segment needle = capture->tokens().segments[1];
        QCOMPARE(needle.kind, SegmentKind::Needle);
        const auto mass = lastAttention(*capture, LayerIndex(0), 0); // reads KV head 0, which carries layer 0's needle
        const double found = std::accumulate(mass.begin() + needle.begin, mass.begin() + needle.end, 0.0);
        QVERIFY2(found > 0.5, qPrintable(QString::number(found)));
    }

    void collinearityAlignsTheKeys() {
        SyntheticSpec spec = usualSpec();
        double before = -1;
        for (const double collinearity : {0.0, 0.4, 0.8}) {
            spec.collinearity = collinearity;
            const double now = alignment(synthetic(spec, LayerIndex(0), TensorRole::Keys));
            QVERIFY2(now > before + 0.1, qPrintable(QString("%1 after %2").arg(now).arg(before)));
            before = now;
        }
        QVERIFY(before > 0.7);
    }

    void rotationIsTheOnlyDifferenceOfRope() {
        SyntheticSpec spec = usualSpec();
        spec.tokens = 300;
        const auto turned = makeSyntheticCapture(spec);
        const HostTensor pre = turned->read(LayerIndex(0), TensorRole::KeysPreRope, {});
        spec.rope = false;
        const HostTensor plain = synthetic(spec, LayerIndex(0), TensorRole::Keys);
        double worst = 0;
        for (std::size_t i = 0; i < plain.data.size(); ++i)
            worst = testing::larger(worst, std::fabs(double(plain.data[i]) - pre.data[i]));
        QVERIFY2(worst > 0 && worst < 0.1,
                 qPrintable(QString::number(worst))); // bf16 rounding of numbers up to about 8
    }

    void contradictionsAreNamed() {
        const auto with = [](auto change) {
            SyntheticSpec spec = usualSpec();
            change(spec);
            return errorParts([&] { checkSpec(spec); }).place;
        };
        checkSpec(usualSpec());
        QCOMPARE(with([](auto& s) { s.tokens = 0; }), std::string("--tokens"));
        QCOMPARE(with([](auto& s) { s.tokens = 20; }), std::string("--tokens"));
        QCOMPARE(with([](auto& s) { s.queryHeads = 7; }), std::string("--q-heads"));
        QCOMPARE(with([](auto& s) { s.headDim = 33; }), std::string("--head-dim"));
        QCOMPARE(with([](auto& s) { s.clusters = -1; }), std::string("--clusters"));
        QCOMPARE(with([](auto& s) { s.needleBegin = 1020; }), std::string("--needle-begin"));
        QCOMPARE(with([](auto& s) { s.collinearity = 1; }), std::string("--collinearity"));
        QCOMPARE(with([](auto& s) { s.queryWindow = 2000; }), std::string("--q-window"));
    }

    void a48GibCaptureIsOpenedWithoutItsNumbers() {
        // Llama-3.1-8B at 131,072 tokens
        const SyntheticSpec spec{.tokens = 131072, .layers = 32, .queryHeads = 32, .kvHeads = 8, .headDim = 128};
        QTemporaryDir folder;
        const std::string path = folder.filePath("sparse.h5").toStdString();
        writeSyntheticCapture(spec, path, 0, true, {});
        const auto bytesRead = [] { // by this process, from any file
            std::ifstream counts("/proc/self/io");
            std::string name;
            std::int64_t bytes = 0;
            counts >> name >> bytes;
            return bytes;
        };
        const std::int64_t before = bytesRead();
        const auto capture = openCapture(path);
        const std::int64_t read = bytesRead() - before;
        QVERIFY(capture->info().fileBytes > (std::uint64_t{48} << 30));
        QVERIFY2(before > 0 && read > 0 && read < 16 << 20, qPrintable(QString("%1 bytes").arg(read)));
        qInfo("%.1f GiB are opened with %.1f MiB", double(capture->info().fileBytes) / (1 << 30),
              double(read) / (1 << 20));
    }
};

KVSCOPE_TEST(SyntheticCaptureTest)
#include "synthetic_capture_test.moc"
