// Tokens by what they are made of, by segment, repetition and position: hand examples, and laws on a sample.
#include <QtTest>

#include "core/base/one_line.h"
#include "core/capture/open_capture.h"
#include "core/capture/token_classes.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

using namespace kvscope;

namespace {

TokenTable tableOf(const std::vector<std::string>& texts, const std::vector<std::int32_t>& ids) {
    TokenTable table;
    table.ids = ids;
    table.offsets = {0};
    for (const std::string& text : texts) {
        table.bytes += text;
        table.offsets.push_back(static_cast<std::int64_t>(table.bytes.size()));
    }
    return table;
}

std::vector<int> numbersOf(const TokenClasses& classes) { return {classes.classOf.begin(), classes.classOf.end()}; }

} // namespace

class TokenClassesTest : public QObject {
    Q_OBJECT

private slots:
    void textsHaveTheClassOfTheirCharacters_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<bool>("afterLetter");
        QTest::addColumn<int>("expected");
        const auto row = [](const char* text, TextClass expected, bool afterLetter = false) {
            QTest::newRow(qPrintable(QString("%1 %2").arg(QString::fromUtf8(text)).arg(afterLetter)))
                << QByteArray(text) << afterLetter << static_cast<int>(expected);
        };
        row(" the", TextClass::WordStart);
        row("ing", TextClass::WordPart, true);
        row("The", TextClass::WordStart, false);
        row(" the", TextClass::WordStart, true);
        row(" 42", TextClass::Digits);
        row("7", TextClass::Digits, true);
        row(",", TextClass::Punctuation, true);
        row(" $", TextClass::Punctuation);
        row("  ", TextClass::Blank);
        row("", TextClass::Blank);
        row(" \n\n", TextClass::LineBreak);
        row("a1", TextClass::Mixed);
        row("don't", TextClass::Mixed);
        row("n't", TextClass::Mixed, true);
        row("é", TextClass::WordPart, true);
        row("注意", TextClass::WordStart, true); // a script without blanks
        row("。", TextClass::Punctuation);
        row("“", TextClass::Punctuation);
        row("🙂", TextClass::Punctuation);
        row("\xE2\x82", TextClass::Broken);
        row("\xC0\x80", TextClass::Broken); // overlong
    }
    void textsHaveTheClassOfTheirCharacters() {
        QFETCH(QByteArray, text);
        QFETCH(bool, afterLetter);
        QFETCH(int, expected);
        QCOMPARE(static_cast<int>(textClassOf(text.toStdString(), afterLetter)), expected);
    }

    // "The code: 42\nis un|read": a word that begins after a line break begins; "read" goes on with "un".
    void wordsBeginAfterWhatIsNoLetter() {
        const TokenTable table =
            tableOf({"The", " code", ":", " 42", "\n", "is", " un", "read"}, {1, 2, 3, 4, 5, 6, 7, 8});
        QCOMPARE(numbersOf(classesByText(table)), (std::vector<int>{0, 0, 3, 2, 5, 0, 0, 1}));
    }

    void repeatsLookAtTheTokenBefore() {
        const TokenTable table = tableOf({"a", "b", "c", "b", "a", "b", "c"}, {1, 2, 3, 2, 1, 2, 3});
        //                                                first first first; b repeats, a repeats, "a b" and "b c"
        //                                                repeat
        QCOMPARE(numbersOf(classesByRepeat(table)), (std::vector<int>{0, 0, 0, 1, 1, 2, 2}));
    }

    void theInnermostSegmentCounts() {
        TokenTable table = tableOf({"a", "b", "c", "d", "e"}, {1, 2, 3, 4, 5});
        table.segments = {{2, 3, SegmentKind::Needle}, {1, 4, SegmentKind::Context}};
        const TokenClasses classes = classesBySegment(table);
        QCOMPARE(classes.names[static_cast<std::size_t>(classes.classOf[2])], std::string("needle"));
        QCOMPARE(numbersOf(classes), (std::vector<int>{5, 1, 2, 1, 5}));
    }

    void tenthsAreOfTheTokensBeforeTheCut() {
        const TokenClasses classes = classesByDecile(25, 20);
        QCOMPARE(numbersOf(classes),
                 (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9, 9, 9, 9, 9}));
        QCOMPARE(classes.names[3], std::string("30–40 %"));
    }

    void codePointsAreChecked() {
        QCOMPARE(codePointAt("é").value, std::uint32_t{0xE9});
        QCOMPARE(codePointAt("🙂").length, std::size_t{4});
        QCOMPARE(codePointAt("\xED\xA0\x80").length, std::size_t{0});     // a surrogate
        QCOMPARE(codePointAt("\xF4\x90\x80\x80").length, std::size_t{0}); // beyond U+10FFFF
    }

    // Every token of a sample has exactly one class, and the needle's tokens are those of its segments.
    void aSampleIsSortedWhole() {
        const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
        const TokenTable& tokens = capture->tokens();
        for (const TokenClasses& classes : {classesByText(tokens), classesBySegment(tokens), classesByRepeat(tokens)}) {
            QCOMPARE(std::ssize(classes.classOf), capture->info().numTokens);
            for (const std::uint8_t one : classes.classOf) QVERIFY(one < classes.names.size());
        }
        const std::vector<int> segments = numbersOf(classesBySegment(tokens));
        QCOMPARE(std::count(segments.begin(), segments.end(), static_cast<int>(SegmentKind::Needle)),
                 std::ptrdiff_t{48});
        const std::vector<int> texts = numbersOf(classesByText(tokens));
        QVERIFY(std::count(texts.begin(), texts.end(), static_cast<int>(TextClass::WordStart)) > 300);
    }
};

KVSCOPE_TEST(TokenClassesTest)
#include "token_classes_test.moc"
