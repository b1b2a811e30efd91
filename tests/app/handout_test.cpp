// Handouts of lessons: what is on the pages is read from the PDF by a program of others.
#include <QtTest>

#include "app/report/handout.h"
#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"
#include "views/view.h"

#include <QFile>
#include <QProcess>
#include <QTemporaryDir>

using namespace kvscope;

namespace {

const QString kLessons = QString::fromStdString(kvscope::testing::sourceDir() + "/resources/lessons");

QString textOf(const QString& pdf) {
    QProcess reader;
    reader.start("pdftotext", {"-layout", pdf, "-"});
    reader.waitForFinished();
    return QString::fromUtf8(reader.readAllStandardOutput());
}

QStringList pagesOf(const QString& pdf) {
    QStringList pages = textOf(pdf).split('\f', Qt::SkipEmptyParts);
    for (QString& page : pages) page = page.simplified();
    return pages;
}

QStringList linesOf(const QString& pdf) {
    QStringList lines = textOf(pdf).split('\n');
    for (QString& line : lines) line = line.simplified();
    lines.removeAll(QString());
    return lines;
}

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

class HandoutTest : public QObject {
    Q_OBJECT

    kvscope::testing::Program m_program;

    /// The path of a lesson of the program in the folder, where each first text is replaced by its second.
    static QString changedLesson(const QTemporaryDir& folder, const QString& lesson,
                                 const QList<std::pair<QByteArray, QByteArray>>& changes) {
        QByteArray text = contentOf(kLessons + "/" + lesson + ".kvscope");
        const QByteArray root = QByteArray::fromStdString(kvscope::testing::sourceDir());
        text.replace("\"../../sample_data/", "\"" + root + "/sample_data/");
        for (const auto& [from, to] : changes) {
            if (!text.contains(from)) qFatal("%s is not in %s", from.constData(), qPrintable(lesson));
            text.replace(text.indexOf(from), from.size(), to);
        }
        QFile file(folder.filePath("changed.kvscope"));
        if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size()) qFatal("cannot write the lesson");
        return file.fileName();
    }

private slots:
    void textsPicturesQuestionsAndLastTheAnswers() {
        QTemporaryDir folder;
        const QString out = folder.filePath("course.pdf");
        const QStringList command{"handout", kLessons + "/blocks.kvscope", kLessons + "/keydiff.kvscope", "--out", out};
        const auto done = m_program.run(command);
        QVERIFY2(done.code == 0, done.error);
        const QStringList pages = pagesOf(out);
        QVERIFY(pages.size() >= 4);
        QVERIFY2(pages.first().contains("Processing a prompt in blocks") &&
                     pages.first().contains("A long prompt does not fit"),
                 qPrintable(pages.first()));
        QVERIFY(pages.first().contains("Tokens processed")); // the axis of the first stop's picture
        const QString before = pages.mid(0, pages.size() - 1).join(' ');
        for (const char* text : {"Which share is it when every token", "☐ More than half", "Keys that point elsewhere",
                                 "5. Back to KeyDiff in blocks of 128"})
            QVERIFY2(before.contains(text), text);
        // Neither the answers nor the findings that give them away stand before the last page.
        for (const char* answer : {"61.5 %", "459 of 746", "37.3 %"}) QVERIFY2(!before.contains(answer), answer);
        QVERIFY2(pages.last().startsWith("Answers") && pages.last().contains("61.5 %") &&
                     pages.last().contains("37.3 %"),
                 qPrintable(pages.last()));
        const QByteArray first = contentOf(out);
        QCOMPARE(m_program.run(command).code, 0);
        QVERIFY(first == contentOf(out));
    }

    void aFolderGivesAllItsLessons() {
        QTemporaryDir folder;
        const QString out = folder.filePath("course.pdf");
        QCOMPARE(m_program.run({"handout", kLessons, "--out", out}).code, 0);
        const QString all = pagesOf(out).join(' ');
        for (const LessonFile& file : lessonsIn(kLessons.toStdString()))
            QVERIFY2(all.count(QString::fromStdString(file.lesson.title)) >= 2, file.lesson.title.c_str());
        // What is said of a picture stands on the picture's page.
        for (const QString& page : pagesOf(out))
            for (const View* view : allViews())
                QVERIFY2(!page.startsWith(QString::fromStdString(view->card().name) + ". "), qPrintable(page));
    }

    /// The answer was recorded from a model that does not run here.
    void recordedNumbersAreCalledSo() {
        QTemporaryDir folder;
        const QString out = folder.filePath("answer.pdf");
        QCOMPARE(m_program.run({"handout", kLessons + "/answer.kvscope", "--out", out}).code, 0);
        QVERIFY2(pagesOf(out).last().contains("(recorded from the model)"), qPrintable(pagesOf(out).last()));
    }

    /// It comes to the second choice.
    void noChoiceIsExplainedThatTheNumberDoesNotFallInto() {
        QTemporaryDir folder;
        const QString out = folder.filePath("claim.pdf");
        const QString path = changedLesson(folder, "keydiff", {{"\"claim\": 1", "\"claim\": 2"}});
        const auto done = m_program.run({"handout", path, "--out", out});
        QVERIFY2(done.code == 0, done.error);
        const QString answers = pagesOf(out).last();
        QVERIFY2(answers.contains("The lesson explains another choice: 60 % or more"), qPrintable(answers));
        QVERIFY2(answers.contains("37.3 %") && !answers.contains("SnapKV"), qPrintable(answers));
    }

    /// Titles, stops, questions and choices are no Markdown, whatever they begin with.
    void plainTextsStayAsTheyAre() {
        QTemporaryDir folder;
        const QString out = folder.filePath("plain.pdf");
        const QByteArray text = R"(3. KeyDiff\n  - ~~a~~ &amp; b\n+ www.c.de d@e.fg\n\n2. d\n===\n12. e *f*)";
        const QString path =
            changedLesson(folder, "keydiff", {{"A KeyDiff: minus the cosine between key and anchor.", text}});
        const auto done = m_program.run({"handout", path, "--out", out});
        QVERIFY2(done.code == 0, done.error);
        const QString lines = linesOf(out).join('|');
        QVERIFY2(lines.contains("1. 3. KeyDiff|- ~~a~~ &amp; b|+ www.c.de d@e.fg|2. d|===|12. e *f*|"),
                 qPrintable(lines));
    }

    /// Another head would give another answer without a word.
    void headsThatAreNotThere_data() {
        QTest::addColumn<QByteArray>("from");
        QTest::newRow("question") << QByteArray("\"answer\":");
        QTest::newRow("stop") << QByteArray("\"text\": \"B SnapKV");
        QTest::newRow("start") << QByteArray("\"kv_head\": 0,");
    }
    void headsThatAreNotThere() {
        QFETCH(QByteArray, from);
        QTemporaryDir folder;
        const QString out = folder.filePath("other.pdf");
        const QByteArray more = from.startsWith("\"kv_head") ? QByteArray() : from;
        const QString path = changedLesson(folder, "keydiff", {{from, "\"kv_head\": 77, " + more}});
        const auto refused = m_program.run({"handout", path, "--out", out});
        QVERIFY2(refused.code == 2 && refused.error.contains("no KV head 77"), refused.error);
        QVERIFY(!QFile::exists(out));
    }

    void whatIsNoLessonIsRefused() {
        QTemporaryDir folder;
        const QString out = folder.filePath("course.pdf");
        const QString sample = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
        for (const QStringList& wrong : {QStringList{"handout", sample, "--out", out},
                                         {"handout", folder.path(), "--out", out},
                                         {"handout", kLessons + "/blocks.kvscope", "--out", folder.filePath("x.html")},
                                         {"handout", kLessons + "/nowhere.kvscope", "--out", out}}) {
            const auto refused = m_program.run(wrong);
            QVERIFY2(refused.code == 2, refused.error);
            QVERIFY(!QFile::exists(out));
        }
    }
};

KVSCOPE_CORE_TEST(HandoutTest)
#include "handout_test.moc"
