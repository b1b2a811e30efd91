// Tensors of other programs read as captures: the same numbers whatever the container and the order of axes, refusals
// that name file, tensor and remedy, and files damaged at random, which must be refused or read but never crash.
#include "core/capture/open_capture.h"
#include "core/capture/rope.h"
#include "core/capture/widen.h"
#include "tests/capture/tensor_folder.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <filesystem>
#include <random>

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr int kHeads = 2, kTokens = 5, kWidth = 4;
constexpr const char* kTwoHeads = R"({"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2,
                                      "head_dim": 4, "num_hidden_layers": 1})";

/// The number of a place, so that every reordering shows.
float numberAt(int layer, int role, std::int64_t head, std::int64_t token, std::int64_t column) {
    return static_cast<float>(1000 * layer + 500 * role + 100 * head + 10 * token + column);
}

/// [heads, tokens, width] in the order of axes that `index` gives to (head, token, column).
template <class Index> std::vector<float> filled(int layer, int role, int heads, int tokens, Index index) {
    std::vector<float> numbers(static_cast<std::size_t>(heads * tokens * kWidth));
    for (int h = 0; h < heads; ++h)
        for (int t = 0; t < tokens; ++t)
            for (int c = 0; c < kWidth; ++c)
                numbers[static_cast<std::size_t>(index(h, t, c))] = numberAt(layer, role, h, t, c);
    return numbers;
}

FileTensor headsFirst(const std::string& name, int layer, int role, int heads = kHeads, int tokens = kTokens) {
    const auto at = [=](int h, int t, int c) { return (h * tokens + t) * kWidth + c; };
    return {name, "F32", {heads, tokens, kWidth}, bytesOf(filled(layer, role, heads, tokens, at))};
}

FileTensor tokensFirst(const std::string& name, int layer, int role) {
    const auto at = [](int h, int t, int c) { return (t * kHeads + h) * kWidth + c; };
    return {name, "F32", {kTokens, kHeads, kWidth}, bytesOf(filled(layer, role, kHeads, kTokens, at))};
}

std::vector<FileTensor> twoLayers() {
    return {headsFirst("layers.0.k", 0, 0), headsFirst("layers.0.v", 0, 1), headsFirst("layers.1.k", 1, 0),
            headsFirst("layers.1.v", 1, 1)};
}

} // namespace

class ImportTest : public QObject {
    Q_OBJECT

    TensorFolder m_folder;

    std::string folder() {
        const std::string path = m_folder.fresh("");
        std::filesystem::create_directory(path);
        return path;
    }
    void expectNumbers(const CaptureReader& capture, int layers = 2) {
        QCOMPARE(static_cast<int>(capture.info().layers.size()), layers);
        for (int layer = 0; layer < layers; ++layer)
            for (int role = 0; role < 2; ++role) {
                const HostTensor read =
                    capture.read(LayerIndex(layer), role == 0 ? TensorRole::Keys : TensorRole::Values, {});
                QVERIFY((read.shape == Shape{kHeads, kTokens, kWidth}));
                const auto at = [](int h, int t, int c) { return (h * kTokens + t) * kWidth + c; };
                QCOMPARE(read.data, filled(layer, role, kHeads, kTokens, at));
            }
    }

private slots:
    void readsSafetensors() {
        const auto capture = openCapture(m_folder.safetensors(twoLayers()));
        expectNumbers(*capture);
        QCOMPARE(capture->info().numTokens, kTokens);
        QCOMPARE(capture->info().layers[1].scaling, 0.5);
        QCOMPARE(capture->info().layers[1].queryCount, 0);
        QVERIFY(capture->info().notes.find("no queries") != std::string::npos);
        QCOMPARE(capture->tokens().textOf(3), " #3");
    }

    void readsNpzStoredAndDeflated() {
        std::vector<FileTensor> tensors = twoLayers();
        for (FileTensor& tensor : tensors) tensor.type = "<f4";
        for (const bool deflated : {false, true}) {
            const std::string path = m_folder.fresh(".npz");
            writeNpz(path, tensors, deflated);
            expectNumbers(*openCapture(path));
        }
    }

    void readsAFolderOfLayers() {
        const std::string path = folder();
        for (int layer = 0; layer < 2; ++layer)
            writeFile(path + "/layer_" + std::to_string(layer) + (layer == 0 ? ".safetensors" : ".SAFETENSORS"),
                      safetensorsOf({headsFirst("k", layer, 0), headsFirst("v", layer, 1)}));
        expectNumbers(*openCapture(path));
    }

    void readsTheOrdersOfAxes() {
        ImportOptions options;
        options.order = AxisOrder::TokensFirst;
        std::vector<FileTensor> tensors = {tokensFirst("0.k", 0, 0), tokensFirst("0.v", 0, 1)};
        const std::string path = m_folder.safetensors(tensors);
        expectNumbers(*openImported(path, options), 1);
        QVERIFY(refusal(path).sentence.find("(5, 2, 4) does not say which axis") != std::string::npos);
        const FileTensor square{"0.k", "F32", {2, 2, 4}, std::string(64, '\0')};
        QVERIFY(refusal(m_folder.safetensors({square, {"0.v", "F32", {2, 2, 4}, std::string(64, '\0')}}))
                    .sentence.find("does not say which axis") != std::string::npos);
        for (FileTensor& tensor : tensors) tensor.shape = {kTokens, kHeads * kWidth};
        const std::string flat = m_folder.safetensors(tensors);
        QVERIFY(refusal(flat).remedy.find("--config") != std::string::npos);
        options.configPath = m_folder.fresh(".json");
        writeFile(options.configPath, kTwoHeads);
        expectNumbers(*openImported(flat, options), 1);
        for (FileTensor& tensor : tensors) tensor.shape = {kTokens * kHeads, 1, kWidth};
        QVERIFY(refusal(m_folder.safetensors(tensors), options).sentence.find("has 1 KV heads") != std::string::npos);
        std::vector<FileTensor> batch = {headsFirst("0.k", 0, 0), headsFirst("0.v", 0, 1)};
        for (FileTensor& tensor : batch) tensor.shape.insert(tensor.shape.begin(), 1);
        expectNumbers(*openImported(m_folder.safetensors(batch)), 1);
    }

    void readsVllmsStoredCaches_data() {
        QTest::addColumn<std::vector<std::int64_t>>("shape");
        QTest::addColumn<std::vector<int>>("strides"); // of role, head, token, in numbers
        const int row = kHeads * kWidth;
        QTest::newRow("2, tokens, heads x d")
            << std::vector<std::int64_t>{2, kTokens, row} << std::vector<int>{kTokens * row, kWidth, row};
        QTest::newRow("tokens, 2, heads, d")
            << std::vector<std::int64_t>{kTokens, 2, kHeads, kWidth} << std::vector<int>{row, kWidth, 2 * row};
        QTest::newRow("tokens, heads, 2 d")
            << std::vector<std::int64_t>{kTokens, kHeads, 2 * kWidth} << std::vector<int>{kWidth, 2 * kWidth, 2 * row};
    }

    void readsVllmsStoredCaches() {
        QFETCH(std::vector<std::int64_t>, shape);
        QFETCH(std::vector<int>, strides);
        const std::string path = folder();
        for (int layer = 0; layer < 2; ++layer) {
            std::vector<float> numbers(2 * kHeads * kTokens * kWidth);
            for (int role = 0; role < 2; ++role)
                for (int h = 0; h < kHeads; ++h)
                    for (int t = 0; t < kTokens; ++t)
                        for (int c = 0; c < kWidth; ++c)
                            numbers[static_cast<std::size_t>(role * strides[0] + h * strides[1] + t * strides[2] + c)] =
                                numberAt(layer, role, h, t, c);
            writeFile(path + "/model.layers." + std::to_string(layer) + ".self_attn.attn.safetensors",
                      safetensorsOf({{"kv_cache", "F32", shape, bytesOf(numbers)}}));
        }
        writeFile(
            path + "/config.json",
            R"({"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "num_hidden_layers": 2,
                                            "rope_theta": 10000.0, "_name_or_path": "some/model"})");
        const auto capture = openCapture(path);
        expectNumbers(*capture);
        QCOMPARE(capture->info().numQueryHeads, 4);
        QCOMPARE(capture->info().modelId, std::string("some/model"));
        QVERIFY(capture->inverseFrequencies(LayerIndex(0)) == (std::vector<float>{1.0f, 0.01f}));
    }

    // Keys and values in one tensor, with heads before tokens: nothing is taken for the other order in silence.
    void keysAndValuesTogetherHaveAnOrderOfAxes() {
        const FileTensor both{
            "0.kv", "F32", {2, kHeads, kTokens, kWidth}, headsFirst("", 0, 0).bytes + headsFirst("", 0, 1).bytes};
        const std::string path = m_folder.safetensors({both});
        QVERIFY2(refusal(path).sentence.find("does not say which axis") != std::string::npos,
                 refusal(path).sentence.c_str());
        ImportOptions options;
        options.order = AxisOrder::HeadsFirst;
        expectNumbers(*openImported(path, options), 1);
        options.order = AxisOrder::Auto;
        options.configPath = m_folder.fresh(".json");
        writeFile(options.configPath, kTwoHeads);
        expectNumbers(*openImported(path, options), 1);
    }

    // The axis of queries that is as long as the prompt holds the tokens, whatever the keys' order is.
    void queriesAreNotTransposed() {
        const FileTensor both{"0.kv", "F32", {2, kTokens, kHeads, kWidth}, std::string(320, '\0')};
        const auto capture = openImported(m_folder.safetensors({both, headsFirst("0.q", 0, 2, 4)}));
        QCOMPARE(capture->info().numQueryHeads, 4);
        QCOMPARE(capture->read(LayerIndex(0), TensorRole::Queries, {}).data[kWidth], numberAt(0, 2, 0, 1, 0));
        const FileTensor turned{"0.q", "F32", {kTokens, 4, kWidth}, std::string(320, '\0')};
        const std::string path = m_folder.safetensors({headsFirst("0.k", 0, 0), headsFirst("0.v", 0, 1), turned});
        QVERIFY2(refusal(path).sentence.find("another axis") != std::string::npos, refusal(path).sentence.c_str());
    }

    void keysComeBackBeforeRope() {
        HostTensor keys{Shape{kHeads, kTokens, kWidth}, {}};
        std::mt19937 random(3);
        for (int i = 0; i < kHeads * kTokens * kWidth; ++i)
            keys.data.push_back(std::normal_distribution<float>()(random));
        HostTensor rotated = keys;
        const std::vector<std::int64_t> positions = {0, 1, 2, 3, 4};
        rotateForward(rotated, positions, std::vector<float>{1.0f, 0.01f},
                      {.type = "default", .theta = 1e4, .rotaryDim = kWidth});
        const std::string path = folder();
        writeFile(
            path + "/a.safetensors",
            safetensorsOf({{"k_0", "F32", {kHeads, kTokens, kWidth}, bytesOf(rotated.data)}, headsFirst("v_0", 0, 1)}));
        QVERIFY(refusal(path).sentence == "accepted");
        QVERIFY_THROWS_EXCEPTION(Error, openCapture(path)->read(LayerIndex(0), TensorRole::KeysPreRope, {}));
        writeFile(
            path + "/config.json",
            R"({"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8, "rope_parameters": {"rope_theta": 10000,
                "rope_type": "default"}})");
        const HostTensor back = openCapture(path)->read(LayerIndex(0), TensorRole::KeysPreRope, {});
        for (std::size_t i = 0; i < keys.data.size(); ++i) QVERIFY(std::abs(back.data[i] - keys.data[i]) < 1e-5f);
    }

    void stretchesLlama3sFrequencies() {
        // Llama 3.1: factor 8, low 1, high 4, trained on 8192 tokens, theta 500,000, d = 128. Values of its module.
        const std::string path = folder(), wide(2 * 3 * 128 * 4, '\0');
        writeFile(path + "/a.safetensors",
                  safetensorsOf({{"0.k", "F32", {2, 3, 128}, wide}, {"0.v", "F32", {2, 3, 128}, wide}}));
        writeFile(path + "/config.json",
                  R"({"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 128,
                      "rope_theta": 500000.0, "rope_scaling": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192}})");
        const auto frequencies = openCapture(path)->inverseFrequencies(LayerIndex(0));
        QCOMPARE(frequencies.size(), std::size_t{64});
        QCOMPARE(frequencies[0], 1.0f);
        QVERIFY(std::abs(frequencies[10] / std::pow(500000.0, -20.0 / 128) - 1) < 1e-6); // short waves stay
        QVERIFY(std::abs(frequencies[63] / (std::pow(500000.0, -126.0 / 128) / 8) - 1) <
                1e-6); // long ones are stretched
        const double f = std::pow(500000.0, -64.0 / 128), smooth = (8192 * f / (2 * M_PI) - 1) / 3; // between: pair 32
        QVERIFY(smooth > 0 && smooth < 1);
        QVERIFY(std::abs(frequencies[32] / ((1 - smooth) * f / 8 + smooth * f) - 1) < 1e-6);
    }

    void takesQueriesTokensAndTemplates() {
        std::vector<FileTensor> tensors = {headsFirst("model/block7/K", 7, 0), headsFirst("model/block7/W", 7, 1),
                                           headsFirst("model/block7/q", 7, 2, 4, 3)};
        const std::int64_t ids[] = {11, 12, 13, 14, 15};
        tensors.push_back({"token_ids", "I64", {5}, std::string(reinterpret_cast<const char*>(ids), sizeof ids)});
        const std::string path = m_folder.safetensors(tensors);
        QVERIFY(refusal(path).sentence.find("layer 7 has keys but no values") != std::string::npos);
        ImportOptions options;
        options.templates = {NameTemplate::parse("v=*block{layer}/W")};
        const auto capture = openImported(path, options);
        QCOMPARE(capture->info().numQueryHeads, 4);
        QCOMPARE(capture->info().layers[0].queryCount, 3);
        QVERIFY((capture->info().layers[0].gqaGroupOf == std::vector<std::int32_t>{0, 0, 1, 1}));
        QCOMPARE(capture->tokens().ids[4], 15);
        QCOMPARE(capture->read(LayerIndex(7), TensorRole::Queries, {}).data[0], numberAt(7, 2, 0, 0, 0));
        options.tokensPath = m_folder.fresh(".json");
        writeFile(options.tokensPath,
                  R"({"ids": [11,12,13,14,15], "texts": ["a","b","\u00fc","","e"], "segments": [[0, 4,
                "context"], [1, 2, "needle"]]})");
        const auto told = openImported(path, options);
        QCOMPARE(told->tokens().textOf(2), "ü");
        QCOMPARE(static_cast<int>(told->tokens().segments.size()), 2);
    }

    void widensEveryType() {
        const std::vector<float> numbers = {1, -2, 0.5f, 3, 0, 1.5f, -0.25f, 8};
        std::string half, brain, twice;
        for (const float x : numbers) {
            const std::uint16_t h = narrowToFloat16(x), b = narrowToBfloat16(x);
            const double d = x;
            half.append(reinterpret_cast<const char*>(&h), 2);
            brain.append(reinterpret_cast<const char*>(&b), 2);
            twice.append(reinterpret_cast<const char*>(&d), 8);
        }
        for (const auto& [type, bytes, stored] :
             {std::tuple("F16", half, StoredType::Float16), std::tuple("BF16", brain, StoredType::Bfloat16),
              std::tuple("F64", twice, StoredType::Float32)}) {
            const auto capture =
                openImported(m_folder.safetensors({{"0.k", type, {1, 2, 4}, bytes}, {"0.v", type, {1, 2, 4}, bytes}}));
            QCOMPARE(capture->read(LayerIndex(0), TensorRole::Values, {}).data, numbers);
            QCOMPARE(capture->info().layers[0].storedType, stored);
        }
    }

    void refusesWhatIsWrong_data() {
        QTest::addColumn<std::string>("content");
        QTest::addColumn<std::string>("sentence");
        const auto with = [](const std::function<void(std::vector<FileTensor>&)>& edit) {
            std::vector<FileTensor> tensors = twoLayers();
            edit(tensors);
            return safetensorsOf(tensors);
        };
        const std::string whole = safetensorsOf(twoLayers());
        QTest::newRow("empty") << std::string() << std::string("no header");
        QTest::newRow("text") << std::string("this is not what it says it is") << std::string("no safetensors file");
        QTest::newRow("header beyond the file")
            << std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10) << std::string("header would have");
        QTest::newRow("truncated numbers")
            << whole.substr(0, whole.size() - 1) << std::string("truncated: the tensor lies in bytes");
        QTest::newRow("truncated header") << whole.substr(0, 40) << std::string("truncated");
        QTest::newRow("8 bit") << with([](auto& t) { t[2].type = "F8_E4M3"; }) << std::string("F8_E4M3");
        QTest::newRow("lying shape") << with([](auto& t) {
            t[1].shape = {kHeads, kTokens, kWidth + 1};
        }) << std::string("need 200 bytes, the header gives 160");
        QTest::newRow("overflowing shape") << with([](auto& t) {
            t[1].shape = {1LL << 40, 1LL << 40, 16};
        }) << std::string("none that a file can hold");
        QTest::newRow("negative shape") << with([](auto& t) {
            t[1].shape = {-1, 5, 4};
        }) << std::string("no whole number");
        QTest::newRow("other tokens") << with([](auto& t) {
            t[2] = headsFirst("layers.1.k", 1, 0, kHeads, kTokens - 1);
        }) << std::string("layer 1 would have 2 heads, 4 tokens");
        QTest::newRow("other rank") << with([](auto& t) { t[0].shape = {kHeads * kTokens * kWidth}; })
                                    << std::string("none of a layer's keys");
        QTest::newRow("batch") << with([](auto& t) { t[0].shape = {2, 1, 5, 4}; }) << std::string("batch of 2");
        QTest::newRow("empty axis") << with([](auto& t) {
            t[0].shape = {0, 5, 4};
            t[0].bytes.clear();
        }) << std::string("no layer's tensor");
        QTest::newRow("no values") << with([](auto& t) { t.pop_back(); })
                                   << std::string("layer 1 has keys but no values");
        QTest::newRow("nothing named") << with([](auto& t) {
            for (auto& x : t) x.name = "x" + x.name + "x";
        }) << std::string("no tensor is named");
        QTest::newRow("weights")
            << safetensorsOf({{"model.layers.0.self_attn.k_proj.weight", "F32", {1, 4}, std::string(16, '\0')}})
            << std::string("a model's weights");
        QTest::newRow("same place twice")
            << with([](auto& t) { t[2].name = "other.0.k"; }) << std::string("both the k of layer 0");
        QTest::newRow("same name twice") << with([](auto& t) { t[2].name = "layers.0.k"; })
                                         << std::string("names a tensor twice");
        QTest::newRow("NaN") << with([](auto& t) {
            const float nan = NAN;
            std::memcpy(t[3].bytes.data() + 4 * (20 + 8), &nan, 4);
        }) << std::string("NaN in head 1, token 2");
        std::string overlap = whole;
        overlap.replace(overlap.find("[160,320]"), 9, "[159,319]");
        QTest::newRow("overlap") << overlap << std::string("overlaps");
    }

    void refusesWhatIsWrong() {
        QFETCH(std::string, content);
        QFETCH(std::string, sentence);
        const std::string path = m_folder.fresh(".safetensors");
        writeFile(path, content);
        const Error::Parts parts = refusal(path);
        QVERIFY2(parts.sentence.find(sentence) != std::string::npos, parts.sentence.c_str());
        QVERIFY2(!parts.remedy.empty(), parts.sentence.c_str());
        QCOMPARE(parts.path, path);
    }

    void refusesWrongArrays() {
        const std::string zeros(160, '\0');
        const FileTensor good{"0.v", "<f4", {2, 5, 4}, zeros};
        const auto with = [&](const std::string& array) {
            const std::string path = m_folder.fresh(".npz");
            writeZip(path, {{"0.k.npy", array}, {"0.v.npy", npyOf(good)}}, true);
            return refusal(path).sentence;
        };
        QCOMPARE(with(npyOf(good)), std::string("accepted"));
        QVERIFY(with(npyOf({"0.k", ">f4", {2, 5, 4}, zeros})).find("big-endian") != std::string::npos);
        QVERIFY(with(npyOf({"0.k", "<f4", {2, 5, 4}, zeros}, "True")).find("Fortran") != std::string::npos);
        QVERIFY(with(npyOf({"0.k", "|O", {2, 5, 4}, zeros})).find("type |O") != std::string::npos);
        QVERIFY(with(npyOf({"0.k", "<f4", {2, 5, 5}, zeros})).find("need 200 bytes, the member holds 160") !=
                std::string::npos);
        QVERIFY(with("no array").find("no .npy array") != std::string::npos);
        QVERIFY(with(npyOf(good).substr(0, 30)).find("longer than its member") != std::string::npos);
        const std::string path = m_folder.fresh(".npz");
        writeFile(path, "PK\x03\x04 and nothing more");
        QVERIFY(refusal(path).sentence.find("no .npz file") != std::string::npos);
    }

    void refusesPicklesWithTheReason() {
        const std::string path = m_folder.fresh(".pt");
        writeFile(path, "anything");
        const Error::Parts parts = refusal(path);
        QVERIFY(parts.sentence.find("pickle") != std::string::npos &&
                parts.sentence.find("run whatever program") != std::string::npos);
        QVERIFY(parts.remedy.find("kvscope_capture.unpickle") != std::string::npos);
    }

    void refusesWrongTemplates() {
        for (const char* text : {"k", "k=", "k=abc", "x={layer}", "k={layer}{layer}", "={layer}"})
            QVERIFY_THROWS_EXCEPTION(Error, NameTemplate::parse(text));
    }

    void damagedFilesNeverCrash() {
        bool isGiven = false;
        const int given = qEnvironmentVariableIntValue("KVSCOPE_SEED", &isGiven);
        const auto seed = static_cast<unsigned>(isGiven ? given : 1);
        qInfo("seed %u", seed);
        std::mt19937 random(seed);
        std::vector<FileTensor> arrays = twoLayers();
        const std::string tensors = safetensorsOf(arrays);
        for (FileTensor& array : arrays) array.type = "<f4";
        const std::string packed = m_folder.fresh(".npz");
        writeNpz(packed, arrays, true);
        std::ifstream stream(packed, std::ios::binary);
        const std::string zip((std::istreambuf_iterator<char>(stream)), {});
        int refused = 0;
        constexpr int kRounds = 1500;
        for (int round = 0; round < kRounds; ++round) {
            const bool npz = round % 2 == 1;
            std::string content = npz ? zip : tensors;
            const std::size_t most =
                npz ? content.size() : tensors.find('}', tensors.rfind("offsets")); // the header, mostly
            for (unsigned edit = 0; edit <= random() % 3; ++edit)
                content[random() % most] =
                    static_cast<char>(random() % 4 == 0 ? random() : "0123456789[]{},:\""[random() % 17]);
            if (random() % 5 == 0) content.resize(random() % content.size());
            const std::string path = m_folder.fresh(npz ? ".npz" : ".safetensors");
            writeFile(path, content);
            refused += refusal(path).sentence != "accepted";
        }
        QVERIFY2(refused > kRounds / 2, std::to_string(refused).c_str());
    }
};

KVSCOPE_TEST(ImportTest)
#include "import_test.moc"
