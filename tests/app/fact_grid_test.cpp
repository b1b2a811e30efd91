// Names and values of a fact grid in any width: names may wrap and values go below them, but no digit is ever cut.
#include <QApplication>
#include <QTest>

#include "app/window/panels/fact_grid.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"
#include "tests/support/test_program.h"

#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>

using namespace kvscope;

namespace {

const FactGrid::Facts kFacts = {{"Retained attention mass", "100.0 %"},
                                {"Budget", "131,072 tokens (100.0 %)"},
                                {"Kept", "12,345 tokens (9.4 %)"},
                                {"of them protected", "0"},
                                {"sizes |C⁰| … |C⁸|", "255, 128, 128, 128, 128, 128, 128, 128, 1,024"},
                                {"List", "kept_tokens_of_a_policy_with_a_long_name.json"},
                                {"Smallest decision margin", "9.9e−4"}};

} // namespace

class FactGridTest : public QObject {
    Q_OBJECT

private slots:
    void noDigitIsCut_data() {
        QTest::addColumn<double>("scale");
        QTest::addColumn<int>("width"); // of the panel, in design pixels
        for (const double scale : {1.0, 1.5})
            for (const int width : {200, 240, 288, 312, 400}) QTest::addRow("%g %d", scale, width) << scale << width;
    }

    void noDigitIsCut() {
        QFETCH(double, scale);
        QFETCH(int, width);
        setAppearance({ThemeId::Light, scale, false});
        const std::unique_ptr<QScrollArea> area(scrollArea(nullptr)); // as a dock has it
        auto* body = new QWidget;
        auto* column = makeLayout<QVBoxLayout>(body, {8, 10, 6, 10}, 6);
        auto* grid = added(column, new FactGrid(body));
        column->addStretch();
        grid->show(kFacts);
        area->setWidget(body);
        area->resize(px(width), px(120)); // too low: the scroll bar takes some width
        area->show();
        QVERIFY(QTest::qWaitForWindowExposed(area.get()));
        for (int pass = 0; pass < 6; ++pass) QApplication::processEvents(); // each layout tells the one around it
        QCOMPARE(body->width(), area->viewport()->width());
        for (const LiveNumber* value : grid->findChildren<LiveNumber*>()) {
            const QRect place(value->mapTo(area->viewport(), QPoint()), value->size());
            QVERIFY2(place.left() >= 0 && place.right() < area->viewport()->width(), qPrintable(value->text()));
            if (!value->wordWrap())
                QVERIFY2(value->width() >= value->sizeHint().width(), qPrintable(value->text()));
            else
                QVERIFY2(value->height() >= value->heightForWidth(value->width()), qPrintable(value->text()));
        }
        const QList<QLabel*> labels = grid->findChildren<QLabel*>(Qt::FindDirectChildrenOnly);
        for (const QLabel* one : labels)
            for (const QLabel* other : labels)
                QVERIFY2(one == other || !one->geometry().intersects(other->geometry()), qPrintable(one->text()));
        for (const QLabel* name : labels) {
            if (qobject_cast<const LiveNumber*>(name)) continue;
            QVERIFY2(name->height() >= name->heightForWidth(name->width()), qPrintable(name->text()));
            QVERIFY2(name->width() >= name->minimumSizeHint().width(), qPrintable(name->text()));
        }
        const auto beside = [&](int row) { return labels[2 * row]->y() < labels[2 * row + 1]->geometry().bottom(); };
        if (width == 400) // room for all
            for (int row = 0; row < 5; ++row) QVERIFY(beside(row));
    }
};

KVSCOPE_OFFSCREEN_WIDGETS_TEST(FactGridTest)
#include "fact_grid_test.moc"
