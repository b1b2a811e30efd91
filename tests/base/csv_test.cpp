// Fields of comma-separated values: quoted exactly where RFC 4180 asks for it.
#include "core/base/csv.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

class CsvTest : public QObject {
    Q_OBJECT

private slots:
    void quotesOnlyWhatNeedsIt() {
        QCOMPARE(csvField("plain text; 0.5"), std::string("plain text; 0.5"));
        QCOMPARE(csvField(""), std::string());
        QCOMPARE(csvField("a,b"), std::string("\"a,b\""));
        QCOMPARE(csvField("say \"no\""), std::string("\"say \"\"no\"\"\""));
        QCOMPARE(csvField("two\nlines"), std::string("\"two\nlines\""));
        QCOMPARE(csvField("carriage\r"), std::string("\"carriage\r\""));
    }
    void linesEndAndKeepEmptyFields() {
        QCOMPARE(csvLine({"a", "", "b,c"}), std::string("a,,\"b,c\"\n"));
        QCOMPARE(csvLine({""}), std::string("\n"));
        QCOMPARE(csvLine({"", ""}), std::string(",\n"));
    }
    void recordsComeBack() {
        const std::vector<std::string> fields = {"a", "", "b,c", "say \"no\"", "two\nlines", "carriage\r"};
        const std::string text = "# note\r\n" + csvLine(fields) + "last,one";
        CsvRecords records(text);
        std::string comment;
        QVERIFY(records.takeComment(comment));
        QCOMPARE(comment, std::string(" note"));
        QVERIFY(!records.takeComment(comment));
        QVERIFY(records.takeRecord() == fields);
        QCOMPARE(records.line(), 3); // the quoted line end counts
        QVERIFY((records.takeRecord() == std::vector<std::string>{"last", "one"}));
        QVERIFY(records.atEnd());
    }
};

KVSCOPE_TEST(CsvTest)
#include "csv_test.moc"
