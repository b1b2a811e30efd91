// Frames as bytes: whole ones in any pieces, and everything that is none.
#include "tests/support/test_program.h"

#include "app/live/command_words.h"
#include "app/live/frame.h"
#include "core/base/error.h"

#include <QtTest>

using namespace kvscope;
using namespace kvscope::live;

namespace {

const std::string kGreeting = "KVSCOPE 1\n";

std::string headed(const std::string& json) {
    return "Content-Length: " + std::to_string(json.size()) + "\r\n\r\n" + json;
}

/// The error that the bytes end in; empty: frames, or the beginning of one.
std::string refusal(const std::string& bytes, std::size_t piece = 1000) {
    FrameReader reader;
    try {
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            reader.add(std::string_view(bytes).substr(at, piece));
            while (reader.next()) {
            }
        }
    } catch (const Error& error) {
        try { // what was refused once is never read again
            reader.next();
        } catch (const Error& again) {
            if (std::string(again.what()) == error.what()) return error.what();
        }
        return "the reader went on";
    }
    return {};
}

} // namespace

class FrameTest : public QObject {
    Q_OBJECT

private slots:
    void framesArriveInPieces_data() {
        QTest::addColumn<int>("piece");
        for (const int piece : {1, 2, 3, 7, 64, 100'000}) QTest::addRow("%d bytes", piece) << piece;
    }
    void framesArriveInPieces() {
        QFETCH(int, piece);
        const Frame first{{{"jsonrpc", "2.0"}, {"text", "a\r\n\r\nb, \u00e4"}}, {}};
        const Frame second{{{"id", 7}}, {std::string("\0\r\n\r\nKVSCOPE 1\n", 15), "", std::string(5000, 'x')}};
        const std::string bytes =
            "Last login: today\nKVSCOPEAN\n" + kGreeting + frameBytes(first) + frameBytes(second) + frameBytes(first);
        FrameReader reader;
        std::vector<Frame> frames;
        for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(piece)) {
            reader.add(std::string_view(bytes).substr(at, static_cast<std::size_t>(piece)));
            while (auto frame = reader.next()) frames.push_back(std::move(*frame));
        }
        QCOMPARE(frames.size(), std::size_t{3});
        QVERIFY(frames[0].message == first.message && frames[0].blobs.empty());
        QVERIFY(frames[1].message == second.message && frames[1].blobs == second.blobs);
        QVERIFY(frames[2].message == first.message);
        QCOMPARE(reader.waiting(), std::size_t{0});
    }

    void whatIsNoFrameIsRefused_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QByteArray>("words"); // empty: it may become a frame
        const auto row = [](const char* name, const std::string& bytes, const char* words) {
            QTest::newRow(name) << QByteArray::fromStdString(bytes) << QByteArray(words);
        };
        const auto after = [](const std::string& bytes) { return kGreeting + bytes; };
        row("no greeting yet", std::string(60'000, '.'), "");
        row("no greeting", std::string(70'000, '.'), "64 KiB passed without the greeting");
        row(
            "no greeting in many lines",
            [] {
                std::string lines;
                for (int i = 0; i < 9000; ++i) lines += "welcome\n";
                return lines;
            }(),
            "64 KiB passed without the greeting");
        row("another version", "KVSCOPE 2\n", "version '2' of the protocol");
        row("a terminal between", "KVSCOPE 1\r\n", "puts a terminal between worker and program");
        row("text", after("Loading checkpoint shards\n" + std::string(1100, ' ')), "does not end within 1 KiB");
        row("a short text", after("Loading\r\n\r\n"), "has a line that is none of the protocol's");
        row("an endless header", after(std::string(1024, 'x')), "does not end within 1 KiB");
        row("the longest header", after("Content-Length: 2\r\nKvscope-Blobs: 0" + std::string(983, '0')), "");
        row("no length", after("Kvscope-Blobs: 4\r\n\r\n"), "lacks Content-Length");
        row("no number", after("Content-Length: many\r\n\r\n"), "is no number");
        row("a negative length", after("Content-Length: -1\r\n\r\n"), "is no number");
        row("2^63", after("Content-Length: 9223372036854775808\r\n\r\n"), "its text has 9223372036854775808 bytes");
        row("beyond 2^64", after("Content-Length: 18446744073709551617\r\n\r\n"), "is no number");
        row("a long text", after("Content-Length: 16777217\r\n\r\n"), "its text has 16777217 bytes");
        row("the longest text", after("Content-Length: 16777216\r\n\r\n"), "");
        row("a large blob", after("Content-Length: 2\r\nKvscope-Blobs: 4194305\r\n\r\n"), "its blob has 4194305 bytes");
        row("the largest blob", after("Content-Length: 2\r\nKvscope-Blobs: 4194304\r\n\r\n{}"), "");
        row("nine blobs", after("Content-Length: 2\r\nKvscope-Blobs: 1 1 1 1 1 1 1 1 1\r\n\r\n"), "more than 8 blobs");
        row("two lengths", after("Content-Length: 2\r\nContent-Length: 3\r\n\r\n"), "none of the protocol's");
        row("blobs twice", after("Content-Length: 2\r\nKvscope-Blobs: 1\r\nKvscope-Blobs: 1\r\n\r\n"),
            "none of the protocol's");
        row("another line", after("Content-Length: 2\r\nContent-Type: x\r\n\r\n"), "none of the protocol's");
        row("two spaces", after("Content-Length: 2\r\nKvscope-Blobs: 1  1\r\n\r\n"), "is no number");
        row("no JSON", after(headed("{x")), "is no JSON");
        row("no object", after(headed("[1]")), "is no JSON object");
        row("broken UTF-8", after(headed("{\"a\": \"\xff\"}")), "is no JSON");
        row("two texts", after(headed("{} {}")), "is no JSON");
        row("32 deep", after(headed("{\"a\":" + std::string(31, '[') + std::string(31, ']') + "}")), "");
        row("34 deep", after(headed("{\"a\":" + std::string(33, '[') + std::string(33, ']') + "}")),
            "nested more than");
        row("very deep", after(headed("{\"a\":" + std::string(1'000'000, '['))), "nested more than 32 deep");
        row("a frame behind too few bytes", after("Content-Length: 3\r\n\r\n{}Content-Length: 2\r\n\r\n{}"),
            "is no JSON");
    }
    void whatIsNoFrameIsRefused() {
        QFETCH(QByteArray, bytes);
        QFETCH(QByteArray, words);
        for (const std::size_t piece : {std::size_t{1000}, std::size_t{1} << 24}) {
            const QByteArray found = QByteArray::fromStdString(refusal(bytes.toStdString(), piece));
            QVERIFY2(words.isEmpty() ? found.isEmpty() : found.contains(words), found);
            QVERIFY(!found.contains('\n'));
        }
    }

    void aCommandIsSplitAsAShellDoes_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QStringList>("words");
        const auto row = [](const char* line, const QStringList& words) {
            QTest::newRow(line) << QString(line) << words;
        };
        row("python3", {"python3"});
        row("  ssh -T  -o BatchMode=yes\tgpu7 python3 ", {"ssh", "-T", "-o", "BatchMode=yes", "gpu7", "python3"});
        row("'/home/a b/python' -X \"c d\"", {"/home/a b/python", "-X", "c d"});
        row("a\\ b 'c\\d' \"e\\\"f\\g\"", {"a b", "c\\d", "e\"f\\g"});
        row("a'b'\"c\" ''", {"abc", ""});
        row("$HOME *.py a|b; `c`", {"$HOME", "*.py", "a|b;", "`c`"}); // no shell reads it
        row("a~/b \\~/c", {"a~/b", "~/c"});
    }
    void aCommandIsSplitAsAShellDoes() {
        QFETCH(QString, line);
        QFETCH(QStringList, words);
        QStringList found;
        for (const std::string& word : commandWords(line.toStdString())) found << QString::fromStdString(word);
        QCOMPARE(found, words);
    }

    void theHomeFolderIsKnown() {
        const QByteArray home = qgetenv("HOME");
        qputenv("HOME", "/home/one");
        QCOMPARE(commandWords("~/env/bin/python").front(), std::string("/home/one/env/bin/python"));
        qputenv("HOME", home);
    }

    void aBrokenCommandIsRefused() {
        QVERIFY_THROWS_EXCEPTION(Error, commandWords(" \t"));
        QVERIFY_THROWS_EXCEPTION(Error, commandWords("python 'x"));
        QVERIFY_THROWS_EXCEPTION(Error, commandWords("python \"x\\\""));
    }
};

KVSCOPE_TEST(FrameTest)
#include "frame_test.moc"
