// Reads every source of the repository and fails on the first include that runs the wrong way, on files that grew too
// long, and on folders without a page of their own.
#include "tests/architecture/source_tree.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QDirIterator>
#include <QFileInfo>
#include <QtTest>

#include <algorithm>

using namespace kvscope::architecture;

namespace {

const QString kRoot = QString::fromStdString(kvscope::testing::sourceDir());
const QStringList kProduct = {"core", "gpu", "views", "app"};
constexpr int kHeaderLines = 170; // about 150
constexpr int kSourceLines = 420; // about 400

/// Such a folder has the page that the program shows: x_view.md.
bool isOneView(const QString& folder) {
    return QFileInfo::exists(kRoot + "/" + folder + "/" + folder.section('/', -1) + "_view.md");
}

/// Quoted names in a line of code; comments do not count.
QStringList quotedIn(QString line) {
    line.remove(QRegularExpression("//.*"));
    static const QRegularExpression quoted("\"([a-z][a-z0-9_]*)[\":@,](?! )");
    QStringList names;
    for (auto found = quoted.globalMatch(line); found.hasNext();) names << found.next().captured(1);
    return names;
}

/// Ids of the policies or views below `folder`, which are the names of their pages, and the folders of these.
QMap<QString, QString> foldersOfIds(const QString& folder, const QString& suffix) {
    QMap<QString, QString> folders;
    QDirIterator pages(kRoot + "/" + folder, {"*" + suffix + ".md"}, QDir::Files, QDirIterator::Subdirectories);
    while (pages.hasNext()) {
        const QString path = pages.next().mid(kRoot.size() + 1), name = path.section('/', -1);
        if (name != "README.md") folders[name.chopped(suffix.size() + 3)] = path.section('/', 0, -2);
    }
    return folders;
}

/// Quoted ids outside the folder of their card, below none of the `allowed` paths. Ids that also name a measure, a part
/// of a score or a picture are not looked for.
QStringList idsOutside(const QMap<QString, QString>& folders, const QStringList& allowed) {
    static const QStringList words = {"exact",  "score",   "leverage",    "key_norm",        "theory",
                                      "curves", "overlap", "calibration", "error_difference"};
    QStringList wrong;
    for (const SourceFile& source : readSources(kRoot, kProduct)) {
        const auto holds = [&](const QString& start) { return source.path.startsWith(start); };
        if (std::any_of(allowed.begin(), allowed.end(), holds)) continue;
        for (const QString& line : source.lines)
            for (const QString& id : quotedIn(line))
                if (folders.contains(id) && !words.contains(id) && !holds(folders[id] + "/"))
                    wrong << source.path + " names " + id;
    }
    wrong.removeDuplicates();
    return wrong;
}

} // namespace

class ArchitectureTest : public QObject {
    Q_OBJECT

private slots:
    void rulesRefuseWhatTheyShould_data() {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("target");
        QTest::addColumn<bool>("allowed");
        QTest::newRow("core sees Qt") << "core/run/run.cpp"
                                      << "QString" << false;
        QTest::newRow("core sees views") << "core/run/run.cpp"
                                         << "views/view.h" << false;
        QTest::newRow("policy sees engine") << "core/policies/baselines/tova.cpp"
                                            << "core/engine/engine.h" << true;
        QTest::newRow("policy sees the CPU engine") << "core/policies/baselines/tova.cpp"
                                                    << "core/engine/cpu/rows.h" << false;
        QTest::newRow("policy sees Eigen") << "core/policies/baselines/tova.cpp"
                                           << "Eigen/Dense" << false;
        QTest::newRow("capture sees policies") << "core/capture/doctor.cpp"
                                               << "core/policies/policy.h" << false;
        QTest::newRow("view sees app") << "views/view.h"
                                       << "app/study/session.h" << false;
        QTest::newRow("scene sees imgui") << "views/scene/scene.cpp"
                                          << "imgui.h" << false;
        QTest::newRow("painter sees imgui") << "views/imgui/painter.cpp"
                                            << "imgui.h" << true;
        QTest::newRow("run sees HDF5") << "core/lists/selection_file.cpp"
                                       << "hdf5.h" << false;
        QTest::newRow("engine sees run") << "core/engine/cpu/rows.cpp"
                                         << "core/run/run.h" << false;
        QTest::newRow("canvas sees a panel") << "app/window/canvas/view_canvas.cpp"
                                             << "app/window/panels/top_bar.h" << false;
        QTest::newRow("panel sees the canvas") << "app/window/panels/top_bar.cpp"
                                               << "app/window/canvas/view_canvas.h" << true;
        QTest::newRow("action sees the window") << "app/window/actions/tour.cpp"
                                                << "app/window/main_window.h" << false;
        QTest::newRow("a worker's client sees the session") << "app/live/live_client.cpp"
                                                            << "app/study/session.h" << false;
        QTest::newRow("app sees run") << "app/study/session.cpp"
                                      << "core/run/run.h" << true;
    }

    void rulesRefuseWhatTheyShould() {
        QFETCH(QString, path);
        QFETCH(QString, target);
        QFETCH(bool, allowed);
        QCOMPARE(violation(path, target).isEmpty(), allowed);
    }

    void includesAreReadFromTheText() {
        QCOMPARE(includesOf({"#include <QString>", "  #  include \"core/base/error.h\"", "// #include <torch/x.h>"}),
                 QStringList({"QString", "core/base/error.h"}));
    }

    void everyArrowRunsTheRightWay() {
        const auto sources = readSources(kRoot, kProduct);
        QVERIFY2(sources.size() > 20, "the sources were not found");
        QStringList wrong;
        for (const SourceFile& source : sources)
            for (const QString& target : source.includes)
                if (const QString why = violation(source.path, target); !why.isEmpty())
                    wrong << source.path + " includes " + target + ": " + why;
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void circlesAreFound_data() {
        QTest::addColumn<QStringList>("includes"); // "path: target target"
        QTest::addColumn<QStringList>("circles");
        QTest::newRow("none") << QStringList{"a/x.cpp: a/x.h a/y.h", "a/x.h:", "a/y.h: a/z.h", "a/z.h:"}
                              << QStringList{};
        QTest::newRow("its own header is no circle") << QStringList{"a/x.cpp: a/x.h", "a/x.h:"} << QStringList{};
        QTest::newRow("two, through their sources")
            << QStringList{"a/x.cpp: b/y.h", "a/x.h:", "b/y.cpp: a/x.h", "b/y.h:"} << QStringList{"a/x b/y"};
        QTest::newRow("three, and one that only leads there")
            << QStringList{"w.h: x.h", "x.h: y.h", "y.h:", "y.cpp: z.h", "z.h: x.h"} << QStringList{"x y z"};
        QTest::newRow("two apart") << QStringList{"a.h: b.h", "b.h: a.h c.h", "c.h: d.h", "d.h: c.h"}
                                   << QStringList{"c d", "a b"};
        QTest::newRow("one folder's name begins another's")
            << QStringList{"a/x.h: ab/x.h", "ab/x.h: string"} << QStringList{};
    }

    void circlesAreFound() {
        QFETCH(QStringList, includes);
        QFETCH(QStringList, circles);
        std::vector<SourceFile> sources;
        for (const QString& line : includes)
            sources.push_back({line.section(':', 0, 0), {}, line.section(':', 1).split(' ', Qt::SkipEmptyParts)});
        QStringList found;
        for (const QStringList& circle : circlesIn(unitGraph(sources))) found << circle.join(' ');
        QCOMPARE(found, circles);
    }

    void noTwoSourcesIncludeEachOtherInACircle() {
        QStringList wrong;
        for (const QStringList& circle : circlesIn(unitGraph(readSources(kRoot, kProduct)))) wrong << circle.join(", ");
        QVERIFY2(wrong.isEmpty(), qPrintable("circles:\n" + wrong.join('\n')));
    }

    void theContractOfPoliciesKnowsNoFamily() {
        QStringList wrong;
        for (const SourceFile& source : readSources(kRoot, {"core/policies"}))
            for (const QString& target : source.includes)
                if (source.path.count('/') == 2 && target.startsWith("core/policies/") && target.count('/') > 2)
                    wrong << source.path + " includes " + target;
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void viewsHaveNoEngineCallsThreadsOrClocks() {
        QStringList wrong;
        for (const SourceFile& source : readSources(kRoot, {"views"}))
            for (const QString& target : source.includes)
                if (QStringList({"thread", "mutex", "chrono", "atomic", "future", "tbb/tbb.h"}).contains(target))
                    wrong << source.path + " includes <" + target + ">";
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    /// A fixed wait is too short on a busy machine and too long on every other.
    void noTestWaitsForATime() {
        const QRegularExpression wait("\\b(qWait|qSleep|msleep|usleep|sleep_for|sleep_until)\\(|singleShot\\([1-9]");
        QVERIFY(wait.match("QTest::qWait(20)").hasMatch() && !wait.match("QTest::qWaitFor(ready)").hasMatch());
        QStringList wrong;
        for (const SourceFile& source : readSources(kRoot, {"tests"}))
            for (const QString& line : source.lines)
                if (wait.match(line).hasMatch() && !source.path.startsWith("tests/architecture/"))
                    wrong << source.path + ": " + line.trimmed();
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    /// Clang 14 cannot read GCC 12's subranges, and algorithms of ranges that return one.
    void noSubrangeIsMade() {
        const QRegularExpression made("\\branges::(search|search_n|find_end|unique|equal_range|rotate|partition|"
                                      "stable_partition|remove|remove_if|subrange)\\b|\\bviews::");
        QVERIFY(made.match("std::ranges::search(a, b)").hasMatch() && !made.match("ranges::find_if(a)").hasMatch());
        QStringList wrong;
        for (const SourceFile& source : readSources(kRoot, kProduct + QStringList{"tests"}))
            for (const QString& line : source.lines)
                if (made.match(line).hasMatch() && !source.path.startsWith("tests/architecture/"))
                    wrong << source.path + ": " + line.trimmed();
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void theWorkbenchAsksItsClockForTheTime() {
        QStringList wrong;
        for (const SourceFile& source : readSources(kRoot, {"app/workbench"}))
            for (const QString& target : source.includes)
                if (QStringList({"QTimer", "QBasicTimer", "QElapsedTimer", "QDateTime"}).contains(target) &&
                    source.path != "app/workbench/clock.cpp")
                    wrong << source.path + " includes <" + target + ">";
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void filesStaySmall() {
        QStringList wrong;
        for (const SourceFile& source : readSources(kRoot, kProduct + QStringList{"tests"})) {
            const int limit = source.path.endsWith(".h") ? kHeaderLines : kSourceLines;
            if (source.lines.size() > limit)
                wrong
                    << QString("%1 has %2 lines, the limit is %3").arg(source.path).arg(source.lines.size()).arg(limit);
        }
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void everyHeaderIsGuardedAndEverySourceOpensWithAComment() {
        QStringList wrong;
        for (const SourceFile& source : readSources(kRoot, kProduct)) {
            const QString first = source.lines.value(0);
            if (source.path.endsWith(".h") ? first != "#pragma once" : !first.startsWith("//"))
                wrong << source.path + " opens with \"" + first + '"';
        }
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void everyFolderOpensWithAPage() {
        QStringList wrong;
        for (const QString& top : kProduct + QStringList{"resources", "sample_data", "tests"})
            if (!QFileInfo::exists(kRoot + "/" + top + "/README.md")) wrong << top;
        for (const QString& top : kProduct) {
            QDirIterator folders(kRoot + "/" + top, QDir::Dirs | QDir::NoDotAndDotDot, QDirIterator::Subdirectories);
            while (folders.hasNext()) {
                const QString folder = folders.next();
                const bool hasSources = !QDir(folder).entryList({"*.h", "*.cpp", "*.cu"}, QDir::Files).isEmpty();
                const QString path = folder.mid(kRoot.size() + 1);
                if (hasSources && !isOneView(path) && !QFileInfo::exists(folder + "/README.md")) wrong << path;
            }
        }
        QVERIFY2(wrong.isEmpty(), qPrintable("without README.md: " + wrong.join(", ")));
    }

    void noViewIsKnownByItsIdElsewhere() {
        const auto folders = foldersOfIds("views", "_view");
        QVERIFY(folders.size() > 20);
        const QStringList wrong =
            idsOutside(folders, {"app/study/makers/",                   // whose data they make
                                 "app/command_line/live_command.cpp",   // draws the answers' own figures
                                 "app/command_line/plot_command.cpp"}); // drawn unless another is asked for
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void noPolicyIsKnownByItsIdElsewhere() {
        const auto folders = foldersOfIds("core/policies", "");
        QVERIFY(folders.size() > 16);
        const QStringList wrong = idsOutside(folders, {"core/policies/",            // variants are named after papers
                                                       "core/studies/reproduction", // what papers compare
                                                       "views/common/policy_style.cpp", // chosen colours
                                                       "app/study/session.cpp",         // panes of a first session
                                                       "app/python/module.cpp"});
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
    }

    void everyPolicyAndViewHasItsPage() {
        QStringList wrong;
        int cards = 0;
        for (const QString& folder : {QString("core/policies"), QString("views")}) {
            QDirIterator files(kRoot + "/" + folder, {"*.cpp"}, QDir::Files, QDirIterator::Subdirectories);
            while (files.hasNext()) {
                QFile file(files.next());
                if (!file.open(QIODevice::ReadOnly)) continue;
                const QString text = QString::fromUtf8(file.readAll());
                const bool isCard =
                    text.contains(": public Policy {") || QRegularExpression(": public View\\b").match(text).hasMatch();
                const QString page = QFileInfo(file).path() + "/" + QFileInfo(file).completeBaseName() + ".md";
                cards += isCard ? 1 : 0;
                if (isCard && !QFileInfo::exists(page)) wrong << page.mid(kRoot.size() + 1);
            }
        }
        QVERIFY2(wrong.isEmpty(), qPrintable("missing: " + wrong.join(", ")));
        QVERIFY2(cards > 30, qPrintable(QString::number(cards)));
    }

    void topLevelIsAsAgreed() {
        const QStringList allowed = {"CMakeLists.txt", "app",
                                     "core",           "gpu",
                                     "views",          "resources",
                                     "tests",          "sample_data",
                                     "README.md",      "CMakePresets.json",
                                     "LICENSE",        "CONTRIBUTING.md",
                                     "build"};
        for (const QString& entry : QDir(kRoot).entryList(QDir::AllEntries | QDir::NoDotAndDotDot))
            QVERIFY2(allowed.contains(entry), qPrintable("unexpected at the top level: " + entry));
    }
};

KVSCOPE_TEST(ArchitectureTest)
#include "architecture_test.moc"
