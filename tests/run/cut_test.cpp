// Every form of the cut, on captures with and without segments, and every way to type one that does not work.
#include "core/base/error.h"
#include "core/capture/cut.h"
#include "core/capture/memory_capture.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

namespace {

using Kind = SegmentKind;

MemoryCapture captureOf(std::int64_t tokens, std::vector<Segment> segments = {}) {
    MemoryCapture capture;
    capture.captureInfo.numTokens = tokens;
    capture.captureInfo.path = "some.h5";
    capture.tokenTable.segments = std::move(segments);
    return capture;
}

/// The segments of the needle sample: three needles inside the context, then a question and its answer.
MemoryCapture needle() {
    return captureOf(1028, {{1, 995, Kind::Context},
                            {283, 299, Kind::Needle},
                            {611, 627, Kind::Needle},
                            {995, 1021, Kind::Question},
                            {1021, 1028, Kind::Answer}});
}

/// Two turns, with a question inside the context to mislead.
MemoryCapture turns() {
    return captureOf(100, {{60, 70, Kind::Answer},
                           {50, 60, Kind::Question},
                           {20, 30, Kind::Question},
                           {10, 40, Kind::Context},
                           {0, 10, Kind::System},
                           {70, 80, Kind::Context},
                           {80, 90, Kind::Question}});
}

} // namespace

class CutTest : public QObject {
    Q_OBJECT

private slots:
    void forms_data() {
        QTest::addColumn<QString>("capture");
        QTest::addColumn<QString>("text");
        QTest::addColumn<int>("token");
        QTest::addColumn<bool>("seen");
        QTest::addColumn<QString>("label");
        QTest::newRow("default is the context's end") << "needle"
                                                      << "default" << 995 << false << "end of context, 995";
        QTest::newRow("context") << "needle"
                                 << "segment:context" << 995 << false << "end of context, 995";
        QTest::newRow("question") << "needle"
                                  << "segment:question" << 1021 << false << "end of question, 1,021";
        QTest::newRow("first needle") << "needle"
                                      << "segment:needle" << 299 << false << "end of needle, 299";
        QTest::newRow("last") << "needle"
                              << "last:256" << 772 << false << "before the last 256: 772";
        QTest::newRow("first token") << "needle"
                                     << "1" << 1 << false << "token 1";
        QTest::newRow("last token") << "needle"
                                    << "1027" << 1027 << false << "token 1,027";
        QTest::newRow("none") << "needle"
                              << "none" << 1028 << true << "none, all 1,028 tokens seen";
        QTest::newRow("turns: context") << "turns"
                                        << "default" << 40 << false << "end of context, 40";
        QTest::newRow("turns: question after the context")
            << "turns"
            << "segment:question" << 60 << false << "end of question, 60";
        QTest::newRow("plain default") << "plain"
                                       << "default" << 744 << false << "before the last 256: 744";
        QTest::newRow("short default") << "short"
                                       << "default" << 6 << false << "before the last 5: 6";
        QTest::newRow("one token") << "one"
                                   << "default" << 1 << true << "none, all 1 tokens seen";
        QTest::newRow("all is context") << "context"
                                        << "default" << 50 << false << "before the last 50: 50";
        QTest::newRow("questions only") << "questions"
                                        << "segment:question" << 5 << false << "end of question, 5";
    }

    void forms() {
        QFETCH(QString, capture);
        QFETCH(QString, text);
        QFETCH(int, token);
        QFETCH(bool, seen);
        QFETCH(QString, label);
        const std::map<QString, MemoryCapture> captures = {
            {"needle", needle()},
            {"turns", turns()},
            {"plain", captureOf(1000)},
            {"short", captureOf(11)},
            {"one", captureOf(1)},
            {"context", captureOf(100, {{0, 100, Kind::Context}})},
            {"questions", captureOf(20, {{8, 12, Kind::Question}, {2, 5, Kind::Question}})}};
        const Cut cut = Cut::resolve(text.toStdString(), captures.at(capture));
        QCOMPARE(cut.text, text.toStdString());
        QCOMPARE(cut.token, token);
        QCOMPARE(cut.evaluatedOnSeen, seen);
        QCOMPARE(QString::fromStdString(cut.label), label);
    }

    void refusals_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("sentence");
        QTest::addColumn<QString>("remedy");
        QTest::newRow("end") << "1028"
                             << "no evaluation queries"
                             << "'none'";
        QTest::newRow("beyond") << "1029"
                                << "outside the capture of 1028 tokens"
                                << "1 to 1027";
        QTest::newRow("far beyond") << "99999999999999999999"
                                    << "outside the capture"
                                    << "1 to 1027";
        QTest::newRow("zero") << "0"
                              << "nothing to see"
                              << "1 to 1027";
        QTest::newRow("negative") << "-3"
                                  << "nothing to see"
                                  << "1 to 1027";
        QTest::newRow("all evaluate") << "last:1028"
                                      << "nothing to see"
                                      << "1 to 1027";
        QTest::newRow("none evaluates") << "last:0"
                                        << "no evaluation queries"
                                        << "'none'";
        QTest::newRow("no count") << "last:"
                                  << "how many"
                                  << "last:256";
        QTest::newRow("half a token") << "last:2.5"
                                      << "how many"
                                      << "last:256";
        QTest::newRow("segment at the end") << "segment:answer"
                                            << "no evaluation queries"
                                            << "'none'";
        QTest::newRow("absent kind") << "segment:system"
                                     << "it has: context, needle, question, answer"
                                     << "last:256";
        QTest::newRow("unknown kind") << "segment:contxt"
                                      << "no kind of segment"
                                      << "'context'";
        QTest::newRow("unknown form") << "end"
                                      << "no form"
                                      << "segment:context";
        QTest::newRow("empty") << ""
                               << "no form"
                               << "segment:context";
        QTest::newRow("number and more") << "12x"
                                         << "no form"
                                         << "segment:context";
    }

    void refusals() {
        QFETCH(QString, text);
        QFETCH(QString, sentence);
        QFETCH(QString, remedy);
        const Error::Parts refused = errorParts([&] { Cut::resolve(text.toStdString(), needle()); });
        QVERIFY2(refused.sentence.find(sentence.toStdString()) != std::string::npos, refused.sentence.c_str());
        QVERIFY2(refused.remedy.find(remedy.toStdString()) != std::string::npos, refused.remedy.c_str());
        QCOMPARE(refused.place, std::string("cut"));
        QCOMPARE(refused.path, std::string("some.h5"));
    }

    void oneTokenHasNoOtherCut() {
        for (const char* text : {"0", "1", "2", "last:1"}) {
            const Error::Parts refused = errorParts([&] { Cut::resolve(text, captureOf(1)); });
            QVERIFY2(refused.remedy.starts_with("Give 'none' to evaluate"), refused.sentence.c_str());
        }
    }
};

KVSCOPE_TEST(CutTest)
#include "cut_test.moc"
