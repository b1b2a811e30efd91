// What messages quote comes from files and command lines: it stays on one line, is shown as it is where it can be, and
// never fills the screen.
#include "core/base/error.h"
#include "core/base/one_line.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

class OneLineTest : public QObject {
    Q_OBJECT

private slots:
    void escapes_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("line");
        const auto row = [](const char* name, const QByteArray& text, const QByteArray& line) {
            QTest::newRow(name) << text << line;
        };
        row("plain", "a b'c\"", "a b'c\"");
        row("printable UTF-8", "d\xc3\xa9j\xc3\xa0 \xe2\x80\x93 \xf0\x9f\x98\x80",
            "d\xc3\xa9j\xc3\xa0 \xe2\x80\x93 \xf0\x9f\x98\x80");
        row("breaks", "a\nb\r\tc", "a\\nb\\r\\tc");
        row("terminal commands", "\x1b[31m\x07", "\\x1b[31m\\x07");
        row("zero", QByteArray("a\0b", 3), "a\\x00b");
        row("no UTF-8", "a\xff\xfe", "a\\xff\\xfe");
        row("a cut character", "\xe2\x80", "\\xe2\\x80");
        row("an overlong slash", "\xc0\xaf", "\\xc0\\xaf");
        row("C1 control", "\xc2\x9b", "\\u009b");
        row("line separator", "\xe2\x80\xa8", "\\u2028");
        row("text from right to left from here", "\xe2\x80\xae", "\\u202e");
    }

    void escapes() {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, line);
        QCOMPARE(QByteArray::fromStdString(oneLine(text.toStdString())), line);
    }

    void shortensBetweenCharacters() {
        const std::string text = "begin" + std::string(300, 'x') + "end";
        QCOMPARE(shortened(text, 308), text);
        QCOMPARE(shortened(text, 16), std::string("beginxxx...xxend"));
        std::string umlauts;
        for (int i = 0; i < 200; ++i) umlauts += "\xc3\xbc";
        for (std::size_t most = 16; most < 30; ++most) {
            QVERIFY(isUtf8(shortened(umlauts, most)));
            QVERIFY(shortened(umlauts, most).size() <= most);
        }
    }

    void aByteOrderMarkIsNoText() {
        QCOMPARE(withoutByteOrderMark("\xEF\xBB\xBFtext"), std::string_view("text"));
        for (const std::string_view text : {"", "text", "\xEF\xBB", "t\xEF\xBB\xBF"})
            QCOMPARE(withoutByteOrderMark(text), text);
    }

    void aMessageQuotesAtMost200BytesOfAValue() {
        const std::string word(5000, 'a');
        const std::string spaced = "'" + std::string(2000, 'b') + " " + std::string(2000, 'c') + "'";
        for (const std::string& value : {word, spaced}) {
            const std::string message = messageText("the value " + value + " is no number. Give one");
            QVERIFY(message.starts_with("the value ") && message.ends_with(" is no number. Give one"));
            QCOMPARE(message.size(), std::string("the value  is no number. Give one").size() + 200);
        }
        const std::string names = "Known: 'one', 'two', 'three'";
        QCOMPARE(messageText(names), names);
    }

    void aMessageHasAtMost1000Bytes() {
        std::string many;
        for (int i = 0; i < 1000; ++i) many += "word ";
        QCOMPARE(messageText(many).size(), std::size_t(1000));
    }

    void errorsAreOneLine() {
        const Error error({"there is no 'a\nb'", "x\ry", "Name \xff", "/tmp/" + std::string(4000, 'p')});
        const std::string text = error.what();
        QVERIFY(text.starts_with("there is no 'a\\nb' (x\\ry). Name \\xff: /tmp/ppp"));
        QVERIFY(text.size() < 300);
        QCOMPARE(error.parts().path.size(), std::size_t(4005)); // programs read the parts
    }
};

KVSCOPE_TEST(OneLineTest)
#include "one_line_test.moc"
