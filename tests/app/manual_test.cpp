// What the program prints works: every command in the manual, the README, an explanation, a help text or the list of
// reproductions that needs nothing but the samples runs, and so does the command that its file carries. Every picture
// of the manual is what the command above it draws (KVSCOPE_UPDATE_MANUAL=1 or resources/dev/manual_pictures.sh makes
// them again), and every link leads somewhere.
#include <QTest>

#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QDirIterator>
#include <QRegularExpression>
#include <QSet>

using kvscope::testing::Program;

namespace {

const QString kRoot = QString::fromStdString(kvscope::testing::sourceDir());
const QString kManual = kRoot + "/resources/manual/";
constexpr qint64 kMostPictureBytes = 700'000; // of all together: they live in git

QString textOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

/// Headings as GitHub and the program name them: "### B7" is #b7.
QStringList anchorsOf(const QString& page) {
    QStringList anchors;
    for (const QString& line : textOf(kManual + page).split('\n'))
        if (line.startsWith('#')) anchors << '#' + line.section(' ', 1).toLower().replace(' ', '-');
    return anchors;
}

QStringList pages() { return QDir(kManual).entryList({"*.md"}, QDir::Files, QDir::Name); }

/// Commands in a text, without the program's name: lines that start with it, `kvscope ...` and [kvscope ...].
QStringList commandsIn(const QString& text) {
    static const QRegularExpression kCommand(
        R"re((?:^|\n) *kvscope ([^\n]+)|`kvscope ([^`\n]+)`|kvscope ([^\]\n]+)\])re");
    QStringList commands;
    auto found = kCommand.globalMatch(text);
    while (found.hasNext()) {
        const auto match = found.next();
        commands << match.captured(match.lastCapturedIndex()).replace("CAPTURE", "sample_data/needle-1k.h5");
    }
    return commands;
}

/// Place and text of everything in which the program or its manual prints commands.
QList<std::pair<QString, QString>> printedTexts() {
    QList<std::pair<QString, QString>> texts = {{"README.md", textOf(kRoot + "/README.md")}};
    for (const QString& page : pages()) texts.append({page, textOf(kManual + page)});
    for (const char* top : {"/core/policies", "/views", "/resources/lessons"}) {
        QDirIterator files(kRoot + top, {"*.md", "*.kvscope"}, QDir::Files, QDirIterator::Subdirectories);
        while (files.hasNext()) {
            const QString path = files.next();
            texts.append({QFileInfo(path).fileName(), textOf(path)});
        }
    }
    const Program program;
    texts.append({"reproduce --list", QString::fromUtf8(program.run({"reproduce", "--list"}).out)});
    const QString help = QString::fromUtf8(program.run({"--help"}).out);
    static const QRegularExpression kSubcommand(R"re(\n  ([a-z]+) )re");
    auto found = kSubcommand.globalMatch(help);
    while (found.hasNext()) {
        const QString name = found.next().captured(1);
        texts.append({name + " --help", QString::fromUtf8(program.run({name, "--help"}).out)});
    }
    return texts;
}

/// A figure without the bytes of its fonts, which other versions of HarfBuzz write in another order.
QByteArray withoutFonts(const QByteArray& svg) {
    static const QRegularExpression kFont(R"re(url\(data:font[^)]*\))re");
    return QString::fromUtf8(svg).remove(kFont).toUtf8();
}

/// Words as a shell would give them; the manual quotes with '...' and "..." only.
QStringList wordsOf(const QString& command) {
    QStringList words;
    static const QRegularExpression kWord(R"(\x27([^\x27]*)\x27|\x22([^\x22]*)\x22|(\S+))"); // quotes would stop moc
    auto found = kWord.globalMatch(command.section("  #", 0, 0));
    while (found.hasNext()) {
        const auto word = found.next();
        words << word.captured(word.lastCapturedIndex());
    }
    return words;
}

/// A command that the samples are enough for; `kvscope FILE` would open a window, and FILE or SPEC stand for others.
bool needsOnlySamples(const QStringList& words) {
    static const QStringList kCommands = {"plot",    "evict",  "measure",   "sweep",  "synth",  "reproduce",
                                          "inspect", "theory", "calibrate", "report", "convert"};
    static const QStringList kAlone = {"policies", "measures", "views"}; // the others' names alone are no commands
    static const QRegularExpression kPlaceholder(R"re(^[A-Z_]{3,}|^\[|\.\.\.|cuda|scores\.h5)re");
    if (words.size() == 1) return kAlone.contains(words.front());
    if (!words.filter(kPlaceholder).isEmpty()) return false;
    if (words.size() == 2 && words.front() == "schema") return true;
    return kCommands.contains(words.value(0)) && (words.front() == "synth" || words.contains("--help") ||
                                                  words.contains("--list") || words.filter("sample_data/").size() > 0);
}

/// The command that a figure or a table carries; empty: none.
QString commandOf(const QByteArray& file) {
    static const QRegularExpression kCommand(R"re((?:<desc>|# command: )kvscope ([^<\n]+))re");
    QString command = kCommand.match(QString::fromUtf8(file)).captured(1);
    const std::pair<const char*, const char*> marks[] = {{"&quot;", "\""}, {"&apos;", "'"}, {"&#39;", "'"},
                                                         {"&lt;", "<"},    {"&gt;", ">"},   {"&amp;", "&"}};
    for (const auto& [escaped, mark] : marks) command.replace(escaped, mark);
    return command;
}

} // namespace

class ManualTest : public QObject {
    Q_OBJECT

private slots:
    void everyCommandRuns_data() {
        QTest::addColumn<QString>("command");
        QSet<QString> seen;
        int listed = 0;
        for (const auto& [place, text] : printedTexts())
            for (const QString& command : commandsIn(text)) {
                if (seen.contains(command) || !needsOnlySamples(wordsOf(command))) continue;
                seen << command;
                listed += place == "reproduce --list" ? 1 : 0;
                QTest::addRow("%s: %s", qPrintable(place), qPrintable(command.left(60))) << command;
            }
        QVERIFY2(listed >= 12 && seen.size() >= 40, qPrintable(QString("%1, %2").arg(listed).arg(seen.size())));
    }

    void everyCommandRuns() {
        QFETCH(QString, command);
        const Program program;
        QVERIFY(QFile::link(kRoot + "/sample_data", program.at("sample_data")));
        QVERIFY(QDir(program.at("")).mkdir("pictures"));
        const QStringList words = wordsOf(command);
        const Program::Outcome outcome = program.run(words);
        QVERIFY2(outcome.code == 0, command.toUtf8() + "\n" + outcome.error);
        const qsizetype out = words.indexOf("--out") + 1;
        const QByteArray drawn = out > 0 ? program.content(words[out]) : QByteArray();
        QVERIFY2(out == 0 || words[out] == "-" || !drawn.isEmpty(), command.toUtf8());
        if (const QString carried = commandOf(drawn); !carried.isEmpty() && wordsOf(carried) != words) {
            const Program::Outcome again = program.run(wordsOf(carried));
            QVERIFY2(again.code == 0, carried.toUtf8() + "\n" + again.error);
            QVERIFY2(program.content(words[out]) == drawn, qPrintable("another file: " + carried));
        }
        if (!words.value(out).startsWith("pictures/")) return;
        const QString committed = kManual + words[out];
        QVERIFY(drawn.startsWith("<?xml") || drawn.startsWith("<svg"));
        if (qEnvironmentVariableIsSet("KVSCOPE_UPDATE_MANUAL")) {
            QFile file(committed);
            QVERIFY(file.open(QIODevice::WriteOnly) && file.write(drawn) == drawn.size());
            return;
        }
        QFile file(committed);
        QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(committed));
        QVERIFY2(withoutFonts(file.readAll()) == withoutFonts(drawn),
                 qPrintable(words[out] +
                            " is not what its command draws: run resources/dev/manual_pictures.sh and look at it"));
    }

    void everyPictureStandsBelowItsCommand() {
        const QRegularExpression picture(R"re(!\[[^\]]+\]\((pictures/[^)]+)\))re");
        QStringList shown;
        for (const QString& page : pages()) {
            const QString text = textOf(kManual + page);
            auto found = picture.globalMatch(text);
            while (found.hasNext()) {
                const auto match = found.next();
                shown << match.captured(1);
                const QString above = text.left(match.capturedStart()).trimmed();
                QVERIFY2(above.endsWith("```"), qPrintable(page));
                const QString command = above.chopped(3).trimmed().section('\n', -1);
                QVERIFY2(command.endsWith("--out " + match.captured(1)),
                         qPrintable(match.captured(1) + " below: " + command));
            }
        }
        shown.sort();
        QVERIFY(shown.size() >= 5);
        QStringList there;
        qint64 bytes = 0;
        for (const QFileInfo& file : QDir(kManual + "pictures").entryInfoList(QDir::Files, QDir::Name)) {
            there << "pictures/" + file.fileName();
            bytes += file.size();
        }
        QCOMPARE(there, shown); // none unused, none missing
        QVERIFY2(bytes < kMostPictureBytes, qPrintable(QString::number(bytes)));
    }

    void everyLinkLeadsSomewhere() {
        const QRegularExpression link(R"re(\]\(([^)#]*)(#[^)]*)?\))re");
        int links = 0;
        for (const QString& page : pages()) {
            auto found = link.globalMatch(textOf(kManual + page));
            while (found.hasNext()) {
                const auto match = found.next();
                const QString target = match.captured(1).isEmpty() ? page : match.captured(1);
                ++links;
                QVERIFY2(target.startsWith("https://") || QFile::exists(kManual + target),
                         qPrintable(page + ": " + target));
                QVERIFY2(match.captured(2).isEmpty() || anchorsOf(target).contains(match.captured(2)),
                         qPrintable(page + ": " + match.captured(0)));
            }
        }
        QVERIFY(links > 12);
        for (const QString& page : pages())
            QVERIFY2(page == "README.md" || textOf(kManual + "README.md").contains("(" + page + ")"),
                     qPrintable(page + " is in no list of contents"));
    }

    /// Every id such as (B7) in a text of the program has its paragraph, and no two share one.
    void everyTrapIdHasItsParagraph() {
        const QString page = textOf(kManual + "disagreements.md");
        const QRegularExpression id(R"(\b([ABCKLSX][0-9]{1,2})\b(?! norm))");
        QSet<QString> named;
        for (const char* top : {"/core", "/views", "/app", "/resources/lessons", "/resources/manual"}) {
            QDirIterator files(kRoot + top, {"*.cpp", "*.h", "*.md", "*.kvscope"}, QDir::Files,
                               QDirIterator::Subdirectories);
            while (files.hasNext()) {
                auto found = id.globalMatch(textOf(files.next()));
                while (found.hasNext()) named << found.next().captured(1);
            }
        }
        QVERIFY2(named.size() > 60, qPrintable(QString::number(named.size())));
        for (const QString& trap : std::as_const(named))
            QVERIFY2(page.count("\n### " + trap + "\n**") == 1, qPrintable("no paragraph, or two: " + trap));
    }

    /// What the manual says about files and options of the repository is there.
    void namedFilesExist() {
        const QRegularExpression path(R"re(`((?:resources|core|views|app|tests|sample_data)/[A-Za-z0-9_/.-]+))re");
        int files = 0;
        for (const QString& page : pages()) {
            auto found = path.globalMatch(textOf(kManual + page));
            while (found.hasNext()) {
                const QString named = found.next().captured(1);
                ++files;
                QVERIFY2(QFile::exists(kRoot + "/" + named), qPrintable(page + ": " + named));
            }
        }
        QVERIFY2(files > 12, qPrintable(QString::number(files)));
    }
};

KVSCOPE_CORE_TEST(ManualTest)
#include "manual_test.moc"
