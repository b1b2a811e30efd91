// Broken captures: each is a sound one with one thing wrong, made here. Every sentence must say what is wrong, where,
// and what to do, because it is all that the user sees. Files that kill the HDF5 library: hostile_capture_test.
#include "core/base/error.h"
#include "core/capture/capture_doctor.h"
#include "core/capture/h5_writer.h"
#include "core/capture/open_capture.h"
#include "core/capture/synthetic_capture.h"
#include "tests/support/error_message.h"
#include "tests/support/h5_edit.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>

#include <filesystem>
#include <fstream>
#include <limits>

using namespace kvscope;
using h5_edit::edit, h5_edit::removeObject, h5_edit::replace;

namespace {

SyntheticSpec smallSpec() {
    return {.tokens = 64, .layers = 2, .queryHeads = 4, .kvHeads = 2, .headDim = 16, .storedType = StoredType::Float32};
}

} // namespace

class BrokenCaptureTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    int m_number = 0;

    std::string sound() {
        const std::string path = m_folder.filePath(QString("broken%1.h5").arg(m_number++)).toStdString();
        writeSyntheticCapture(smallSpec(), path, 0, false, {});
        return path;
    }
    void expect(const std::string& path, const Error::Parts& found, const std::string& sentence,
                const std::string& place) {
        QCOMPARE(found.sentence, sentence);
        QCOMPARE(found.place, place);
        QCOMPARE(found.path, path);
        QVERIFY(!found.remedy.empty());
    }
    void expectRefused(const std::string& path, const std::string& sentence, const std::string& place) {
        expect(path, errorParts([&] { openCapture(path); }), sentence, place);
    }

private slots:
    // First of all, because the program itself takes external links out of the library before it opens anything.
    void initTestCase() {
        const std::string path = m_folder.filePath("linked.h5").toStdString();
        const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(H5Gcreate2(file, "tokens", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        QVERIFY(H5Lcreate_external("elsewhere.h5", "ids", file, "tokens/ids", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        H5Fclose(file);
    }

    void soundFilesOpen() { QCOMPARE(openCapture(sound())->info().numTokens, std::int64_t(64)); }

    void filesThatAreNoCapture() {
        expectRefused(m_folder.filePath("none.h5").toStdString(), "there is no such file", "");
        expectRefused(m_folder.path().toStdString(), "this is a folder without .safetensors files, not a capture", "");
        const std::string text = m_folder.filePath("text.h5").toStdString();
        std::ofstream(text) << "not HDF5";
        expectRefused(text, "this is not an HDF5 file", "");
        const std::string cut = sound();
        std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
        expectRefused(cut, "the file cannot be read as HDF5; it may be truncated or still being written", "");
        const std::string other = m_folder.filePath("other.h5").toStdString();
        h5::Writer(other).close();
        expectRefused(other, "this HDF5 file is not a capture: the root attribute format is not \"kvscope-capture\"",
                      "format");
    }

    void attributes() {
        std::string path = sound();
        h5_edit::setAttribute(path, "/", "version", std::int64_t{9});
        expectRefused(path, "the capture has version 9, this program reads version 1", "version");
        path = sound();
        h5::Writer stopped(path, h5::Writer::Mode::Append);
        stopped.attribute("/", "partial_state", std::string("0123"));
        stopped.close();
        expectRefused(path, "the capture is not whole: kvscope-capture was stopped while it wrote it", "partial_state");
        path = sound();
        edit(path, [](hid_t file) { H5Adelete(file, "num_kv_heads"); });
        expectRefused(path, "a root attribute is missing", "num_kv_heads");
        path = sound();
        h5_edit::setAttribute(path, "/", "head_dim", std::int64_t{-3});
        expectRefused(path, "the attribute is -3, which no model has", "head_dim");
        path = sound();
        h5_edit::setAttribute(path, "/", "rope", std::string("{broken"));
        expectRefused(path, "the attribute is not a JSON object", "rope");
        path = sound();
        h5_edit::setAttribute(path, "/", "rope", std::string(R"({"rotary_begin": 2000000000, "rotary_dim": 2})"));
        expectRefused(path, "rotary_begin + rotary_dim must be at most head_dim", "rope");
        path = sound();
        h5_edit::setAttribute(path, "/", "sources", std::string(R"({"scaling": 3})"));
        expectRefused(path, "a member of the attribute is no text", "sources");
        path = sound();
        h5_edit::setAttribute(path, "/", "num_layers", std::int64_t{1});
        expectRefused(path, "the group is no layer below 1", "layers/01");
    }

    // With one of these every score is NaN or 0, and the lists would look like an answer.
    void factsThatAreNotFinite() {
        constexpr double kInfinity = std::numeric_limits<double>::infinity();
        const auto setLayer = [](const std::string& path, const char* name, double value) {
            h5_edit::setAttribute(path, "layers/01", name, value);
        };
        for (const double bad : {kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
            std::string path = sound();
            setLayer(path, "softcap", bad);
            expectRefused(path, "the attribute softcap is not finite", "layers/01");
            path = sound();
            std::vector<float> frequencies = openCapture(path)->inverseFrequencies(LayerIndex(0));
            frequencies.at(1) = static_cast<float>(bad);
            replace(path, "rope/inv_freq", frequencies);
            expectRefused(path, "an inverse frequency of the rotation is not finite", "rope/inv_freq");
        }
        std::string path = sound();
        setLayer(path, "scaling", kInfinity);
        expectRefused(path, "the attribute scaling is not finite", "layers/01");
        path = sound();
        setLayer(path, "scaling", std::numeric_limits<double>::quiet_NaN());
        expectRefused(path, "the layer has no positive attribute scaling", "layers/01");
    }

    // Attention gives such a head's tokens no score.
    void aHeadThatNoQueryHeadReads() {
        const std::string path = sound();
        h5_edit::setAttribute(path, "layers/01", "kv_of_q", std::vector<std::int32_t>{1, 1, 1, 1});
        expectRefused(path, "no query head reads KV head 0 by kv_of_q", "layers/01");
    }

    void tokens() {
        std::string path = sound();
        replace(path, "tokens/ids", std::vector<std::int32_t>{});
        expectRefused(path, "the capture has no tokens", "tokens/ids");
        path = sound();
        removeObject(path, "tokens/offsets");
        expectRefused(path, "a data set is missing", "tokens/offsets");
        path = sound();
        std::vector<std::int64_t> offsets = openCapture(path)->tokens().offsets;
        std::swap(offsets[3], offsets[4]);
        replace(path, "tokens/offsets", offsets);
        expectRefused(path, "offsets must rise from 0 to the number of text bytes", "tokens/offsets");
        path = sound();
        replace(path, "tokens/position_ids", std::vector<std::int64_t>(63));
        expectRefused(path, "the shape is (63), the attributes ask for (64)", "tokens/position_ids");
        path = sound();
        replace(path, "tokens/segments", std::vector<std::int32_t>{0, 65, 1}, {1, 3});
        expectRefused(path, "segment 0 is (0, 65, 1), outside the 64 tokens or of unknown kind", "tokens/segments");
    }

    void tensors() {
        std::string path = sound();
        removeObject(path, "layers/01/v");
        expectRefused(path, "a data set is missing", "layers/01/v");
        path = sound();
        replace(path, "layers/00/k", std::vector<float>(2 * 60 * 16), {2, 60, 16});
        expectRefused(path, "the shape is (2, 60, 16), the attributes ask for (2, 64, 16)", "layers/00/k");
        path = sound();
        replace(path, "layers/00/k", std::vector<std::int32_t>(2 * 64 * 16), {2, 64, 16});
        expectRefused(path, "the stored type is none of bfloat16 (uint16 with attribute dtype), float16, float32",
                      "layers/00/k");
        path = sound();
        replace(path, "layers/00/v", std::vector<std::int32_t>(2 * 64 * 16), {2, 64, 16});
        const auto capture = openCapture(path);
        expect(path, errorParts([&] { capture->read(LayerIndex(0), TensorRole::Values, {}); }),
               "the stored type is none of bfloat16 (uint16 with attribute dtype), float16, float32", "layers/00/v");
    }

    void numbersThatAreNone() {
        for (const auto& [bad, word] : {std::pair{std::numeric_limits<float>::quiet_NaN(), "NaN"},
                                        {std::numeric_limits<float>::infinity(), "infinity"}}) {
            const std::string path = sound();
            std::vector<float> keys(2 * 64 * 16, 1.0f);
            keys[(1 * 64 + 37) * 16 + 5] = bad;
            replace(path, "layers/01/k", keys, {2, 64, 16});
            const auto capture = openCapture(path);
            expect(path, errorParts([&] { capture->read(LayerIndex(1), TensorRole::Keys, {}); }),
                   std::string(word) + " in head 1, token 37", "layers/01/k");
        }
    }

    void filesThatReachOutside() {
        const std::string path = m_folder.filePath("linked.h5").toStdString();
        h5::Writer writer(path, h5::Writer::Mode::Append);
        writer.attribute("/", "format", std::string("kvscope-capture"));
        for (const char* name : {"version", "num_layers", "num_q_heads", "num_kv_heads", "head_dim", "value_dim"})
            writer.attribute("/", name, std::int64_t{1});
        writer.close();
        expectRefused(path, "the file links to another file", "tokens/ids");
    }

    void aLoopOfGroupsEnds() {
        const std::string path = sound();
        edit(path, [](hid_t file) { H5Lcreate_hard(file, "layers", file, "tokens/loop", H5P_DEFAULT, H5P_DEFAULT); });
        edit(path, [](hid_t file) { H5Lcreate_hard(file, "tokens", file, "tokens/again", H5P_DEFAULT, H5P_DEFAULT); });
        const auto capture = openCapture(path);
        QCOMPARE(errorParts([&] { capture->computeHash({}); }).sentence, std::string("groups are nested too deeply"));
        const auto findings = examineCapture(*capture, {.readEverything = true}, {});
        QVERIFY(std::ranges::any_of(findings, [](const CaptureFinding& finding) {
            return finding.severity == Severity::Error && finding.what == "groups are nested too deeply";
        }));
    }

    void aWindowMayHoldAllQueries() {
        const std::string path = sound();
        const LayerIndex first(0);
        const HostTensor queries = openCapture(path)->read(first, TensorRole::Queries, {});
        edit(path,
             [](hid_t file) { H5Lmove(file, "layers/00/q", file, "layers/00/q_window", H5P_DEFAULT, H5P_DEFAULT); });
        const auto capture = openCapture(path);
        QCOMPARE(capture->info().layers[0].queryCount, std::int64_t{64});
        QCOMPARE(capture->read(first, TensorRole::Queries, {}).data, queries.data);
    }
};

KVSCOPE_TEST(BrokenCaptureTest)
#include "broken_capture_test.moc"
