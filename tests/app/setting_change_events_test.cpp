// A click on a mark of a curve or on a cell of the phase map gives its setting to the pane that it belongs to, by real
// mouse events on a canvas; the read-out says so before, and one undo takes it back.
#include "tests/app/one_view.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "views/view.h"

#include <QTest>

using namespace kvscope;
using kvscope::testing::OneView;
namespace scene_checks = kvscope::scene_checks;

namespace {

/// Marks of pane A's curve.
const PointCloudItem* marksOf(const Scene& scene, char letter) {
    for (const Drawable& item : scene.items)
        if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name.starts_with(letter))
            return cloud;
    return nullptr;
}

} // namespace

class SettingChangeEventsTest : public QObject {
    Q_OBJECT

private slots:
    void aMarkOfACurveGivesItsParameter_data() {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<QString>("other");
        QTest::addColumn<QString>("parameter");
        QTest::addColumn<QString>("values");
        QTest::newRow("window") << "snapkv@0.25"
                                << "keydiff@0.25"
                                << "window"
                                << "8,16,64";
        QTest::newRow("block size") << "keydiff@0.25"
                                    << "streaming_llm@0.25"
                                    << "prompt_block"
                                    << "64,128,256";
        QTest::newRow("sketch size") << "compactor@0.25"
                                     << "keydiff@0.25"
                                     << "sketch_size"
                                     << "8,32,64";
        QTest::newRow("lambda") << "compactor@0.25"
                                << "keydiff@0.25"
                                << "lambda"
                                << "0.1,0.5,0.9";
    }
    void aMarkOfACurveGivesItsParameter() {
        QFETCH(QString, policy);
        QFETCH(QString, other);
        QFETCH(QString, parameter);
        QFETCH(QString, values);
        const std::string id = parameter.toStdString();
        OneView one(viewById("curves"), {other.toStdString(), policy.toStdString()},
                    {{"vary", (parameter + "=" + values).toStdString()}, {"seeds", "1"}});
        QVERIFY(one.ready());
        const std::string before = one.valueOf(1, id);
        const auto session = one.bench.session();
        CanvasWidget* canvas = one.view->canvas();
        const PointCloudItem* marks = marksOf(canvas->scene(), 'B');
        QVERIFY(marks && marks->points->size() == 3);
        const QPoint at = one.widgetPoint(marks->points->at(1));
        const std::string wanted = values.split(',')[1].toStdString();
        QTest::mouseMove(canvas, at);
        QTRY_VERIFY(one.view->readOut()->text().contains("gives pane B this " + parameter));
        QTest::mouseClick(canvas, Qt::LeftButton, {}, at);
        QCOMPARE(one.valueOf(1, id), wanted);
        QCOMPARE(one.bench.session().activePane, 1);
        QVERIFY(one.bench.session().panes[0] == session.panes[0]);
        QVERIFY(one.bench.session().budget == session.budget); // a parameter, not a budget
        QVERIFY(one.ready());
        QCOMPARE(one.bench.viewInput().panes[1].result->request.policy.values.text(id), wanted); // it runs
        one.bench.undo();                                                                        // one step
        QCOMPARE(one.valueOf(1, id), before);
        QCOMPARE(one.bench.session().activePane, 0);
    }

    void aCellOfThePhaseMapGivesBothParameters() {
        OneView one(viewById("phase_map"), {"snapkv@0.25", "keydiff@0.25"},
                    {{"x", "pool_width=1,3,7"}, {"y", "window=8,16,64"}});
        QVERIFY(one.ready());
        const auto session = one.bench.session();
        CanvasWidget* canvas = one.view->canvas();
        const RectangleItem* cell = nullptr;
        for (const Drawable& item : canvas->scene().items)
            if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick == PickId{PickId::Kind::Cell, 5})
                cell = box;
        QVERIFY(cell);
        const QPoint at = one.widgetPoint({cell->box.x + cell->box.width / 2, cell->box.y + cell->box.height / 2});
        QTest::mouseMove(canvas, at);
        QTRY_VERIFY2(one.view->readOut()->text().contains("gives both to pane A"),
                     qPrintable(one.view->readOut()->text()));
        QTest::mouseClick(canvas, Qt::LeftButton, {}, at);
        QCOMPARE(one.valueOf(0, "pool_width"), std::string("7"));
        QCOMPARE(one.valueOf(0, "window"), std::string("16"));
        QVERIFY(one.bench.session().panes[1] == session.panes[1]);
        one.bench.undo();
        QVERIFY(one.bench.session().panes[0] == session.panes[0]);
    }

    void aMarkOfABudgetCurveGivesItsBudget() {
        OneView one(viewById("curves"), {"keydiff@0.25"}, {});
        QVERIFY(one.ready());
        const Budget before = one.bench.session().budget;
        CanvasWidget* canvas = one.view->canvas();
        const PointCloudItem* marks = marksOf(canvas->scene(), 'A');
        QVERIFY(marks && marks->points->size() == 11);
        QTest::mouseMove(canvas, one.widgetPoint(marks->points->at(2)));
        QTRY_VERIFY(one.view->readOut()->text().contains("gives pane A this budget"));
        QTest::mouseClick(canvas, Qt::LeftButton, {}, one.widgetPoint(marks->points->at(2)));
        QCOMPARE(one.bench.session().budget.text(), std::string("0.1"));
        one.bench.undo();
        QVERIFY(one.bench.session().budget == before);
    }

    /// A click on r* gives its quality to the pane, a click on a point the point's retention; the read-out says so.
    void calibrationIsAdoptedByAClick() {
        OneView one(viewById("calibration"), {"keydiff:kvpress@0.25", "compactor:kvpress@0.25"}, {});
        QVERIFY(one.ready());
        CanvasWidget* canvas = one.view->canvas();
        const CircleItem* ring = nullptr;
        for (const Drawable& item : canvas->scene().items)
            if (const auto* circle = std::get_if<CircleItem>(&item);
                circle && circle->pick == PickId{PickId::Kind::Node, 1})
                ring = circle;
        QVERIFY(ring);
        const QPoint at = one.widgetPoint(ring->centre);
        QTest::mouseMove(canvas, at);
        QTRY_VERIFY(one.view->readOut()->text().contains("@tau=0.95"));
        QTest::mouseClick(canvas, Qt::LeftButton, {}, at);
        QCOMPARE(effectiveBudget(one.bench.session(), 1).text(), std::string("tau=0.95"));
        QVERIFY(effectiveBudget(one.bench.session(), 0).unit == Budget::Unit::Fraction); // a quality is one policy's
        QCOMPARE(one.bench.session().activePane, 1);
        const PointCloudItem* points = scene_checks::cloudNamed(canvas->scene(), "measured A needle-1k.h5");
        QVERIFY(points);
        QTest::mouseClick(canvas, Qt::LeftButton, {}, one.widgetPoint(points->points->at(7))); // r = 0.5
        QCOMPARE(effectiveBudget(one.bench.session(), 0).text(), (Budget{Budget::Unit::Fraction, 0.5}.text()));
        QCOMPARE(one.bench.session().activePane, 0);
    }
};

KVSCOPE_WINDOW_TEST(SettingChangeEventsTest)
#include "setting_change_events_test.moc"
