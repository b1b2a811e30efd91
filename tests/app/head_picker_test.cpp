// The head picker: cells are layers down and KV heads across, by mouse and by keyboard, and say what is known of them.
#include <QTest>

#include "app/window/panels/head_picker.h"
#include "core/metrics/measure_values.h"
#include "tests/app/manual_workbench.h"
#include "tests/support/test_program.h"

#include <QHelpEvent>
#include <QImage>
#include <QToolTip>

#include <cmath>

using namespace kvscope;
using kvscope::testing::kSample;
using kvscope::testing::ManualExecutor;

namespace {

/// The sample has 6 layers with 2 KV heads of 4 query heads each; it opens on layer 3, KV head 1.
struct Picker {
    ManualExecutor executor;
    std::unique_ptr<Workbench> bench = kvscope::testing::manualWorkbench(executor);
    HeadPicker widget{*bench};

    Picker() {
        bench->openCapture(kSample);
        executor.runAll();
        widget.resize(200, widget.sizeHint().height());
        widget.show();
        (void)QTest::qWaitForWindowExposed(&widget);
    }
    /// A cell of two columns and six rows, which begin below and to the right of their labels.
    QPoint cell(int layer, int kvHead) const {
        const double left = 20, top = 16, pitch = (widget.height() - top - 34) / 6.0; // above the colour bar
        return {static_cast<int>(left + (widget.width() - left) * (0.25 + 0.5 * kvHead)),
                static_cast<int>(top + pitch * (layer + 0.5))};
    }
    void show(const char* measure) {
        bench->change([&](Session& s) { s.look.headMeasure = measure; }, "Heads by");
    }
    bool scanAllLayers() {
        executor.settle();
        return bench->layerScan(LayerIndex(5)) != nullptr;
    }
    std::vector<double> values() const {
        std::vector<double> all;
        for (int layer = 0; layer < 6; ++layer)
            all.insert(all.end(), bench->layerScan(LayerIndex(layer))->values.begin(),
                       bench->layerScan(LayerIndex(layer))->values.end());
        return all;
    }
    std::pair<int, int> place() const { return {bench->session().layer.value, bench->session().kvHead.value}; }
    /// The bar's colour at a share of its length.
    QColor onBar(const QImage& picture, double place) const {
        const int left = 20, right = widget.width() - 3, y = widget.height() - 18 - 4;
        return picture.pixelColor(std::min(right - 1, static_cast<int>(left + place * (right - left))), y);
    }
    void expectOnBar(int layer, int kvHead, double place) {
        const QImage picture = widget.grab().toImage();
        const QColor head = picture.pixelColor(cell(layer, kvHead)), bar = onBar(picture, place);
        for (const int difference : {head.red() - bar.red(), head.green() - bar.green(), head.blue() - bar.blue()})
            QVERIFY2(
                std::abs(difference) <= 6,
                qPrintable(
                    QString("layer %1, KV head %2: %3 and %4").arg(layer).arg(kvHead).arg(head.name(), bar.name())));
    }
    QString toolTipAt(const QPoint& at) {
        QHelpEvent asked(QEvent::ToolTip, at, widget.mapToGlobal(at));
        QCoreApplication::sendEvent(&widget, &asked);
        return QToolTip::text();
    }
};

} // namespace

class HeadPickerTest : public QObject {
    Q_OBJECT

private slots:
    void aClickGoesToTheHeadUnderThePointer() {
        Picker picker;
        QCOMPARE(picker.place(), std::pair(3, 1));
        QTest::mouseClick(&picker.widget, Qt::LeftButton, {}, picker.cell(5, 0));
        QCOMPARE(picker.place(), std::pair(5, 0));
        QTest::mouseClick(&picker.widget, Qt::RightButton, {}, picker.cell(0, 1));
        QCOMPARE(picker.place(), std::pair(5, 0));
        QVERIFY(picker.bench->session().queryHead.value < 4); // a query head of that KV head
        QTest::mouseClick(&picker.widget, Qt::LeftButton, {}, picker.cell(0, 1));
        QCOMPARE(picker.place(), std::pair(0, 1));
        QVERIFY(picker.bench->session().queryHead.value >= 4);
        QTest::mouseClick(&picker.widget, Qt::LeftButton, {}, {3, 3}); // the labels are no heads
        QCOMPARE(picker.place(), std::pair(0, 1));
        picker.bench->undo();
        QCOMPARE(picker.place(), std::pair(5, 0));
    }

    void arrowsMoveAndStopAtTheEdges() {
        Picker picker;
        picker.widget.setFocus();
        for (const auto& [key, place] : {std::pair(Qt::Key_Up, std::pair(2, 1)),
                                         {Qt::Key_Left, {2, 0}},
                                         {Qt::Key_Left, {2, 0}},
                                         {Qt::Key_Down, {3, 0}},
                                         {Qt::Key_Right, {3, 1}},
                                         {Qt::Key_Right, {3, 1}}}) {
            QTest::keyClick(&picker.widget, key);
            QCOMPARE(picker.place(), place);
        }
        for (int i = 0; i < 9; ++i) QTest::keyClick(&picker.widget, Qt::Key_Down);
        QCOMPARE(picker.place(), std::pair(5, 1));
    }

    /// In a low column the cells yield, and the numbers below them stay whole.
    void theCellsYieldInALowColumn() {
        Picker picker;
        picker.show("output_error");
        const QColor first = picker.onBar(picker.widget.grab().toImage(), 0);
        const QSize least = picker.widget.minimumSizeHint();
        QVERIFY(least.height() + 30 < picker.widget.sizeHint().height());
        picker.widget.resize(200, least.height());
        QTest::mouseClick(&picker.widget, Qt::LeftButton, {}, picker.cell(5, 0));
        QCOMPARE(picker.place(), std::pair(5, 0));
        QTest::mouseClick(&picker.widget, Qt::LeftButton, {}, picker.cell(0, 1));
        QCOMPARE(picker.place(), std::pair(0, 1));
        QCOMPARE(picker.onBar(picker.widget.grab().toImage(), 0), first); // the bar has its place above the numbers
    }

    void withoutACaptureArrowsGoNowhere() {
        Picker picker;
        picker.bench->closeCapture();
        picker.executor.runAll();
        QVERIFY(!picker.bench->capture());
        picker.widget.setFocus();
        QTest::keyClick(&picker.widget, Qt::Key_Down);
        QVERIFY(picker.widget.accessibleDescription().isEmpty());
    }

    void saysWhatIsKnownOfAHead() {
        Picker picker;
        QVERIFY2(picker.toolTipAt(picker.cell(2, 1)).contains("layer 2, KV head 1"), qPrintable(QToolTip::text()));
        QVERIFY(QToolTip::text().contains("not computed yet"));
        QVERIFY(picker.scanAllLayers());
        const std::vector<double>& errors = picker.bench->layerScan(LayerIndex(2))->values;
        QCOMPARE(errors.size(), std::size_t{2});
        const QString known = picker.toolTipAt(picker.cell(2, 1));
        QVERIFY2(known.contains(QString::number(errors[1], 'f', 3).left(4)), qPrintable(known));
        picker.toolTipAt({3, 3}); // the labels say nothing
        QTRY_VERIFY(!QToolTip::isVisible());
    }

    /// From 0.03 to 1, in powers of ten; the colour of every cell stands on it, where its error lies.
    void theColourBarReadsTheCells() {
        Picker picker;
        QVERIFY(picker.scanAllLayers());
        for (const auto& [layer, kvHead] : {std::pair(1, 0), {3, 1}, {5, 0}}) {
            const double error = picker.bench->layerScan(LayerIndex(layer))->values[static_cast<std::size_t>(kvHead)];
            picker.expectOnBar(layer, kvHead, std::clamp(std::log(error / 0.03) / std::log(1 / 0.03), 0.0, 1.0));
        }
        const QImage picture = picker.widget.grab().toImage();
        QVERIFY(picker.onBar(picture, 0.01) != picker.onBar(picture, 0.99));
    }

    /// Open squares until a layer is scanned, colours after it, a frame around the head that is shown.
    void coloursAppearWithTheLayerScan() {
        Picker picker;
        const auto colourAt = [&](int layer, int kvHead) {
            return picker.widget.grab().toImage().pixelColor(picker.cell(layer, kvHead));
        };
        const QColor ground = colourAt(1, 0);
        QCOMPARE(colourAt(4, 1), ground);
        QVERIFY(picker.scanAllLayers());
        QVERIFY(colourAt(1, 0) != ground);
        QVERIFY(colourAt(4, 1) != ground);
        QVERIFY(colourAt(1, 0) != colourAt(5, 0)); // these differ tenfold
    }

    void everyMeasureHasOneNumberPerKvHead_data() {
        QTest::addColumn<QString>("measure");
        for (const char* id :
             {"output_error", "retained_mass", "entropy", "largest_loss", "log_det", "cos_means", "key_norm"})
            QTest::newRow(id) << id;
    }
    void everyMeasureHasOneNumberPerKvHead() {
        QFETCH(QString, measure);
        Picker picker;
        const std::string id = measure.toStdString();
        picker.show(id.c_str());
        QVERIFY(picker.scanAllLayers());
        RunRequest run = picker.bench->request()->panes[0].run;
        run.layer = LayerIndex(4);
        const auto result = picker.bench->runner().run(run, {});
        const std::vector<double> heads =
            picker.bench->runner().measure(*result, std::span(&id, 1), {}).front().perHead;
        for (int kvHead = 0; kvHead < 2; ++kvHead) {
            double expected = 0; // four query heads read each
            for (std::size_t head = 0; head < 4; ++head)
                expected += heads.size() == 2 ? heads[static_cast<std::size_t>(kvHead)] / 4
                                              : heads[static_cast<std::size_t>(4 * kvHead) + head] / 4;
            const double shown = picker.bench->layerScan(LayerIndex(4))->values[static_cast<std::size_t>(kvHead)];
            QVERIFY2(std::abs(shown - expected) <= 1e-12 * std::abs(expected),
                     qPrintable(QString("%1, not %2").arg(shown).arg(expected)));
        }
    }

    /// What policies do not change stays when they change, and what was found for one measure while another is shown.
    void nothingValidIsComputedAgain() {
        Picker picker;
        picker.show("entropy");
        QVERIFY(picker.scanAllLayers());
        const std::string key = picker.bench->layerScan(LayerIndex(5))->key;
        picker.bench->change([](Session& s) { setBudget(s, Budget::parse("0.5")); }, "Budget");
        QCOMPARE(picker.bench->layerScan(LayerIndex(5))->key, key);
        picker.show("log_det");
        QVERIFY(!picker.bench->layerScan(LayerIndex(0)));
        QVERIFY(picker.scanAllLayers());
        picker.show("entropy");
        QCOMPARE(picker.values().size(), std::size_t{12}); // at once
        picker.executor.passPauses();
        QVERIFY(picker.executor.tasks.empty());
        picker.show("log_det");
        picker.executor.passPauses();
        QVERIFY(picker.executor.tasks.empty());
        picker.bench->change([](Session& s) { setBudget(s, Budget::parse("0.1")); }, "Budget");
        picker.executor.runAll();
        picker.executor.passPauses();
        QVERIFY(!picker.executor.tasks.empty()); // that one belongs to the policy
    }

    void theBarRunsOverTheNumbersOfTheMeasure() {
        Picker picker;
        picker.show("entropy");
        QVERIFY(picker.scanAllLayers());
        const std::vector<double> all = picker.values();
        const auto [least, most] = std::minmax_element(all.begin(), all.end());
        for (std::size_t i = 0; i < all.size(); ++i)
            if (i != 7) // framed
                picker.expectOnBar(static_cast<int>(i / 2), static_cast<int>(i % 2),
                                   (all[i] - *least) / (*most - *least));
    }

    void aHeldKeyIsOneStepToUndo() {
        Picker picker;
        picker.widget.setFocus();
        const auto before = picker.place();
        QTest::keyClick(&picker.widget, Qt::Key_Down);
        QTest::mouseClick(&picker.widget, Qt::LeftButton, {}, picker.cell(1, 0));
        QTest::mouseClick(&picker.widget, Qt::LeftButton, {}, picker.cell(2, 0));
        for (int repeat = 0; repeat < 3; ++repeat) QTest::keyPress(&picker.widget, Qt::Key_Down);
        QTest::keyRelease(&picker.widget, Qt::Key_Down);
        QTest::keyClick(&picker.widget, Qt::Key_Right);
        QCOMPARE(picker.place(), std::pair(5, 1));
        for (const auto& place :
             {std::pair(5, 0), std::pair(2, 0), std::pair(1, 0), std::pair(before.first + 1, before.second), before}) {
            picker.bench->undo();
            QCOMPARE(picker.place(), place);
        }
    }

    void theToolTipNamesMeasureValueAndUnit() {
        Picker picker;
        picker.show("entropy");
        QVERIFY(picker.scanAllLayers());
        const QString text = picker.toolTipAt(picker.cell(2, 1));
        const double value = picker.bench->layerScan(LayerIndex(2))->values[1];
        QVERIFY2(text.endsWith(QString("attention entropy %1 nat").arg(value, 0, 'g', 4)), qPrintable(text));
        QVERIFY2(picker.widget.accessibleDescription().contains("layer 3, KV head 1"),
                 qPrintable(picker.widget.accessibleDescription()));
        QVERIFY(picker.widget.accessibleDescription().contains("attention entropy"));
    }

    /// The sample holds no output projection, and who keeps everything scores nothing.
    void saysWhyThereAreNoNumbers() {
        Picker picker;
        const auto colourful = [&] {
            const QImage picture = picker.widget.grab().toImage();
            int count = 0;
            for (int x = 20; x < picture.width() - 3; ++x)
                count += picture.pixelColor(x, picture.height() - 18 - 4).hsvSaturation() > 60;
            return count;
        };
        QVERIFY(colourful() > 150); // the error's bar is there before its numbers
        picker.show("output_error_wo");
        QVERIFY(picker.scanAllLayers());
        QCOMPARE(QString::fromStdString(picker.bench->layerScan(LayerIndex(3))->refusal),
                 QString("no output projection captured"));
        QCOMPARE(colourful(), 0);
        QVERIFY2(picker.toolTipAt(picker.cell(1, 1)).contains("Capture with o_proj"), qPrintable(QToolTip::text()));
        picker.show("score_correlation");
        QVERIFY(picker.scanAllLayers());
        QVERIFY(colourful() > 100);
        const auto lastRefusal = [&] {
            return picker.executor.settle(),
                   picker.bench->layerScan(LayerIndex(5)) ? picker.bench->layerScan(LayerIndex(5))->refusal : "unknown";
        };
        picker.bench->change([](Session& s) { addPane(s, {PolicySpec::parse("exact"), {}, {}}); }, "Pane");
        QCOMPARE(lastRefusal(), std::string("Exact scores no tokens"));
        QCOMPARE(colourful(), 0);
        picker.bench->change([](Session& s) { s.activePane = 1; }, "Pane");
        QVERIFY(!picker.bench->layerScan(LayerIndex(0))); // what is true of another pane is not said of this one
        QCOMPARE(lastRefusal(), std::string());
        QVERIFY(colourful() > 100);
    }
};

KVSCOPE_WINDOW_TEST(HeadPickerTest)
#include "head_picker_test.moc"
