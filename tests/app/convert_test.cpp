// Tensors of other programs through the program: what is converted reads as if it had been captured, mistakes give one
// sentence that names file, tensor and remedy, and no file.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include "core/capture/open_capture.h"
#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/tensor_files.h"
#include "tests/support/test_program.h"

#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <random>

using kvscope::testing::Program;
using namespace kvscope::test;

namespace {

constexpr int kTokens = 40, kHeads = 2, kWidth = 8;

/// [heads, tokens, width] drawn once for every name, so that a converted file can be compared.
FileTensor drawn(const std::string& name, int heads = kHeads) {
    std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(name)));
    std::normal_distribution<float> normal;
    std::vector<float> numbers(static_cast<std::size_t>(heads * kTokens * kWidth));
    for (float& x : numbers) x = normal(random);
    return {name, "F32", {heads, kTokens, kWidth}, bytesOf(numbers)};
}

std::vector<FileTensor> someLayers() {
    return {drawn("layers.0.k"), drawn("layers.0.v"), drawn("layers.0.q", 4),
            drawn("layers.1.k"), drawn("layers.1.v"), drawn("layers.1.q", 4)};
}

QJsonArray numbersOf(const std::vector<std::int64_t>& numbers) {
    QJsonArray list;
    for (const std::int64_t number : numbers) list.append(static_cast<qint64>(number));
    return list;
}

void expectRefusal(const Program& program, const QStringList& command, const QList<QByteArray>& parts) {
    const QStringList before = program.written();
    const Program::Outcome outcome = program.run(command);
    QCOMPARE(outcome.code, 2);
    QVERIFY2(outcome.error.startsWith("kvscope: ") && outcome.error.count('\n') == 1, outcome.error);
    for (const QByteArray& part : parts) QVERIFY2(outcome.error.contains(part), outcome.error);
    QCOMPARE(program.written(), before);
}

} // namespace

class ConvertTest : public QObject {
    Q_OBJECT

private slots:
    // The lists of the converted file, of the tensors themselves and of the same tensors as .npz are one.
    void convertsAndKeepsTheNumbers() {
        const Program program;
        std::vector<FileTensor> tensors = someLayers();
        writeFile(program.at("cache.safetensors").toStdString(), safetensorsOf(tensors));
        for (FileTensor& tensor : tensors) tensor.type = "<f4";
        writeNpz(program.at("cache.npz").toStdString(), tensors, true);
        for (const char* in : {"cache.safetensors", "cache.npz"}) {
            const Program::Outcome outcome = program.run({"convert", in, "--out", "cache.h5"});
            QVERIFY2(outcome.code == 0, outcome.error);
            QVERIFY2(outcome.out.contains("2 layers, 4 query heads, 2 KV heads, 40 tokens, head dim 8"), outcome.out);
            QByteArrayList lists;
            for (const char* capture : {"cache.h5", "cache.safetensors", "cache.npz"}) {
                const Program::Outcome kept = program.run(
                    {"evict", capture, "--policy", "snapkv,window=4@0.3", "--cut", "none", "--out", "kept.csv"});
                QVERIFY2(kept.code == 0, kept.error);
                QByteArrayList rows;
                for (const QByteArray& line : program.content("kept.csv").split('\n'))
                    if (!line.startsWith('#')) rows << line;
                lists << rows.join('\n');
            }
            QVERIFY(lists[0].count('\n') > 40);
            QCOMPARE(lists[1], lists[0]);
            QCOMPARE(lists[2], lists[0]);
        }
        QVERIFY(program.run({"inspect", "--verify", "cache.h5"}).out.contains("the hash is that of the data"));
    }

    void inspectNamesThePoliciesThatLackSomething() {
        const Program program;
        writeFile(program.at("kv.safetensors").toStdString(),
                  safetensorsOf({drawn("layers.0.k"), drawn("layers.0.v")}));
        const QByteArray shown = program.run({"inspect", "kv.safetensors"}).out;
        QVERIFY2(shown.contains("disabled snapkv: needs queries"), shown);
        QVERIFY2(shown.contains("disabled leverage: needs keys before RoPE"), shown);
        QVERIFY2(!shown.contains("disabled score"), shown); // its formula may be one of the keys alone
        expectRefusal(program,
                      {"evict", "kv.safetensors", "--policy", "leverage@0.5", "--cut", "none", "--out", "a.json"},
                      {"before RoPE"});
        expectRefusal(program, {"evict", "kv.safetensors", "--policy", "imported,file=x.h5:/x@0.5", "--out", "a.json"},
                      {"there is no such file", "x.h5"});
    }

    void convertsVllmsFolder() {
        const Program program;
        QVERIFY(QDir(program.at("")).mkdir("stored"));
        for (int layer = 0; layer < 2; ++layer) {
            FileTensor tensor = drawn("kv_cache", 4);
            tensor.shape = {2, kTokens, kHeads * kWidth};
            writeFile(program.at(QString("stored/model.layers.%1.self_attn.attn.safetensors").arg(layer)).toStdString(),
                      safetensorsOf({tensor}));
        }
        expectRefusal(program, {"convert", "stored", "--out", "x.h5"},
                      {"heads undivided", "tensor kv_cache", "--config", "stored/model.layers.0"});
        writeFile(program.at("config.json").toStdString(),
                  R"({"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
                      "num_hidden_layers": 2})");
        const Program::Outcome outcome = program.run({"convert", "stored", "--config", "config.json", "--out", "x.h5"});
        QVERIFY2(outcome.code == 0, outcome.error);
        QVERIFY2(outcome.out.contains("no queries"), outcome.out);
        const QByteArray shown = program.run({"inspect", "x.h5"}).out;
        QVERIFY2(shown.contains("known from   config.json, fields of model type llama: heads, scaling, sliding_window, "
                                "softcap, sinks, rope"),
                 shown);
        writeFile(program.at("config.json").toStdString(), R"({"model_type": "gpt2", "n_head": 4, "n_embd": 32})");
        expectRefusal(program, {"convert", "stored", "--config", "config.json", "--out", "y.h5"},
                      {"model type gpt2", "kvscope-describe MODEL", "config.json"});
        QVERIFY(program.run({"evict", "x.h5", "--policy", "keydiff@0.25", "--out", "kept.json"}).code == 0);
        expectRefusal(program, {"evict", "x.h5", "--policy", "snapkv@0.25", "--out", "y.json"}, {"queries"});
    }

    // A stated layout holds for all tensors, so queries of other axes are no matter of taste: the heads would be
    // tokens.
    void aStatedLayoutDoesNotTransposeQueries() {
        const Program program;
        FileTensor keys = drawn("layers.0.k"), values = drawn("layers.0.v"), queries = drawn("layers.0.q", 4);
        for (FileTensor* const turned : {&keys, &values}) std::swap(turned->shape[0], turned->shape[1]);
        writeFile(program.at("nhd.safetensors").toStdString(), safetensorsOf({keys, values, queries}));
        const QStringList convert = {"convert", "nhd.safetensors", "--layout", "nhd", "--out", "x.h5"};
        expectRefusal(program, convert, {"the 40 tokens stand on another axis", "tensor layers.0.q", "--config"});
        std::swap(queries.shape[0], queries.shape[1]);
        writeFile(program.at("nhd.safetensors").toStdString(), safetensorsOf({keys, values, queries}));
        const Program::Outcome outcome = program.run(convert);
        QVERIFY2(outcome.code == 0 && outcome.out.contains("4 query heads, 2 KV heads, 40 tokens"), outcome.error);
    }

    // A list of texts beside the tensors leaves their positions alone, and is no list of another prompt.
    void aTokenListAddsToWhatTheTensorsTell() {
        const Program program;
        std::vector<std::int64_t> ids(kTokens), positions(kTokens);
        std::iota(ids.begin(), ids.end(), 500);
        std::iota(positions.begin(), positions.end(), 7000);
        const auto column = [](const char* name, const std::vector<std::int64_t>& numbers) {
            return FileTensor{name,
                              "I64",
                              {kTokens},
                              {reinterpret_cast<const char*>(numbers.data()), kTokens * sizeof(std::int64_t)}};
        };
        writeFile(program.at("t.safetensors").toStdString(),
                  safetensorsOf({drawn("layers.0.k"), drawn("layers.0.v"), column("input_ids", ids),
                                 column("position_ids", positions)}));
        const QStringList convert = {"convert", "t.safetensors", "--tokens", "t.json", "--out", "x.h5"};
        const auto positionsWith = [&](const QJsonObject& list) {
            writeFile(program.at("t.json").toStdString(), QJsonDocument(list).toJson().toStdString());
            const Program::Outcome outcome = program.run(convert);
            return outcome.code != 0 ? std::vector<std::int64_t>()
                                     : kvscope::openCapture(program.at("x.h5").toStdString())->tokens().positions;
        };
        QJsonObject list{{"ids", numbersOf(ids)}};
        QCOMPARE(positionsWith(list), positions);
        list["position_ids"] = numbersOf(ids);
        QCOMPARE(positionsWith(list), ids);
        ids[3] = 9;
        list["ids"] = numbersOf(ids);
        writeFile(program.at("t.json").toStdString(), QJsonDocument(list).toJson().toStdString());
        expectRefusal(program, convert,
                      {"token 3 has the id 503 here and 9 in t.json", "tensor input_ids", "--tokens"});
    }

    void refusesMistakes() {
        const Program program;
        const std::string path = program.at("a.safetensors").toStdString();
        const std::string whole = safetensorsOf(someLayers());
        expectRefusal(program, {"convert", "nowhere.npz", "--out", "x.h5"}, {"there is no such file", "nowhere.npz"});
        writeFile(path, whole.substr(0, whole.size() - 10));
        expectRefusal(program, {"convert", "a.safetensors", "--out", "x.h5"},
                      {"truncated", "tensor layers.1.q", "Copy the file again", "a.safetensors"});
        writeFile(path, whole);
        expectRefusal(program, {"convert", "a.safetensors", "--out", "x.npz"}, {".npz", "--out"});
        expectRefusal(program, {"convert", "a.safetensors", "--pattern", "k=key", "--out", "x.h5"},
                      {"no name template", "--pattern"});
        expectRefusal(program, {"convert", "a.safetensors", "--layout", "nhd", "--out", "x.h5"}, {"tensor layers.0."});
        writeFile(program.at("cache.pt").toStdString(), "PK");
        expectRefusal(program, {"convert", "cache.pt", "--out", "x.h5"},
                      {"Python pickle", "run whatever program", "kvscope_capture.unpickle"});
        expectRefusal(program, {"cache.pt"}, {"Python pickle"}); // as the window would be given it
        expectRefusal(program,
                      {"convert", QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5"),
                       "--out", "x.h5"},
                      {"no file of tensors"});
        std::vector<FileTensor> tensors = someLayers();
        const float infinity = INFINITY;
        std::memcpy(tensors[4].bytes.data() + 4 * (kTokens + 7) * kWidth, &infinity, 4);
        writeFile(path, safetensorsOf(tensors));
        expectRefusal(program, {"convert", "a.safetensors", "--out", "x.h5"},
                      {"infinity in head 1, token 7", "tensor layers.1.v"});
    }

    // An existing file survives a conversion that fails half-way.
    void leavesAnExistingFileAlone() {
        const Program program;
        writeFile(program.at("x.h5").toStdString(), "precious");
        std::vector<FileTensor> tensors = someLayers();
        const float nan = NAN;
        std::memcpy(tensors[5].bytes.data(), &nan, 4);
        writeFile(program.at("a.safetensors").toStdString(), safetensorsOf(tensors));
        expectRefusal(program, {"convert", "a.safetensors", "--out", "x.h5"}, {"NaN"});
        QCOMPARE(program.content("x.h5"), QByteArray("precious"));
    }
};

KVSCOPE_CORE_TEST(ConvertTest)
#include "convert_test.moc"
