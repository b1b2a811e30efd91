// Retained-index lists that declare far more than they hold, of which none takes the memory or the time that it asks
// for, or that say one thing in two ways.
#include "core/capture/h5_writer.h"
#include "core/lists/selection_file.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cstddef>
#include <fstream>
#include <numeric>

using namespace kvscope;

class HostileListTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }

    /// One head a layer.
    static void beginList(h5::Writer& writer, std::int64_t heads) {
        writer.attribute("/", "format", std::string("kvscope-selection"));
        writer.attribute("/", "version", std::int64_t{1});
        std::vector<std::int32_t> layers(static_cast<std::size_t>(heads));
        std::iota(layers.begin(), layers.end(), 0);
        writer.put("/heads/layer", layers);
        writer.put("/heads/kv_head", std::vector<std::int32_t>(layers.size()));
    }

private slots:
    /// Every scored head has a number for each token of the capture in memory.
    void scoresOfATableAreNotSpreadOverAnyNumberOfTokens() {
        std::string text = "# format: kvscope-selection\n# version: 1\n# capture_tokens: 16777216\n"
                           "layer,kv_head,position,rank,score,query_heads,query_head_scores\n";
        for (int layer = 0; layer < 9; ++layer) text += std::to_string(layer) + ",0,5,0,1.5,0,2.5\n";
        std::ofstream(path("scores.csv")) << text;
        const QString error = errorText([&] { readSelection(path("scores.csv")); });
        QVERIFY2(error.startsWith("the scores of the list take 301989888 numbers in memory (capture_tokens)"),
                 qPrintable(error));
    }

    // Where it stands does not matter: four heads of 2^62 numbers would be none.
    void noCaptureHasSoManyTokens() {
        for (const bool isFirst : {true, false}) {
            const std::string tokens = "# capture_tokens: 4611686018427387904\n";
            std::string text = "# format: kvscope-selection\n# version: 1\n" + (isFirst ? tokens : "") +
                               "layer,kv_head,position,score\n" + (isFirst ? "" : tokens);
            for (int head = 0; head < 4; ++head) text += "0," + std::to_string(head) + ",5,1.5\n";
            std::ofstream(path("many.csv")) << text;
            const QString error = errorText([&] { readSelection(path("many.csv")); });
            QVERIFY2(error.startsWith("4611686018427387904 tokens are more than 134217728"), qPrintable(error));
        }
    }

    void aColumnStandsOnce() {
        std::ofstream(path("twice.csv")) << "# format: kvscope-selection\nlayer,kv_head,position,position\n0,0,1,2\n";
        QVERIFY(errorText([&] { readSelection(path("twice.csv")); }).startsWith("column 'position' is there twice"));
    }

    // Whatever other programs write for true: a simulated list must not pass for a real one.
    void simulatedHasSpellings() {
        const auto simulated = [&](const std::string& text) {
            std::ofstream(path("said.csv"))
                << "# format: kvscope-selection\n# simulated: " + text + "\nlayer,kv_head,position\n0,0,1\n";
            return readSelection(path("said.csv")).simulated;
        };
        for (const char* yes : {"true", "True", "1"}) QVERIFY(simulated(yes));
        for (const char* no : {"false", "False", "0"}) QVERIFY(!simulated(no));
        for (const char* other : {"yes", "2", "TRUE "}) {
            const QString error = errorText([&] { simulated(other); });
            QVERIFY2(error.contains("is neither true nor false (simulated)"), qPrintable(error));
            QVERIFY2(error.endsWith("said.csv"), qPrintable(error));
        }
        h5::Writer writer(path("said.h5"));
        beginList(writer, 1);
        writer.attribute("/", "simulated", std::int64_t{1});
        writer.put("/heads/offsets", std::vector<std::int64_t>{0, 1});
        writer.put("/kept/position", std::vector<std::int32_t>{3});
        writer.close();
        QVERIFY(readSelection(path("said.h5")).simulated);
    }

    void positionsThatAreNotInTheFileAreNotAllocated() {
        h5::Writer writer(path("declared.h5"));
        beginList(writer, 1);
        writer.put("/heads/offsets", std::vector<std::int64_t>{0, 1});
        writer.createDataset("/kept/position", h5::ElementType::Int32, {std::int64_t{1} << 26});
        writer.close();
        const QString error = errorText([&] { readSelection(path("declared.h5")); });
        QVERIFY2(error.startsWith("the data set declares more numbers than the file holds (/kept/position)"),
                 qPrintable(error));
    }

    /// Hundreds of thousands of heads with a set each: looking for the sets of every head among all would not end.
    void setsFindTheirHeads() {
        constexpr std::int64_t kHeads = 400000;
        h5::Writer writer(path("many.h5"));
        beginList(writer, kHeads);
        std::vector<std::int64_t> offsets(kHeads + 1);
        std::iota(offsets.begin(), offsets.end(), 0);
        std::vector<std::int32_t> position(kHeads, 3), head(kHeads);
        for (std::int32_t i = 0; i < kHeads; ++i) head[static_cast<std::size_t>(i)] = kHeads - 1 - i;
        writer.put("/heads/offsets", offsets);
        writer.put("/kept/position", position);
        writer.put("/query_heads/head", head);
        writer.put("/query_heads/query_head", std::vector<std::int32_t>(kHeads, 7));
        writer.put("/query_heads/margin", std::vector<double>(kHeads, 0.5));
        writer.put("/query_heads/offsets", offsets);
        writer.put("/query_heads/position", position);
        writer.close();
        const RecordedSelection list = readSelection(path("many.h5"));
        QCOMPARE(std::ssize(list.heads), kHeads);
        for (const RecordedHead& one : list.heads) QCOMPARE(one.queryHeads.size(), std::size_t{1});
        QCOMPARE(list.heads.front().queryHeads.front().queryHead, 7);
    }
};

KVSCOPE_TEST(HostileListTest)
#include "hostile_list_test.moc"
