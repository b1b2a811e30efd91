// Another quantity in the left column, as a user chooses it: by mouse and by keyboard, in a window.
#include <QtTest>

#include "app/study/session_file.h"
#include "app/window/panels/head_picker.h"
#include "app/window/widgets/choice_box.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAbstractItemView>
#include <QHelpEvent>
#include <QScrollArea>
#include <QTemporaryDir>
#include <QToolButton>
#include <QToolTip>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

struct OpenColumn : OpenWindow {
    ChoiceBox* box = window.findChild<ChoiceBox*>("headMeasure");
    HeadPicker* picker = window.findChild<HeadPicker*>();

    OpenColumn() {
        QTest::keyClick(&window, Qt::Key_1, Qt::ControlModifier); // Explore head: the column is there
        arrange();
    }
    void choose(const QString& name) {
        QTest::mouseClick(box, Qt::LeftButton);
        arrange();
        const QModelIndex index = box->model()->index(box->findText(name), 0);
        box->view()->scrollTo(index);
        arrange();
        QTest::mouseMove(box->view()->viewport(), box->view()->visualRect(index).center());
        arrange();
        QTest::mouseClick(box->view()->viewport(), Qt::LeftButton, {}, box->view()->visualRect(index).center());
    }
    bool scanned() {
        settle();
        const auto& layers = bench.capture()->info().layers;
        return std::all_of(layers.begin(), layers.end(),
                           [this](const LayerInfo& layer) { return bench.layerScan(layer.layer); });
    }
    QString toolTip() {
        const QPoint at(picker->width() / 4, 16 + 4);
        QHelpEvent asked(QEvent::ToolTip, at, picker->mapToGlobal(at));
        QCoreApplication::sendEvent(picker, &asked);
        return QToolTip::text();
    }
    QImage picture() const { return picker->grab().toImage(); }
};

} // namespace

class HeadMeasureTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QApplication::setDoubleClickInterval(0); // so long an open list takes no click for a choice
    }

    void aChosenQuantityColoursTheHeads() {
        OpenColumn open;
        QVERIFY(open.box->isVisible());
        QCOMPARE(open.box->currentText(), QString("Relative output error"));
        QVERIFY(open.scanned());
        const QImage errors = open.picture();
        QVERIFY2(open.toolTip().contains("relative output error"), qPrintable(QToolTip::text()));
        const auto steps = open.bench.history().undoLabel();
        const auto result = open.bench.viewInput().panes[0].result;

        open.choose("Attention entropy, nat");
        QTRY_COMPARE(open.bench.session().look.headMeasure, std::string("entropy"));
        QVERIFY(open.scanned());
        QTRY_VERIFY(open.picture() != errors);
        QVERIFY2(open.toolTip().contains("attention entropy") && open.toolTip().endsWith(" nat"),
                 qPrintable(QToolTip::text()));
        QVERIFY(open.picker->accessibleDescription().contains("attention entropy"));
        QCOMPARE(open.bench.history().undoLabel(), steps); // a look, no step
        QVERIFY(open.bench.viewInput().panes[0].result == result && !open.bench.viewInput().panes[0].computing);

        open.choose("Relative output error");
        QTRY_COMPARE(open.bench.session().look.headMeasure, std::string("output_error"));
        QTRY_COMPARE(open.picture(), errors); // nothing was lost
    }

    void theKeyboardChoosesToo() {
        OpenColumn open;
        open.box->setFocus();
        QTest::keyClick(open.box, Qt::Key_Down);
        QTRY_COMPARE(open.bench.session().look.headMeasure, std::string("output_error_frobenius"));
        QCOMPARE(open.box->currentText(), QString("Output error, Frobenius norm"));
        open.bench.change([](Session& s) { setBudget(s, Budget::parse("0.5")); }, "Budget");
        QTest::keyClick(&open.window, Qt::Key_Z, Qt::ControlModifier);
        QTRY_COMPARE(open.bench.session().budget.value, 0.25);
        QCOMPARE(open.bench.session().look.headMeasure, std::string("output_error_frobenius"));
        QCOMPARE(open.box->currentText(), QString("Output error, Frobenius norm"));
    }

    void theChoiceComesBackWithTheSession() {
        QTemporaryDir folder;
        const QString path = folder.filePath("work.kvscope");
        {
            OpenColumn open;
            open.box->setFocus();
            QTest::keyClick(open.box, Qt::Key_End);
            QTRY_COMPARE(open.bench.session().look.headMeasure, std::string("leverage_concentration"));
            writeSession(path.toStdString(), open.bench.session());
        }
        OpenColumn open;
        QCOMPARE(open.box->currentText(), QString("Relative output error"));
        open.window.openPath(path);
        QTRY_COMPARE(open.box->currentText(), QString("Leverage concentration"));
        QTRY_VERIFY_WITH_TIMEOUT(open.scanned() && open.toolTip().contains("leverage concentration"), 20000);
    }

    /// The heads are no wider than their column, which scrolls downwards only.
    void theColumnOfASmallWindowCutsNothing() {
        OpenWindow open({1280, 800});
        QTest::keyClick(&open.window, Qt::Key_1, Qt::ControlModifier);
        open.arrange();
        QTest::mouseClick(open.window.findChild<QToolButton*>("unfold"), Qt::LeftButton);
        auto* picker = open.window.findChild<QWidget*>("railPanels")->findChild<HeadPicker*>();
        QTRY_VERIFY(picker->isVisible());
        open.arrange();
        const QScrollArea* area = nullptr;
        for (QWidget* around = picker; around && !area; around = around->parentWidget())
            area = qobject_cast<QScrollArea*>(around);
        QVERIFY(area);
        const int right = picker->mapTo(area->viewport(), QPoint(picker->width(), 0)).x();
        QVERIFY2(right <= area->viewport()->width(),
                 qPrintable(QString("%1 of %2").arg(right).arg(area->viewport()->width())));
    }
};

KVSCOPE_WINDOW_TEST(HeadMeasureTest)
#include "head_measure_test.moc"
