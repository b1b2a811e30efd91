// Retained-index lists: what is written reads back, what contradicts itself or the capture is refused, and a failed
// write leaves nothing.
#include "core/base/atomic_file.h"
#include "core/capture/h5_writer.h"
#include "core/lists/selection_file.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/test_program.h"

#include <QDir>
#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <random>

using namespace kvscope;

namespace {

const float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Numbers that are hard to write down: tiny, huge, negative zero, neighbours of round ones.
float awkwardFloat(std::mt19937& random) {
    const std::array<float, 6> odd = {0.1F, -0.0F, 1e-42F, 3.4e38F, std::nextafter(1.0F, 2.0F), -7.0F / 3};
    return random() % 4 == 0 ? odd[random() % odd.size()] : std::uniform_real_distribution<float>(-2, 2)(random);
}

RecordedHead randomHead(std::mt19937& random, int layer, int kvHead, std::int64_t tokens, TokenIndex cut) {
    RecordedHead head;
    head.layer = layer;
    head.kvHead = kvHead;
    for (TokenIndex token = 0; token < cut; ++token)
        if (random() % 3 == 0) head.kept.push_back(token);
    for (std::size_t i = 0; i < head.kept.size() && kvHead == 1; ++i) {
        head.numeratorWeights.push_back(1.0F + std::abs(awkwardFloat(random)));
        head.denominatorWeights.push_back(static_cast<float>(1 << (random() % 5)));
    }
    head.margin = kvHead == 0 ? std::numeric_limits<double>::infinity() : std::abs(awkwardFloat(random));
    head.scores.assign(static_cast<std::size_t>(tokens), kNaN);
    for (TokenIndex token = 0; token < cut; ++token)
        head.scores[static_cast<std::size_t>(token)] = awkwardFloat(random);
    return head;
}

RecordedSelection randomList(unsigned seed, bool withScores) {
    std::mt19937 random(seed);
    RecordedSelection list;
    list.captureFile = "a \"strange\",\nname\\n.h5";
    list.captureHash = "0123abcd";
    list.captureTokens = 40;
    list.cut = "segment:context";
    list.cutToken = 30;
    list.policy = "keydiff";
    list.variant = "paper";
    list.parameters = {{"anchor", "mean"}, {"window_share", "0.2"}};
    list.budgetRequested = "0.25";
    list.budgetTokens = 8;
    list.budgetKept = 7.25;
    list.seed = 18446744073709551615ULL;
    list.engine = "cpu";
    list.arithmetic = "exact index contract";
    list.command = "kvscope evict 'x y.h5' --policy keydiff";
    list.simulated = true;
    for (const auto& [layer, kvHead] : {std::pair(0, 0), std::pair(0, 1), std::pair(7, 1)}) {
        list.heads.push_back(randomHead(random, layer, kvHead, 40, 30));
        if (!withScores) list.heads.back().scores.clear();
    }
    list.heads.front().kept.clear(); // a head may keep nothing
    list.heads.back().storedKeys = 17;
    list.heads.back().storedValues = 0;
    return list;
}

bool sameBits(const std::vector<float>& a, const std::vector<float>& b) {
    return std::ranges::equal(a, b, [](float x, float y) {
        return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
    });
}

void compare(const RecordedSelection& a, const RecordedSelection& b, bool keptScoresOnly) {
    QCOMPARE(a.captureFile, b.captureFile);
    QCOMPARE(a.captureHash, b.captureHash);
    QCOMPARE(a.captureTokens, b.captureTokens);
    QCOMPARE(a.cut, b.cut);
    QCOMPARE(a.cutToken, b.cutToken);
    QCOMPARE(a.policy, b.policy);
    QCOMPARE(a.variant, b.variant);
    QVERIFY(a.parameters == b.parameters);
    QCOMPARE(a.budgetRequested, b.budgetRequested);
    QCOMPARE(a.budgetTokens, b.budgetTokens);
    QVERIFY(a.budgetKept == b.budgetKept); // QCOMPARE forgives the last digits
    QCOMPARE(a.seed, b.seed);
    QCOMPARE(a.engine, b.engine);
    QCOMPARE(a.arithmetic, b.arithmetic);
    QCOMPARE(a.command, b.command);
    QCOMPARE(a.simulated, b.simulated);
    QCOMPARE(a.heads.size(), b.heads.size());
    for (std::size_t i = 0; i < a.heads.size(); ++i) {
        const RecordedHead& x = a.heads[i];
        const RecordedHead& y = b.heads[i];
        QCOMPARE(x.layer, y.layer);
        QCOMPARE(x.kvHead, y.kvHead);
        QVERIFY(x.kept == y.kept);
        QVERIFY(sameBits(x.numeratorWeights, y.numeratorWeights));
        QVERIFY(sameBits(x.denominatorWeights, y.denominatorWeights));
        QVERIFY(x.margin == y.margin || (std::isnan(x.margin) && std::isnan(y.margin)));
        QCOMPARE(x.storedKeys, y.storedKeys);
        QCOMPARE(x.storedValues, y.storedValues);
        if (!keptScoresOnly) {
            QVERIFY(sameBits(x.scores, y.scores));
            continue;
        }
        for (const TokenIndex token : x.kept)
            if (!x.scores.empty())
                QVERIFY(
                    sameBits({x.scores[static_cast<std::size_t>(token)]}, {y.scores[static_cast<std::size_t>(token)]}));
    }
}

TokenTable fortyTokens() { return makeRandomCapture(1, 40, 1, 2, 2, 4)->tokenTable; }

} // namespace

class SelectionFileTest : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    std::string at(const char* name) const { return m_folder.filePath(name).toStdString(); }
    std::string write(const char* name, const std::string& text) const {
        writeFileAtomically(at(name), text);
        return at(name);
    }

private slots:
    void readsBack_data() {
        QTest::addColumn<QString>("extension");
        QTest::addColumn<bool>("withScores");
        for (const char* extension : {".json", ".csv", ".h5"})
            for (const bool withScores : {false, true})
                QTest::addRow("%s, scores %d", extension, withScores) << extension << withScores;
    }

    void readsBack() {
        // Beyond 2^53 a whole number is not exact, beyond 2^63 no integer holds it.
        constexpr std::array kNumbers{0.0, 7.25, 0x1p53, 0x1.0000000000001p53, 0x1p63, -0x1p63, 1e300, -1e300};
        QFETCH(QString, extension);
        QFETCH(bool, withScores);
        const std::string path = at("list") + extension.toStdString();
        for (unsigned seed = 0; seed < 20; ++seed) {
            RecordedSelection list = randomList(seed, withScores);
            list.budgetKept = kNumbers[seed % kNumbers.size()];
            writeSelection(path, list, fortyTokens());
            const RecordedSelection back = readSelection(path);
            compare(list, back, extension == ".csv");
            if (QTest::currentTestFailed()) QFAIL(qPrintable(QString("seed %1").arg(seed)));
            writeSelection(path, back, fortyTokens());
            const RecordedSelection twice = readSelection(path);
            compare(back, twice, false);
            for (std::size_t i = 0; i < back.heads.size(); ++i) QVERIFY(back.heads[i].ranks == twice.heads[i].ranks);
        }
    }

    void csvHasOneRowPerKeptToken() {
        RecordedSelection list;
        list.captureTokens = 40;
        list.cutToken = 30;
        RecordedHead head;
        head.layer = 2;
        head.kvHead = 1;
        head.kept = {3, 5, 9};
        head.scores.assign(40, kNaN);
        for (int i = 0; i < 30; ++i) head.scores[static_cast<std::size_t>(i)] = 0.5F;
        head.scores[3] = 0.25F; // protected: kept with the worst score, so its rank is 29
        head.scores[9] = 2;
        list.heads = {head};
        writeSelection(at("rows.csv"), list, fortyTokens());
        QStringList rows;
        for (const QString& line :
             QString::fromStdString(readWholeFile(at("rows.csv"))).split('\n', Qt::SkipEmptyParts))
            if (!line.startsWith('#')) rows << line;
        QCOMPARE(rows, QStringList({"layer,kv_head,position,rank,score,weight,token_id,token_text",
                                    "2,1,3,29,0.25,1,3," + QString::fromStdString(displayText(" w3")),
                                    "2,1,5,5,0.5,1,5," + QString::fromStdString(displayText(" w5")),
                                    "2,1,9,0,2,1,9," + QString::fromStdString(displayText(" w9"))}));
    }

    void jsonHasTheAgreedShape() {
        writeSelection(at("shape.json"), randomList(1, true), fortyTokens());
        const QJsonObject root =
            QJsonDocument::fromJson(QByteArray::fromStdString(readWholeFile(at("shape.json")))).object();
        QCOMPARE(root["format"].toString(), "kvscope-selection");
        QCOMPARE(root["version"].toInt(), 1);
        QCOMPARE(root["capture"].toObject().keys(), QStringList({"file", "hash", "tokens"}));
        QCOMPARE(root["cut"].toString(), "segment:context");
        QVERIFY(root["parameters"].toObject()["window_share"] == QJsonValue(0.2)); // a number, no text
        QVERIFY(root["budget"].toObject()["requested"] == QJsonValue(0.25));
        QCOMPARE(root["budget"].toObject()["requested_tokens"].toInt(), 8);
        QCOMPARE(root["budget"].toObject()["kept"].toDouble(), 7.25);
        QCOMPARE(root["simulated"].toBool(), true);
        const QJsonArray heads = root["heads"].toArray();
        QCOMPARE(heads.size(), 3);
        QVERIFY(!heads[0].toObject().contains("weights")); // all 1
        QVERIFY(heads[0].toObject()["margin"].isNull());   // nothing was decided
        QCOMPARE(heads[1].toObject()["weights"].toObject().keys(), QStringList({"denominator", "numerator"}));
        QCOMPARE(heads[1].toObject()["scores"].toArray().size(), 40);
        QVERIFY(heads[1].toObject()["scores"].toArray()[39].isNull()); // after the cut
    }

    // Numbers are written as numbers only where they read back to the same text; lists of before hold texts alone.
    void parametersKeepTheirTexts() {
        RecordedSelection list = randomList(1, false);
        list.parameters = {{"window", "32"},
                           {"copies", "kv_head"},
                           {"rotate", "true"},
                           {"factor", "1e-05"},
                           {"zeros", "0.30"},
                           {"plus", "+3"},
                           {"octal", "007"},
                           {"huge", "1e999"},
                           {"big", "9007199254740993"},
                           {"null", "null"},
                           {"list", "[1]"},
                           {"empty", ""},
                           {"minus", "-0"},
                           {"most", "18446744073709551615"}};
        for (const char* budget : {"0.25", "2048t", "tau=0.95:proxy", "1", "0.250"}) {
            list.budgetRequested = budget;
            writeSelection(at("texts.json"), list, fortyTokens());
            const RecordedSelection read = readSelection(at("texts.json"));
            QVERIFY(read.parameters == list.parameters);
            QCOMPARE(read.budgetRequested, list.budgetRequested);
        }
        const std::string old = readWholeFile(at("texts.json"));
        QVERIFY(old.find("\"window\":32,") != std::string::npos && old.find("\"rotate\":true") != std::string::npos);
        QVERIFY(old.find("\"zeros\":\"0.30\"") != std::string::npos);
    }

    void anybodyCanWriteOne() {
        const std::string json = write("by_hand.json", R"({"format": "kvscope-selection", "version": 1, "cut": "last:2",
            "budget": {"requested": 0.25}, "heads": [{"layer": 1, "kv_head": 0, "kept": [0, 2]},
                                                     {"layer": 0, "kv_head": 0, "kept": []}], "mine": [1]})");
        const RecordedSelection fromJson = readSelection(json);
        QCOMPARE(fromJson.heads[0].layer, 0); // sorted
        QVERIFY(fromJson.heads[1].kept == std::vector<TokenIndex>({0, 2}));
        QCOMPARE(fromJson.budgetRequested, std::string("0.25"));
        const std::string csv =
            write("by_hand.csv", "\xEF\xBB\xBF# format: kvscope-selection\r\n# cut: last:2\r\n"
                                 "position,layer,kv_head,token_text\r\n0,1,0,\"a, \"\"b\"\"\nc\"\r\n2,1,0,\r\n");
        const RecordedSelection fromCsv = readSelection(csv);
        QCOMPARE(fromCsv.cut, std::string("last:2"));
        QCOMPARE(fromCsv.heads.size(), 1u);
        QVERIFY(fromCsv.heads[0].kept == std::vector<TokenIndex>({0, 2}));
        QVERIFY(std::isinf(fromCsv.heads[0].margin));
    }

    void brokenFiles_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const QString start = R"({"format": "kvscope-selection", "version": 1, )";
        const auto head = [&](const QString& fields) {
            return start + "\"heads\": [{\"layer\": 0, \"kv_head\": 0, " + fields + "}]}";
        };
        QTest::newRow("extension") << "a.txt"
                                   << "x"
                                   << ".json, .csv or .h5";
        QTest::newRow("not JSON") << "a.json"
                                  << "{\"format\": "
                                  << "not valid JSON";
        QTest::newRow("a list") << "a.json"
                                << "[]"
                                << "not a JSON object";
        QTest::newRow("format") << "a.json"
                                << R"({"format": "other", "version": 1, "heads": []})"
                                << "'other'";
        QTest::newRow("no format") << "a.json"
                                   << R"({"heads": []})"
                                   << "an unknown format";
        QTest::newRow("version") << "a.json"
                                 << R"({"format": "kvscope-selection", "version": 2, "heads": []})"
                                 << "version 2";
        QTest::newRow("no heads") << "a.json" << start + "\"seed\": 1}"
                                  << "(heads)";
        QTest::newRow("seed") << "a.json" << start + "\"seed\": -1, \"heads\": []}"
                              << "(seed)";
        QTest::newRow("no kept") << "a.json" << head("\"margin\": 0") << "(heads[0].kept)";
        QTest::newRow("half a token") << "a.json" << head("\"kept\": [0.5]") << "(heads[0].kept)";
        QTest::newRow("huge token") << "a.json" << head("\"kept\": [4294967296]") << "(heads[0].kept)";
        QTest::newRow("descending") << "a.json" << head("\"kept\": [2, 1]") << "2 comes before 1";
        QTest::newRow("twice") << "a.json" << head("\"kept\": [1, 1]") << "1 comes before 1";
        QTest::newRow("negative") << "a.json" << head("\"kept\": [-1, 1]") << "negative";
        QTest::newRow("weights") << "a.json" << head(R"("kept": [1], "weights": {"numerator": [1, 2]})")
                                 << "2 weights for 1 kept";
        QTest::newRow("negative weight") << "a.json" << head(R"("kept": [1], "weights": {"denominator": [-1]})")
                                         << "negative";
        QTest::newRow("scores") << "a.json" << head(R"("kept": [3], "scores": [1, 2])") << "not one per token";
        QTest::newRow("head twice") << "a.json" << start + R"("heads": [{"layer": 0, "kv_head": 0, "kept": []},
                                                            {"layer": 0, "kv_head": 0, "kept": []}]})"
                                    << "two lists for one head";
        QTest::newRow("csv without format") << "a.csv"
                                            << "layer,kv_head,position\n0,0,1\n"
                                            << "# format: kvscope-selection";
        QTest::newRow("csv without position") << "a.csv"
                                              << "# format: kvscope-selection\nlayer,kv_head\n"
                                              << "no column position";
        QTest::newRow("csv short row") << "a.csv"
                                       << "# format: kvscope-selection\nlayer,kv_head,position\n0,1\n"
                                       << "line 3";
        QTest::newRow("csv text") << "a.csv"
                                  << "# format: kvscope-selection\nlayer,kv_head,position\n0,1,x\n"
                                  << "'x' is not";
        QTest::newRow("csv version") << "a.csv"
                                     << "# format: kvscope-selection\n# version: 9\n"
                                     << "version 9";
        QTest::newRow("csv margin") << "a.csv"
                                    << "# format: kvscope-selection\n# margin.0: 1\n"
                                    << "margin.0";
        QTest::newRow("csv huge layer") << "a.csv"
                                        << "# format: kvscope-selection\nlayer,kv_head,position\n9999999999,0,1\n"
                                        << "0 to 1048576";
        QTest::newRow("csv huge position")
            << "a.csv"
            << "# format: kvscope-selection\n# capture_tokens: 40\nlayer,kv_head,position,score\n0,0,2000000000,0.5\n"
            << "beyond the 40 tokens";
        QTest::newRow("csv huge rank") << "a.csv" // found by tests/fuzz
                                       << "# format: kvscope-selection\nlayer,kv_head,position,rank\n0,0,1,1e122\n"
                                       << "rank 1e+122 is the rank of no token";
        QTest::newRow("csv huge capture")
            << "a.csv"
            << "# format: kvscope-selection\n# capture_tokens: 2000000000\nlayer,kv_head,position,score\n0,0,1,0.5\n"
            << "(capture_tokens)";
    }

    void brokenFiles() {
        QFETCH(QString, name);
        QFETCH(QString, text);
        QFETCH(QString, message);
        const std::string path = write(name.toUtf8().constData(), text.toStdString());
        const std::string got = errorMessage([&] { readSelection(path); });
        QVERIFY2(got.find(message.toStdString()) != std::string::npos, got.c_str());
        QVERIFY2(got.find(path) != std::string::npos, got.c_str());
    }

    void brokenHdf5() {
        const auto refused = [&](const char* part, auto change) {
            const std::string path = at("broken.h5");
            writeSelection(path, randomList(1, true), fortyTokens());
            change(path);
            const std::string message = errorMessage([&] { readSelection(path); });
            QVERIFY2(message.find(part) != std::string::npos && message.find(path) != std::string::npos,
                     message.c_str());
        };
        refused("no such file", [](const std::string& path) { std::filesystem::remove(path); });
        refused("HDF5", [](const std::string& path) { writeFileAtomically(path, "text"); });
        refused("HDF5", [](const std::string& path) { std::filesystem::resize_file(path, 700); });
        refused("not a kvscope-selection", [](const std::string& path) { h5::Writer(path).close(); });
        refused("do not fit together", [](const std::string& path) {
            h5::Writer file(path);
            file.attribute("/", "format", std::string("kvscope-selection"));
            file.put("/heads/layer", std::vector<std::int32_t>{0});
            file.put("/heads/kv_head", std::vector<std::int32_t>{0});
            file.put("/heads/offsets", std::vector<std::int64_t>{0, 3});
            file.put("/kept/position", std::vector<std::int32_t>{1, 2});
            file.close();
        });
    }

    void failedWritesLeaveNothing() {
        QTemporaryDir folder;
        const std::string path = folder.filePath("list.txt").toStdString();
        QVERIFY(!errorMessage([&] { writeSelection(path, randomList(1, true), fortyTokens()); }).empty());
        RecordedSelection wrong = randomList(1, false);
        std::reverse(wrong.heads[1].kept.begin(), wrong.heads[1].kept.end());
        QVERIFY(!errorMessage([&] {
                     writeSelection(folder.filePath("a.json").toStdString(), wrong, fortyTokens());
                 }).empty());
        QVERIFY(!errorMessage([&] { writeSelection("/dev/full/a.json", randomList(1, true), fortyTokens()); }).empty());
        QVERIFY(QDir(folder.path()).isEmpty(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot));
    }

    void checkedAgainstTheCapture() {
        const auto capture = makeRandomCapture(1, 40, 8, 2, 2, 4);
        capture->captureInfo.hash = "0123abcd";
        RecordedSelection good = randomList(3, true);
        good.path = "list.h5";
        checkAgainst(good, *capture);
        QCOMPARE(cutOf(good, *capture).token, 30);
        const auto refused = [&](const char* part, auto change) {
            RecordedSelection list = good;
            change(list);
            const std::string message = errorMessage([&] { checkAgainst(list, *capture); });
            QVERIFY2(message.find(part) != std::string::npos && message.ends_with("list.h5"), message.c_str());
        };
        refused("another one", [](auto& list) { list.captureHash = "ffff"; });
        refused("from 41 tokens", [](auto& list) { list.captureTokens = 41; });
        refused("has no layer 8", [](auto& list) { list.heads[2].layer = 8; });
        refused("KV heads 0 to 1", [](auto& list) { list.heads[2].kvHead = 2; });
        refused("but the cut is 5", [](auto& list) { list.cutToken = 5, list.cut = "5"; });
        refused("its cut 'segment:context' is token 30 here, its cut_token is 5", [](auto& l) { l.cutToken = 5; });
        refused("its cut 'last:5' is token 35 here", [](auto& list) { list.cutToken = 40, list.cut = "last:5"; });
        refused("its cut 41", [](auto& list) { list.cutToken = 41; });
        refused("names no cut", [](auto& list) { list.cutToken = 0, list.cut.clear(); });
        RecordedSelection unknown = good; // size and time instead of a hash say nothing about a copy
        unknown.captureHash = "size:1,modified:2";
        checkAgainst(unknown, *capture);
        unknown.cutToken = 0;
        QCOMPARE(cutOf(unknown, *capture).token, 30); // the context is 3/4 of 40 tokens
        unknown.cutToken = 40, unknown.cut = "none";
        QVERIFY(cutOf(unknown, *capture).evaluatedOnSeen);
    }
};

KVSCOPE_TEST(SelectionFileTest)
#include "selection_file_test.moc"
