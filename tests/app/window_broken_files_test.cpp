// Files that cannot be shown: the window says so in a strip with file, place and remedy, keeps what is open, and never
// asks in a modal box.
#include "app/window/actions/window_actions.h"
#include "core/capture/synthetic_capture.h"
#include "tests/app/window_fixture.h"
#include "tests/support/h5_edit.h"
#include "tests/support/scene_checks.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QFileInfo>
#include <QPushButton>
#include <QTemporaryDir>
#include <QToolButton>

#include <algorithm>
#include <fstream>
#include <functional>
#include <limits>

using namespace kvscope;
using h5_edit::replace;
using kvscope::testing::OpenWindow;

namespace {

using Breaker = std::function<void(const std::string& path)>;

struct Kind {
    const char* name;
    const char *sentence, *place; ///< what the strip must say
    Breaker breaker;
};

void overwrite(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::trunc) << text; }

std::vector<Kind> kinds() {
    return {
        {"not-hdf5", "not an HDF5 file", "", [](const std::string& p) { overwrite(p, "no capture at all"); }},
        {"empty", "not an HDF5 file", "", [](const std::string& p) { overwrite(p, ""); }},
        {"truncated", "may be truncated", "",
         [](const std::string& p) {
             QFile::resize(QString::fromStdString(p), QFileInfo(QString::fromStdString(p)).size() / 2);
         }},
        {"wrong-version", "has version 9", "version",
         [](const std::string& p) { h5_edit::setAttribute(p, "/", "version", std::int64_t{9}); }},
        {"no-tokens", "has no tokens", "tokens/ids",
         [](const std::string& p) { replace(p, "tokens/ids", std::vector<std::int32_t>{}); }},
        {"wrong-shape", "the shape is (2, 60, 16)", "layers/00/k",
         [](const std::string& p) {
             replace(p, "layers/00/k", std::vector<float>(2 * 60 * 16), {2, 60, 16});
         }},
        {"missing-values", "a data set is missing", "layers/01/v",
         [](const std::string& p) { h5_edit::removeObject(p, "layers/01/v"); }},
        {"bad-session", "", "",
         [](const std::string& p) { overwrite(p, R"({"format": "kvscope-session", "version": 99})"); }},
    };
}

} // namespace

class WindowBrokenFilesTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string soundFile(const std::string& name) {
        const SyntheticSpec spec{
            .tokens = 64, .layers = 2, .queryHeads = 4, .kvHeads = 2, .headDim = 16, .storedType = StoredType::Float32};
        const std::string path = m_folder.filePath(QString::fromStdString(name + ".h5")).toStdString();
        writeSyntheticCapture(spec, path, 0, false, {});
        return path;
    }

private slots:
    void whatAPaneCannotShowIsSaidOnceInIt() {
        OpenWindow open;
        open.window.openPath(QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/story-2k.h5"));
        open.finish(); // SnapKV: no query before the cut was captured
        QVERIFY(!open.bench.viewInput().panes.at(1).error.empty());
        const auto texts = kvscope::scene_checks::textsOf(open.pane(1)->canvas()->canvas()->scene());
        const auto says = [](const std::string& text) { return text.starts_with("SnapKV needs queries"); };
        QCOMPARE(std::ranges::count_if(texts, says), std::ptrdiff_t{1});
        for (const QLabel* label : open.pane(1)->findChildren<QLabel*>())
            QVERIFY(!label->text().contains("needs queries"));
    }

    void eachKindIsAStripAndLosesNothing() {
        OpenWindow open;
        for (const Kind& kind : kinds()) {
            const std::string path = soundFile(kind.name);
            kind.breaker(path);
            open.window.openPath(QString::fromStdString(path));
            const QString said = open.verdict();
            QVERIFY2(said.contains(QString(kind.name) + ".h5"), qPrintable(said));
            QVERIFY2(said.contains(kind.sentence) && said.contains(kind.place), qPrintable(said));
            QVERIFY2(said.size() > 40, qPrintable(said)); // a remedy follows
            QVERIFY(!QApplication::activeModalWidget());
            QCOMPARE(open.bench.capture()->info().fileName, std::string("needle-1k.h5"));
            QVERIFY(open.window.notices().isVisible() && open.window.notices().height() > 20);
            for (QToolButton* close : open.window.notices().findChildren<QToolButton*>()) close->click();
            QTRY_VERIFY(!open.window.notices().isVisible());
        }
    }

    /// Numbers are read with their layer: the capture opens, and one message says for all panes and views what is wrong
    /// with the layer and leads to another.
    void aBrokenLayerIsSaidOnceAndCanBeLeftOrSkipped() {
        OpenWindow open;
        const std::string path = soundFile("nan");
        std::vector<float> keys(2 * 64 * 16, 1.0f);
        keys[(1 * 64 + 37) * 16 + 5] = std::numeric_limits<float>::quiet_NaN();
        replace(path, "layers/01/k", keys, {2, 64, 16});
        open.window.openPath(QString::fromStdString(path));
        QVERIFY(open.until([&] { return open.bench.capture()->info().fileName == "nan.h5"; }));
        const auto layer = [&] { return open.bench.session().layer.value; };
        const auto press = [&](const QString& text) {
            QPushButton* button = open.noticeButton(text);
            QVERIFY2(button, qPrintable(text));
            QTest::mouseClick(button, Qt::LeftButton);
        };
        open.bench.change([](Session& s) { s.layer = LayerIndex(1); }, "Layer");
        open.finish();
        QStringList said = open.window.notices().messages().filter("NaN in head 1, token 37");
        QCOMPARE(said.size(), 1);
        QVERIFY2(said[0].contains("nan.h5") && said[0].contains("/k"), qPrintable(said[0]));
        QCOMPARE(open.visibleTexts().filter("NaN in head 1, token 37").size(), 1);
        for (const ViewDock* dock : open.window.canvases()->docks())
            if (dock->isVisible())
                QVERIFY2(!dock->canvas()->finding().contains("Computing"), qPrintable(dock->canvas()->finding()));
        QVERIFY(!QApplication::activeModalWidget());
        press("Go to layer 0");
        open.waitForResults();
        QCOMPARE(layer(), 0);
        QVERIFY(open.window.notices().messages().filter("NaN").isEmpty());
        open.window.actions()->byName("nextLayer")->trigger();
        open.finish();
        QCOMPARE(layer(), 1);
        press("Skip layer 1");
        open.waitForResults();
        open.window.actions()->byName("nextLayer")->trigger();
        open.finish();
        QCOMPARE(layer(), 0); // there is none behind it
        press("Show it");
        open.finish();
        QCOMPARE(layer(), 1);
        QCOMPARE(open.window.notices().messages().filter("NaN in head 1, token 37").size(), 1);
    }

    /// Undo and redo show what was shown, a skipped layer too: they make no new step.
    void undoAndRedoPassASkippedLayer() {
        OpenWindow open;
        const std::string path = soundFile("skipped");
        std::vector<float> keys(2 * 64 * 16, std::numeric_limits<float>::quiet_NaN());
        replace(path, "layers/01/k", keys, {2, 64, 16});
        open.window.openPath(QString::fromStdString(path));
        QVERIFY(open.until([&] { return open.bench.capture()->info().fileName == "skipped.h5"; }));
        open.bench.change([](Session& s) { s.layer = LayerIndex(0); }, "Layer");
        open.waitForResults();
        open.window.actions()->byName("nextLayer")->trigger();
        open.finish();
        QTRY_VERIFY(open.noticeButton("Skip layer 1"));
        QTest::mouseClick(open.noticeButton("Skip layer 1"), Qt::LeftButton);
        open.waitForResults();
        open.bench.change([](Session& s) { setBudget(s, {Budget::Unit::Fraction, 0.5}); }, "Budget");
        const auto where = [&] {
            return std::pair(open.bench.session().layer.value, open.bench.session().budget.value);
        };
        using Where = std::pair<std::int32_t, double>;
        const std::vector<Where> steps = {{0, 0.25}, {1, 0.25}, {0, 0.25}, {0, 0.5}};
        QCOMPARE(where(), steps[3]);
        for (int step : {2, 1, 0}) {
            open.bench.undo();
            open.finish();
            QCOMPARE(where(), steps[static_cast<std::size_t>(step)]);
        }
        for (int step : {1, 2, 3}) {
            open.bench.redo();
            open.finish();
            QCOMPARE(where(), steps[static_cast<std::size_t>(step)]);
        }
    }

    void aFileWithoutACaptureIsOpenAfterAnErrorToo() {
        OpenWindow open;
        open.bench.closeCapture();
        const std::string path = soundFile("later");
        overwrite(path, "not yet");
        open.window.openPath(QString::fromStdString(path));
        QTRY_COMPARE(open.window.notices().messages().size(), 1);
        const std::string good = soundFile("good");
        open.window.openPath(QString::fromStdString(good));
        QTRY_VERIFY(open.bench.capture());
        QVERIFY(open.window.notices().messages().isEmpty());
    }
};

KVSCOPE_WINDOW_TEST(WindowBrokenFilesTest)
#include "window_broken_files_test.moc"
