// `kvscope measures`, and the columns that measures have in tables.
#include <QtTest>

#include "core/capture/capture_writer.h"
#include "tests/app/command_test.h"
#include "tests/support/random_capture.h"
#include "tests/support/test_program.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

using namespace kvscope;

class MeasuresCommandTest : public testing::CommandTest {
    Q_OBJECT

private slots:
    void measuresAreCardsToo() {
        const QJsonArray cards = QJsonDocument::fromJson(m_program.run({"measures", "--json"}).out).array();
        QStringList ids;
        for (const auto& card : cards) ids << card.toObject()["id"].toString();
        const QList<QByteArray> lines = m_program.run({"measures"}).out.split('\n');
        QCOMPARE(2 * ids.size(), lines.size() - 1);
        for (qsizetype i = 0; i < ids.size(); ++i) QVERIFY(lines[2 * i].startsWith(ids[i].toUtf8() + " "));
        const QJsonObject error = cards[ids.indexOf("output_error_wo")].toObject();
        QCOMPARE(error["needs"].toArray(), QJsonArray{"o_proj in the capture"});
        QCOMPARE(error["direction"].toString(), QString("smaller is better"));
    }

    void errorsAfterTheProjectionAreStatedSo() {
        const QStringList asked{"--policy", "keydiff@50t", "--layers", "0", "--out", "t.csv", "--metrics"};
        const auto capture = makeRandomCapture(1, 100, 1, 4, 2, 8);
        capture->captureInfo.layers.front().hasOutputProjection = true;
        capture->tensors[{LayerIndex(0), TensorRole::OutputProjection}] =
            gaussianTensor(2, LayerIndex(0), TensorRole::OutputProjection, 20, 4, 8);
        writeCapture(*capture, m_program.at("projected.h5").toStdString(), {}, {});
        for (const auto& [metrics, words] :
             {std::pair{"output_error", ",before W_o,"},
              {"layer_error_wo", ",after W_o,"},
              {"output_error,output_error_wo", ",\"before W_o, columns with _wo after it\","}}) {
            expectDone(QStringList{"measure", "projected.h5"} + asked + QStringList{metrics});
            QVERIFY2(m_program.content("t.csv").contains(words), words);
        }
    }

    void rowsNameTheirList() {
        for (const char* list : {"a.json", "b.csv"})
            expectDone({"evict", kSample, "--policy", "keydiff@50t", "--layers", "3", "--out", list});
        expectDone({"measure", kSample, "--policy", "keydiff@50t", "--layers", "3", "--selection", "a.json",
                    "--selection", m_program.at("b.csv"), "--out", "t.json"});
        QStringList lists;
        for (const auto& row : QJsonDocument::fromJson(m_program.content("t.json")).object()["rows"].toArray())
            lists << row.toObject()["list"].toString("missing");
        QVERIFY(!lists.contains("missing"));
        lists.removeDuplicates(); // query heads
        QCOMPARE(lists, (QStringList{"", "a.json", m_program.at("b.csv")}));
    }

    // Measures that are asked for twice, or that have a column anyway, have one column.
    void everyColumnStandsOnce() {
        const QStringList asked{"--policy", "keydiff@50t", "--layers",
                                "3",        "--metrics",   "retained_mass,sink_mass,sink_mass,output_error"};
        for (const char* command : {"sweep", "measure"}) {
            expectDone(QStringList{command, kSample, "--out", "t.csv"} + asked);
            QList<QByteArray> columns = m_program.content("t.csv").split('\n').first().split(',');
            QCOMPARE(QSet<QByteArray>(columns.begin(), columns.end()).size(), columns.size());
            for (const char* id : {"retained_mass", "sink_mass", "output_error"}) QVERIFY2(columns.contains(id), id);
        }
    }
};

KVSCOPE_CORE_TEST(MeasuresCommandTest)
#include "measures_command_test.moc"
