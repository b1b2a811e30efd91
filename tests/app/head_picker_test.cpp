// The head picker: cells are layers down and KV heads across, by mouse and by keyboard, and say what is known of them.
#include <QTest> // first: moc of Qt 6.4 stumbles over gcc 12's <compare> otherwise

#include "app/window/panels/head_picker.h"
#include "tests/app/workbench_by_hand.h"

#include <QHelpEvent>
#include <QImage>
#include <QToolTip>

#include <cmath>

using namespace kvscope;
using kvscope::testing::ByHand;
using kvscope::testing::kSample;

namespace {

/// The sample has 6 layers with 2 KV heads of 4 query heads each; it opens on layer 3, KV head 1.
struct Picker {
    ByHand hand;
    std::unique_ptr<Workbench> bench = kvscope::testing::workbenchByHand(hand);
    HeadPicker widget{*bench};

    Picker() {
        bench->openCapture(kSample);
        hand.runAll();
        widget.resize(200, widget.sizeHint().height());
        widget.show();
        (void)QTest::qWaitForWindowExposed(&widget);
    }
    /// A cell of two columns and six rows, which begin below and to the right of their labels.
    QPoint cell(int layer, int kvHead) const {
        const double left = 20, top = 16, pitch = (widget.height() - top - 34) / 6.0; // above the colour bar
        return {static_cast<int>(left + (widget.width() - left) * (0.25 + 0.5 * kvHead)), static_cast<int>(top + pitch * (layer + 0.5))};
    }
    std::pair<int, int> place() const { return {bench->session().layer.value, bench->session().kvHead.value}; }
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
        for (const auto& [key, place] : {std::pair(Qt::Key_Up, std::pair(2, 1)), {Qt::Key_Left, {2, 0}}, {Qt::Key_Left, {2, 0}},
                                         {Qt::Key_Down, {3, 0}}, {Qt::Key_Right, {3, 1}}, {Qt::Key_Right, {3, 1}}}) {
            QTest::keyClick(&picker.widget, key);
            QCOMPARE(picker.place(), place);
        }
        for (int i = 0; i < 9; ++i)
            QTest::keyClick(&picker.widget, Qt::Key_Down);
        QCOMPARE(picker.place(), std::pair(5, 1));
    }

    void saysWhatIsKnownOfAHead() {
        Picker picker;
        QVERIFY2(picker.toolTipAt(picker.cell(2, 1)).contains("layer 2, KV head 1"), qPrintable(QToolTip::text()));
        QVERIFY(QToolTip::text().contains("not computed yet"));
        QTRY_VERIFY_WITH_TIMEOUT((picker.hand.runAll(), picker.bench->surveyedErrors(LayerIndex(5))), 20000);
        const std::vector<double>& errors = *picker.bench->surveyedErrors(LayerIndex(2));
        QCOMPARE(errors.size(), std::size_t{2});
        const QString known = picker.toolTipAt(picker.cell(2, 1));
        QVERIFY2(known.contains(QString::number(errors[1], 'f', 3).left(4)), qPrintable(known));
        picker.toolTipAt({3, 3}); // the labels say nothing
        QTRY_VERIFY(!QToolTip::isVisible());
    }

    /// From 0.03 to 1, in powers of ten; the colour of every cell stands on it, where its error lies.
    void theColourBarReadsTheCells() {
        Picker picker;
        QTRY_VERIFY_WITH_TIMEOUT((picker.hand.runAll(), picker.bench->surveyedErrors(LayerIndex(5))), 20000);
        const QImage picture = picker.widget.grab().toImage();
        const int left = 20, right = picker.widget.width() - 3, y = picker.widget.height() - 18 - 4;
        for (const auto& [layer, kvHead] : {std::pair(1, 0), {3, 1}, {5, 0}}) {
            const double error = (*picker.bench->surveyedErrors(LayerIndex(layer)))[static_cast<std::size_t>(kvHead)];
            const double place = std::clamp(std::log(error / 0.03) / std::log(1 / 0.03), 0.0, 1.0);
            const QColor cell = picture.pixelColor(picker.cell(layer, kvHead) + QPoint(0, 0));
            const QColor bar = picture.pixelColor(std::min(right - 1, static_cast<int>(left + place * (right - left))), y);
            for (const int difference : {cell.red() - bar.red(), cell.green() - bar.green(), cell.blue() - bar.blue()})
                QVERIFY2(std::abs(difference) <= 6, qPrintable(QString("layer %1: %2 and %3 for %4").arg(layer).arg(cell.name(), bar.name()).arg(error)));
        }
        QVERIFY(picture.pixelColor(left + 1, y) != picture.pixelColor(right - 2, y));
    }

    /// Open squares until a layer is surveyed, colours after it, a frame around the head that is shown.
    void coloursAppearWithTheSurvey() {
        Picker picker;
        const auto colourAt = [&](int layer, int kvHead) { return picker.widget.grab().toImage().pixelColor(picker.cell(layer, kvHead)); };
        const QColor ground = colourAt(1, 0);
        QCOMPARE(colourAt(4, 1), ground);
        QTRY_VERIFY_WITH_TIMEOUT((picker.hand.runAll(), picker.bench->surveyedErrors(LayerIndex(5))), 20000);
        QVERIFY(colourAt(1, 0) != ground);
        QVERIFY(colourAt(4, 1) != ground);
        QVERIFY(colourAt(1, 0) != colourAt(5, 0)); // these differ tenfold
    }
};

QTEST_MAIN(HeadPickerTest)
#include "head_picker_test.moc"
