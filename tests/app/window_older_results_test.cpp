// While a pane's result is older than its settings, no number and no file passes it off as the result of the settings.
#include "app/window/actions/window_actions.h"
#include "app/window/panels/metrics_table.h"
#include "app/window/panels/status_line.h"
#include "core/lists/selection_file.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/window_fixture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QPushButton>
#include <QSettings>
#include <QTableView>
#include <QTemporaryDir>
#include <QTimer>

#include <algorithm>
#include <chrono>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::OpenWindow;

class WindowOlderResultsTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    static void exportList(OpenWindow& open, const QString& path, int what = 1) {
        QTimer::singleShot(0, qApp, [&] {
            auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
            QVERIFY(dialog);
            dialog->findChild<QComboBox*>()->setCurrentIndex(what);
            answerFileDialog(path);
            QTest::mouseClick(dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save), Qt::LeftButton);
        });
        open.window.actions()->byName("export")->trigger();
        open.finish();
    }
    /// Pane A keeps its result, which is older than the cut from then on.
    static void cancelAnotherCut(OpenWindow& open) {
        open.bench.change([](Session& s) { s.cut = "last:100"; }, "Cut");
        open.bench.cancelPane(0);
        open.finish();
        const PaneData pane = open.bench.viewInput().panes[0];
        QVERIFY(pane.result && pane.outdated && !pane.computing);
    }

private slots:
    void initTestCase() { QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs); }
    void init() { QSettings().clear(); }

    // What the session asks for now is written, of all layers or of the shown one, as the command in the file does it.
    void noOlderListIsWrittenAsTheSessions() {
        OpenWindow open;
        cancelAnotherCut(open);
        for (const int what : {1, 2}) {
            const QString path = m_folder.filePath(QString("now%1.json").arg(what));
            exportList(open, path, what);
            QVERIFY2(open.until([&] { return QFileInfo::exists(path); }),
                     qPrintable(open.window.notices().messages().join('|')));
            open.finish();
            const RecordedSelection list = readSelection(path.toStdString());
            QCOMPARE(list.cutToken, TokenIndex(928));                     // last:100 of 1,028
            QCOMPARE(list.heads.size(), std::size_t(what == 1 ? 12 : 2)); // 2 KV heads in each of 6 layers
            QCOMPARE(list.command.find("--layers 3") == std::string::npos, what == 1);
        }
    }

    void withoutPanesThereIsNoListToWrite() {
        OpenWindow open;
        open.bench.change([](Session& s) { s.panes.clear(); }, "Remove panes");
        open.arrange();
        open.strip()->setFocus();
        const QString path = m_folder.filePath("none.json");
        exportList(open, path);
        QVERIFY(!QFileInfo::exists(path));
        QCOMPARE(open.window.notices().messages().filter("no pane").size(), 1);
    }

    void noOlderNumberStandsUnderAnotherPolicysName() {
        OpenWindow open;
        auto* table = open.window.findChild<MetricsTable*>()->findChild<QTableView*>();
        const auto cell = [&](int column) { return table->model()->index(0, column).data().toString(); };
        const QString error = cell(1);
        QVERIFY(open.window.statusLine()->text().contains(" · N "));
        open.bench.change([](Session& s) { s.panes[0].policy = PolicySpec::parse("tova"); }, "Policy");
        QVERIFY(open.bench.viewInput().panes[0].outdated);
        QVERIFY(cell(0).contains("TOVA"));
        for (int column = 1; column < table->model()->columnCount(); ++column) QCOMPARE(cell(column), QString("–"));
        const QString line = open.window.statusLine()->text();
        QVERIFY2(line.contains("TOVA") && !line.contains(" · N ") && !line.contains("kept by A"), qPrintable(line));
        open.waitForResults();
        QVERIFY(cell(1) != "–" && cell(1) != error);
        QVERIFY(open.window.statusLine()->text().contains(" · N "));
    }

    void aCancelledLayerSaysSo() {
        OpenWindow open;
        open.bench.change([](Session& s) { s.layer = LayerIndex(1); }, "Layer");
        open.bench.cancelPane(0);
        open.settle();
        const PaneData pane = open.bench.viewInput().panes[0];
        QVERIFY2(pane.error.starts_with("Cancelled"), pane.error.c_str());
        const auto texts = kvscope::scene_checks::textsOf(open.pane(0)->canvas()->canvas()->scene());
        QVERIFY(std::ranges::any_of(texts, [](const auto& text) { return text.starts_with("Cancelled"); }));
        open.bench.undo();
        open.waitForResults();
        QVERIFY(open.bench.viewInput().panes[0].error.empty());
    }

    void nothingIsCancelledTwice() {
        OpenWindow open;
        open.settle();
        const auto* note = open.pane(0)->canvas()->findChild<QLabel*>("pictureNote");
        open.bench.change([](Session& s) { s.cut = "last:100"; }, "Cut");
        open.arrange(); // no result arrives
        open.clock.advance(std::chrono::milliseconds(200));
        QVERIFY2(note->isVisible() && note->text().contains("Esc cancels"), qPrintable(note->text()));
        open.bench.cancelPane(0);
        open.settle();
        QVERIFY2(note->isVisible() && note->text() == "drawn: 248 tokens", qPrintable(note->text()));
    }
};

KVSCOPE_WINDOW_TEST(WindowOlderResultsTest)
#include "window_older_results_test.moc"
