// What an import knows of the model: the described model, the few config.json files that are read without it, and the
// refusal of all others, which would give numbers of another model.
#include "core/capture/open_capture.h"
#include "tests/capture/tensor_folder.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <filesystem>

using namespace kvscope;
using namespace kvscope::test;

namespace {

constexpr int kHeads = 2, kTokens = 5, kWidth = 4;

// 2 layers of 2 KV heads: the first does not rotate, the second has a window of 3.
const std::string kDescribed = R"({"format": "kvscope-described-model", "version": 1, "model_id": "some/model",
    "model_type": "x", "config_class": "XConfig", "transformers_version": "5.23.0", "prompt_tokens": null,
    "num_layers": 2, "num_q_heads": 4, "num_kv_heads": 2, "head_dim": 4, "value_dim": 4,
    "ropes": {"r": {"type": "default", "theta": 100.0, "attention_scaling": 2.0, "rotary_dim": 2, "rotary_begin": 2,
                    "layout": "interleaved", "inv_freq": [0.5]}},
    "layers": [
        {"attn_type": "full_attention", "scaling": 0.5, "softcap": 0.0, "sliding_window": 0,
         "sinks": false, "rope": null},
        {"attn_type": "sliding_attention", "scaling": 0.05, "softcap": 50.0, "sliding_window": 3,
         "sinks": false, "rope": "r"}
    ]})";

FileTensor tensor(const std::string& name) {
    std::vector<float> numbers;
    for (int i = 0; i < kHeads * kTokens * kWidth; ++i)
        numbers.push_back(std::sin(static_cast<float>(i) + static_cast<float>(name.size())));
    return {name, "F32", {kHeads, kTokens, kWidth}, bytesOf(numbers)};
}

std::vector<FileTensor> twoLayers() {
    return {tensor("layers.0.k"), tensor("layers.0.v"), tensor("layers.1.k"), tensor("layers.1.v")};
}

} // namespace

class DescribedModelTest : public QObject {
    Q_OBJECT

    TensorFolder m_folder;

private slots:
    // What a described model says of each layer is what the capture says, and the sources say who said it.
    void takesADescribedModel() {
        ImportOptions options;
        options.configPath = m_folder.fresh(".json");
        writeFile(options.configPath, kDescribed);
        const auto capture = openImported(m_folder.safetensors(twoLayers()), options);
        const CaptureInfo& info = capture->info();
        QCOMPARE(info.numQueryHeads, 4);
        QCOMPARE(info.rope.rotaryBegin, 2);
        QVERIFY(info.rope.interleaved);
        QCOMPARE(info.layers[0].slidingWindow, 0);
        QCOMPARE(info.layers[1].slidingWindow, 3);
        QCOMPARE(info.layers[1].scaling, 0.05);
        QCOMPARE(info.layers[1].softcap, 50.0);
        QCOMPARE(info.layers[1].attentionType, std::string("sliding_attention"));
        QVERIFY(!info.layers[0].hasRope && info.layers[1].hasRope);
        QVERIFY(capture->inverseFrequencies(LayerIndex(0)).empty());
        QVERIFY(capture->inverseFrequencies(LayerIndex(1)) == (std::vector<float>{0.5f}));
        for (const auto& [fact, source] : info.sources)
            QVERIFY2(source.ends_with(".json, Transformers 5.23.0 (XConfig)"), source.c_str());
        // components 2 and 3 of token 3 turn by 1.5, the others stay; layer 0 does not rotate
        const auto keys = capture->read(LayerIndex(1), TensorRole::Keys, {}),
                   before = capture->read(LayerIndex(1), TensorRole::KeysPreRope, {});
        const float* const k = keys.data.data() + 3 * kWidth;
        const float* const u = before.data.data() + 3 * kWidth;
        QCOMPARE(u[1], k[1]);
        QVERIFY(std::abs(u[2] - (k[2] * std::cos(1.5) + k[3] * std::sin(1.5)) / 2) < 1e-6);
        QVERIFY(std::abs(u[3] - (k[3] * std::cos(1.5) - k[2] * std::sin(1.5)) / 2) < 1e-6);
        QCOMPARE(capture->read(LayerIndex(0), TensorRole::KeysPreRope, {}).data,
                 capture->read(LayerIndex(0), TensorRole::Keys, {}).data);
    }

    // Beside the tensors the described model goes before config.json, which may be of a type that is refused.
    void findsTheDescribedModelBesideTheTensors() {
        const std::string path = m_folder.fresh("");
        std::filesystem::create_directory(path);
        writeFile(path + "/a.safetensors", safetensorsOf(twoLayers()));
        writeFile(path + "/config.json", R"({"model_type": "gemma2"})");
        QVERIFY(refusal(path).remedy.find("kvscope-describe") != std::string::npos);
        writeFile(path + "/described_model.json", kDescribed);
        QCOMPARE(openCapture(path)->info().layers[1].slidingWindow, 3);
    }

    void refusesWrongDescriptions_data() {
        QTest::addColumn<std::string>("from");
        QTest::addColumn<std::string>("to");
        QTest::addColumn<std::string>("sentence");
        const auto row = [](const char* name, const char* from, const char* to, const char* sentence) {
            QTest::newRow(name) << std::string(from) << std::string(to) << std::string(sentence);
        };
        row("version", R"("version": 1)", R"("version": 2)", "this program reads version 1");
        row("no scaling", R"("scaling": 0.05, )", "", "the field is missing");
        row("no positive scaling", "0.05", "0", "the field is not positive");
        row("unknown rotation", R"("rope": "r")", R"("rope": "s")", "describes no rotation of this name");
        row("odd", R"("rotary_dim": 2)", R"("rotary_dim": 3)", "not an even number within the 4 of a head");
        row("beyond the head", R"("rotary_begin": 2)", R"("rotary_begin": 3)",
            "not an even number within the 4 of a head");
        row("frequencies", "[0.5]", "[0.5, 1]", "not half as many frequencies");
        row("no frequency", "[0.5]", R"(["x"])", "no frequency");
        row("layout", "interleaved", "other", "neither \"half\" nor \"interleaved\"");
        row("layers", R"("num_layers": 2)", R"("num_layers": 3)", "2 layers are described");
        row("heads", R"("num_q_heads": 4)", R"("num_q_heads": 3)", "3 query heads do not divide among 2 KV heads");
        row("other heads", R"("num_kv_heads": 2)", R"("num_kv_heads": 4)", "");
        row("other width", R"("head_dim": 4)", R"("head_dim": 8)",
            "keys and values have 4 and 4 numbers, the model's 8 and 4");
        row("sinks", R"("sinks": false, "rope": "r")", R"("sinks": true, "rope": "r")",
            "layer 1 has attention sinks, and no tensor holds them");
        row("other length", R"("prompt_tokens": null)", R"("prompt_tokens": 6)",
            "described for a prompt of 6 tokens, the tensors have 5");
        row("no object", "{", "[{", "not a JSON object");
    }

    void refusesWrongDescriptions() {
        QFETCH(std::string, from);
        QFETCH(std::string, to);
        QFETCH(std::string, sentence);
        ImportOptions options;
        options.configPath = m_folder.fresh(".json");
        std::string text = kDescribed;
        QVERIFY(text.find(from) != std::string::npos);
        text.replace(text.find(from), from.size(), to);
        writeFile(options.configPath, text);
        const Error::Parts parts = refusal(m_folder.safetensors(twoLayers()), options);
        QVERIFY2(parts.sentence != "accepted" && parts.sentence.find(sentence) != std::string::npos,
                 parts.sentence.c_str());
        QVERIFY2(!parts.remedy.empty() && !parts.path.empty(), parts.sentence.c_str());
    }

    void takesSinksWithTheTensors() {
        ImportOptions options;
        options.configPath = m_folder.fresh(".json");
        std::string text = kDescribed;
        text.replace(text.rfind("\"sinks\": false"), 14, "\"sinks\": true");
        writeFile(options.configPath, text);
        std::vector<FileTensor> tensors = twoLayers();
        tensors.push_back({"model.layers.1.self_attn.sinks", "F32", {4}, bytesOf({1, -2, 0.5f, 3})});
        const auto capture = openImported(m_folder.safetensors(tensors), options);
        QVERIFY(capture->info().layers[0].sinks.empty());
        QVERIFY(capture->info().layers[1].sinks == (std::vector<float>{1, -2, 0.5f, 3}));
        tensors.back().name = "layers.0.sinks";
        QVERIFY(refusal(m_folder.safetensors(tensors), options)
                    .sentence.find("layer 0 of the model has no attention sinks") != std::string::npos);
        tensors.back() = {"layers.1.s_aux", "F32", {3}, bytesOf({1, 2, 3})};
        QVERIFY(refusal(m_folder.safetensors(tensors), options).sentence.find("one sink for each of 4 query heads") !=
                std::string::npos);
    }

    // The format keeps frequencies by attention type: two rotations of one type would be mixed up.
    void refusesTwoRotationsOfOneType() {
        ImportOptions options;
        options.configPath = m_folder.fresh(".json");
        std::string text = kDescribed;
        const auto replace = [&](const std::string& from, const std::string& to) {
            text.replace(text.find(from), from.size(), to);
        };
        replace(R"("ropes": {)", R"("ropes": {"q": {"type": "default", "theta": 100.0, "attention_scaling": 2.0,
            "rotary_dim": 2, "rotary_begin": 2, "layout": "interleaved", "inv_freq": [0.25]}, )");
        replace(R"("rope": null)", R"("rope": "q")");
        writeFile(options.configPath, text);
        QCOMPARE(refusal(m_folder.safetensors(twoLayers()), options).sentence, std::string("accepted"));
        replace("sliding_attention", "full_attention");
        writeFile(options.configPath, text);
        QVERIFY(refusal(m_folder.safetensors(twoLayers()), options).sentence.find("rotate by different frequencies") !=
                std::string::npos);
    }

    // Every layer has frequencies of its own in memory, which a file of a few bytes can ask for.
    void refusesMoreFrequenciesThanAModelHas() {
        ImportOptions options;
        options.configPath = m_folder.fresh(".json");
        const std::string path = m_folder.safetensors(twoLayers());
        writeFile(options.configPath, R"({"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2,
                                          "head_dim": 65536, "num_hidden_layers": 1024})");
        const std::string sentence =
            "the layers have more than 16777216 frequencies of rotation together, which no model has";
        QCOMPARE(refusal(path, options).sentence, sentence);
        std::string ropes, layers;
        for (int i = 0; i < 32768; ++i) ropes += i == 0 ? "1" : ",1";
        for (int i = 0; i < 1024; ++i)
            layers += std::string(i == 0 ? "" : ",") + R"({"attn_type": "full_attention", "scaling": 0.5,
                "softcap": 0.0, "sliding_window": 0, "sinks": false, "rope": "r"})";
        writeFile(options.configPath, R"({"format": "kvscope-described-model", "version": 1, "model_id": "some/model",
            "config_class": "XConfig", "transformers_version": "5.23.0", "num_layers": 1024, "num_q_heads": 4,
            "num_kv_heads": 2, "head_dim": 65536, "value_dim": 4, "ropes": {"r": {"type": "default", "theta": 100.0,
            "attention_scaling": 2.0, "rotary_dim": 65536, "rotary_begin": 0, "layout": "half", "inv_freq": [)" +
                                          ropes + R"(]}}, "layers": [)" + layers + "]}");
        QCOMPARE(refusal(path, options).sentence, sentence);
    }

    // Conventions that are not known here are left to kvscope-describe; a missing theta is not "no RoPE".
    void readsHubFilesOfKnownTypesOnly() {
        ImportOptions options;
        options.configPath = m_folder.fresh(".json");
        const std::string path = m_folder.safetensors(twoLayers());
        const auto with = [&](const std::string& fields) {
            writeFile(options.configPath, R"({"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 16,
                                              "num_hidden_layers": 2, )" +
                                              fields + "}");
            return refusal(path, options);
        };
        QCOMPARE(with(R"("model_type": "llama")").sentence, std::string("accepted"));
        QVERIFY(openImported(path, options)->info().layers[0].hasRope);
        QVERIFY(openImported(path, options)->inverseFrequencies(LayerIndex(0)) == (std::vector<float>{1.0f, 0.01f}));
        QCOMPARE(with(R"("model_type": "mistral", "sliding_window": 3)").sentence, std::string("accepted"));
        QCOMPARE(openImported(path, options)->info().layers[1].slidingWindow, 3);
        QCOMPARE(with(R"("model_type": "mistral", "sliding_window": null)").sentence, std::string("accepted"));
        QCOMPARE(openImported(path, options)->info().layers[1].slidingWindow, 0);
        QCOMPARE(with(R"("model_type": "qwen2", "sliding_window": 3, "use_sliding_window": false)").sentence,
                 std::string("accepted"));
        QCOMPARE(openImported(path, options)->info().layers[1].slidingWindow, 0);
        for (const char* refused : {
                 R"("model_type": "gemma2", "sliding_window": 3)",
                 R"("model_type": "granite", "attention_multiplier": 0.05)",
                 R"("model_type": "gpt2")",
                 R"("sliding_window": 3)",
                 R"("model_type": "mistral")",
                 R"("model_type": "qwen2", "use_sliding_window": true, "sliding_window": 3, "max_window_layers": 1)",
                 R"("model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"])",
                 R"("model_type": "qwen3")",
                 R"("model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 4.0})",
                 R"("model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0})",
                 R"("model_type": "llama", "rope_theta": 0)",
                 R"("model_type": "qwen3", "head_dim": 4, "rope_parameters": {"full_attention": {"rope_theta": 5.0}})",
                 R"("model_type": "llama", "partial_rotary_factor": 0.5)",
             }) {
            const Error::Parts parts = with(refused);
            QVERIFY2(parts.remedy.find("kvscope-describe") != std::string::npos, refused);
            QCOMPARE(parts.path, options.configPath);
        }
    }
};

KVSCOPE_TEST(DescribedModelTest)
#include "described_model_test.moc"
