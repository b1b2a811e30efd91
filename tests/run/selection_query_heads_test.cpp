// Lists in which query heads have sets of their own: each set's ranks and scores in the three forms, and what is
// refused.
#include "core/base/atomic_file.h"
#include "core/capture/h5_writer.h"
#include "core/lists/selection_file.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <cstddef>
#include <random>
#include <set>

using namespace kvscope;

namespace {

constexpr TokenIndex kTokens = 40, kCut = 30;
const float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Numbers that are hard to write down among others, and a token without a score of this head.
std::vector<float> randomScores(std::mt19937& random) {
    std::vector<float> scores(kTokens, kNaN);
    for (TokenIndex token = 0; token < kCut; ++token)
        scores[static_cast<std::size_t>(token)] = std::uniform_real_distribution<float>(-2, 2)(random);
    scores[3] = kNaN;
    scores[4] = std::nextafter(1.0F, 2.0F);
    scores[5] = 1e-42F;
    return scores;
}

std::vector<TokenIndex> randomKept(std::mt19937& random) {
    std::vector<TokenIndex> kept = {3, 5};
    for (TokenIndex token = 6; token < kCut; ++token)
        if (random() % 3 == 0) kept.push_back(token);
    return kept;
}

/// Two KV heads, each read by two query heads.
RecordedSelection randomList(unsigned seed, bool withScores) {
    std::mt19937 random(seed);
    RecordedSelection list;
    list.captureTokens = kTokens;
    list.cut = "segment:context";
    list.cutToken = kCut;
    list.policy = "snapkv";
    for (const int kvHead : {0, 1}) {
        RecordedHead head;
        head.kvHead = kvHead;
        std::set<TokenIndex> all;
        for (const std::int32_t query : {2 * kvHead, 2 * kvHead + 1}) {
            RecordedQueryHead own{{query, randomKept(random), static_cast<float>(random() % 8) / 3}};
            own.scores = withScores ? randomScores(random) : std::vector<float>();
            all.insert(own.kept.begin(), own.kept.end());
            head.queryHeads.push_back(std::move(own));
        }
        head.kept.assign(all.begin(), all.end());
        head.scores = withScores ? randomScores(random) : std::vector<float>();
        list.heads.push_back(std::move(head));
    }
    return list;
}

/// 0 = best by (score descending, index ascending); -1 without a score. By counting.
std::int64_t rankOf(const std::vector<float>& scores, TokenIndex token) {
    const float own = scores[static_cast<std::size_t>(token)];
    std::int64_t better = 0;
    for (TokenIndex i = 0; i < kTokens; ++i) {
        const float other = scores[static_cast<std::size_t>(i)];
        better += other > own || (other == own && i < token) ? 1 : 0;
    }
    return std::isnan(own) ? -1 : better;
}

bool sameNumber(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

} // namespace

class SelectionQueryHeadsTest : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    std::string at(const char* name) const { return m_folder.filePath(name).toStdString(); }
    std::string write(const char* name, const std::string& text) const {
        writeFileAtomically(at(name), text);
        return at(name);
    }

    /// CSV has the scores of kept tokens alone.
    static void compare(const RecordedQueryHead& read, const RecordedQueryHead& written, bool keptOnly) {
        QVERIFY(static_cast<const QueryHeadSet&>(read) == written);
        QCOMPARE(read.scores.size(), written.scores.size());
        QCOMPARE(read.ranks.size(), written.scores.empty() ? 0 : written.kept.size());
        const std::set<TokenIndex> kept(written.kept.begin(), written.kept.end());
        for (std::size_t i = 0; i < written.scores.size(); ++i)
            QVERIFY(sameNumber(read.scores[i],
                               keptOnly && !kept.contains(static_cast<TokenIndex>(i)) ? kNaN : written.scores[i]));
        for (std::size_t i = 0; i < read.ranks.size(); ++i)
            QCOMPARE(read.ranks[i], rankOf(written.scores, written.kept[i]));
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
        QFETCH(QString, extension);
        QFETCH(bool, withScores);
        const std::string path = at("list") + extension.toStdString();
        for (unsigned seed = 0; seed < 20; ++seed) {
            const RecordedSelection list = randomList(seed, withScores);
            writeSelection(path, list, {});
            const RecordedSelection read = readSelection(path);
            for (std::size_t h = 0; h < 2; ++h)
                for (std::size_t q = 0; q < 2; ++q)
                    compare(read.heads[h].queryHeads[q], list.heads[h].queryHeads[q], extension == ".csv");
            if (QTest::currentTestFailed()) QFAIL(qPrintable(QString("seed %1").arg(seed)));
        }
    }

    // Rank and score of a token in each query head that keeps it, in the order in which these are named.
    void csvNamesWhatEachQueryHeadChoseBy() {
        RecordedHead head;
        head.kept = {0, 2};
        head.scores = {3, 1, 2, 0};
        head.queryHeads = {{{5, {2}, 1.5F}, {0.25F, kNaN, 0.5F, 1}}, {{4, {0, 2}, 0.5F}, {-1, 4, 0.125F, 2}}};
        RecordedSelection list;
        list.heads = {head};
        writeSelection(at("own.csv"), list, {});
        const QString text = QString::fromStdString(readWholeFile(at("own.csv")));
        QVERIFY2(
            text.endsWith("layer,kv_head,position,rank,score,weight,token_id,token_text,query_heads,query_head_ranks,"
                          "query_head_scores\n0,0,0,0,3,1,,,4,3,-1\n0,0,2,1,2,1,,,4 5,2 1,0.125 0.5\n"),
            qPrintable(text));
    }

    void jsonHasScoresBesideEachSet() {
        writeSelection(at("own.json"), randomList(1, true), {});
        const QJsonObject root =
            QJsonDocument::fromJson(QByteArray::fromStdString(readWholeFile(at("own.json")))).object();
        const QJsonObject own = root["heads"].toArray()[1].toObject()["query_heads"].toArray()[1].toObject();
        QCOMPARE(own.keys(), QStringList({"kept", "margin", "query_head", "scores"}));
        QCOMPARE(own["query_head"].toInt(), 3);
        QCOMPARE(own["scores"].toArray().size(), kTokens);
        QVERIFY(own["scores"].toArray()[3].isNull() && own["scores"].toArray()[kCut].isNull());
    }

    // Somebody's table may have scores and no ranks: they follow, as far as the table knows.
    void csvWithoutRanks() {
        const RecordedSelection list =
            readSelection(write("ranks.csv", "# format: kvscope-selection\nlayer,kv_head,position,score,"
                                             "query_heads,query_head_scores\n0,0,1,0.5,0 1,2 3\n0,0,4,2,1,nan\n"));
        QVERIFY(list.heads[0].ranks == (std::vector<std::int64_t>{1, 0}));
        QVERIFY(list.heads[0].queryHeads[0].ranks == (std::vector<std::int64_t>{0}));
        QVERIFY(list.heads[0].queryHeads[1].ranks == (std::vector<std::int64_t>{0, -1}));
    }

    void brokenFiles_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const QString csv =
            "# format: kvscope-selection\nlayer,kv_head,position,query_heads,query_head_ranks,query_head_scores\n";
        QTest::newRow("ranks") << "a.csv" << csv + "0,0,1,4 5,7,\n"
                               << "query_head_ranks has 1 numbers for 2 query heads";
        QTest::newRow("scores") << "a.csv" << csv + "0,0,1,4,7,0.5 1\n"
                                << "query_head_scores has 2 numbers for 1 query heads";
        QTest::newRow("no number") << "a.csv" << csv + "0,0,1,4,7,x\n"
                                   << "'x' is not a number";
        QTest::newRow("too few")
            << "a.json"
            << R"({"format": "kvscope-selection", "version": 1, "heads": [{"layer": 0, "kv_head": 0,
            "kept": [7], "query_heads": [{"query_head": 3, "kept": [7], "scores": [1, 2]}]}]})"
            << "KV head 0, query head 3";
    }

    void brokenFiles() {
        QFETCH(QString, name);
        QFETCH(QString, text);
        QFETCH(QString, message);
        const std::string path = write(name.toUtf8().constData(), text.toStdString());
        const std::string got = errorMessage([&] { readSelection(path); });
        QVERIFY2(got.find(message.toStdString()) != std::string::npos && got.find(path) != std::string::npos,
                 got.c_str());
    }

    void brokenHdf5() {
        const auto written = [&](const std::vector<std::int64_t>& ranks, const std::vector<float>& scores) {
            h5::Writer file(at("sets.h5"));
            file.attribute("/", "format", std::string("kvscope-selection"));
            file.put("/heads/layer", std::vector<std::int32_t>{0});
            file.put("/heads/kv_head", std::vector<std::int32_t>{0});
            file.put("/heads/offsets", std::vector<std::int64_t>{0, 1});
            file.put("/kept/position", std::vector<std::int32_t>{1});
            file.put("/query_heads/head", std::vector<std::int32_t>{0, 0});
            file.put("/query_heads/query_head", std::vector<std::int32_t>{0, 1});
            file.put("/query_heads/margin", std::vector<double>{0, 0});
            file.put("/query_heads/offsets", std::vector<std::int64_t>{0, 1, 2});
            file.put("/query_heads/position", std::vector<std::int32_t>{1, 1});
            file.put("/query_heads/rank", ranks);
            file.put("/query_heads/scores", scores);
            file.close();
            return at("sets.h5");
        };
        const RecordedSelection good = readSelection(written({0, 1}, {2, 1, 1, 2, 3, 4}));
        QVERIFY(good.heads[0].queryHeads[1].scores == (std::vector<float>{2, 3, 4}));
        QVERIFY(good.heads[0].queryHeads[1].ranks == (std::vector<std::int64_t>{1}));
        const std::string ranks = errorMessage([&] { readSelection(written({0}, {2, 1, 1, 2, 3, 4})); });
        QVERIFY2(ranks.find("/query_heads)") != std::string::npos, ranks.c_str());
        const std::string scores = errorMessage([&] { readSelection(written({0, 1}, {2, 1, 1, 2, 3})); });
        QVERIFY2(scores.find("/query_heads/scores") != std::string::npos, scores.c_str());
    }

    void scoresMustFitTheCapture() {
        const auto capture = makeRandomCapture(1, kTokens, 1, 4, 2, 4);
        RecordedSelection list = randomList(3, true);
        checkAgainst(list, *capture);
        list.heads[1].queryHeads[1].scores.pop_back();
        const std::string message = errorMessage([&] { checkAgainst(list, *capture); });
        QVERIFY2(message.find("39 scores for 40 tokens") != std::string::npos &&
                     message.find("query head 3") != std::string::npos,
                 message.c_str());
    }
};

KVSCOPE_TEST(SelectionQueryHeadsTest)
#include "selection_query_heads_test.moc"
