// The dock with the answers of a live context, as narrow as it goes; the worker has no model.
#include "app/window/docks/dock_layout.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/segmented_switch.h"
#include "tests/app/answers_window.h"
#include "tests/support/test_program.h"

#include <QLineEdit>
#include <QScrollArea>
#include <QToolButton>

#include <vector>

using namespace kvscope;
using kvscope::testing::LiveWindow;

class NarrowAnswersTest : public QObject {
    Q_OBJECT

private slots:
    /// What is too wide for it goes: columns of numbers, and the controls from the header into a line below it.
    void aNarrowDockCutsNothing_data() {
        QTest::addColumn<double>("scale");
        for (const double scale : {1.0, 1.5}) QTest::addRow("%g", scale) << scale;
    }

    void aNarrowDockCutsNothing() {
        QFETCH(double, scale);
        LiveWindow open(QSize(1800, 1000) * scale);
        open.bench.change([&](Session& s) { s.look.scale = scale; }, "Scale");
        open.openLive();
        QVERIFY(open.dock->hasTabs());
        QVERIFY2(open.dock->minimumSizeHint().width() <= px(320),
                 qPrintable(QString::number(open.dock->minimumSizeHint().width())));
        PanelDock* beside = open.window.docks()->dock("error_difference");
        const int both = open.dock->width() + beside->width();
        for (const int width : {330, 420, 500, 620, 800, 330}) {
            open.window.resizeDocks({open.dock, beside}, {px(width), both - px(width)}, Qt::Horizontal);
            open.settle();
            QVERIFY2(std::abs(open.dock->width() - px(width)) < 8, qPrintable(QString::number(open.dock->width())));
            const auto* area = open.dock->widget()->findChild<QScrollArea*>();
            for (const LiveNumber* number : area->findChildren<LiveNumber*>()) {
                if (!number->isVisible()) continue;
                const QRect place(number->mapTo(area->viewport(), QPoint()), number->size());
                QVERIFY2(place.left() >= 0 && place.right() < area->viewport()->width(),
                         qPrintable(number->objectName()));
            }
            QVERIFY(open.part<LiveNumber>("loss, nat 1")->isVisible());
            std::vector<const QWidget*> controls = {open.part<SegmentedSwitch>("answersOrCurves"),
                                                    open.part<SegmentedSwitch>("writingMode"),
                                                    open.part<QLineEdit>("answerTokens")};
            for (const auto* button : open.dock->findChildren<QToolButton*>())
                if (button->isVisible()) controls.push_back(button);
            const auto place = [&](const QWidget* part) {
                return QRect(part->mapTo(open.dock, QPoint()), part->size());
            };
            for (const QWidget* one : controls) {
                QVERIFY2(one->isVisible() && open.dock->rect().contains(place(one)), qPrintable(one->objectName()));
                QVERIFY2(one->width() >= one->sizeHint().width() || one->minimumWidth() > 0,
                         qPrintable(one->objectName()));
                for (const QWidget* other : controls)
                    QVERIFY2(one == other || !place(one).intersects(place(other)), qPrintable(one->objectName()));
            }
        }
    }
};

KVSCOPE_WINDOW_TEST(NarrowAnswersTest)
#include "window_narrow_answers_test.moc"
