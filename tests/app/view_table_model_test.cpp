// The tables behind the canvases keep the rules of item models and say what the view says.
#include "app/window/canvas/view_table_model.h"
#include "tests/support/test_program.h"

#include <QAbstractItemModelTester>
#include <QItemSelectionModel>
#include <QTest>

using namespace kvscope;

namespace {

ViewTable table(std::int64_t rows) {
    return {{"position", "text"}, rows, [](std::int64_t row, int column) {
                return column == 0 ? std::to_string(row) : std::string("a\tb");
            }};
}

} // namespace

class ViewTableModelTest : public QObject {
    Q_OBJECT

private slots:
    void theModelKeepsTheRules() {
        ViewTableModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        for (const std::int64_t rows : {0, 1, 1000, 3}) {
            model.show(table(rows));
            QCOMPARE(model.rowCount(), static_cast<int>(rows));
            QCOMPARE(model.columnCount(), 2);
        }
        QCOMPARE(model.data(model.index(2, 0)).toString(), QString("2"));
        QCOMPARE(model.headerData(1, Qt::Horizontal).toString(), QString("text"));
        QVERIFY(!model.data(model.index(5, 0)).isValid());
    }

    void aMillionRowsCostNothingToOpen() {
        ViewTableModel model;
        int asked = 0;
        model.show({{"a"}, 1'000'000, [&](std::int64_t, int) {
                        ++asked;
                        return std::string();
                    }});
        QCOMPARE(model.rowCount(), 1'000'000);
        QCOMPARE(asked, 0);
    }

    void tabsInCellsDoNotBreakTheLines() {
        QCOMPARE(tableAsTsv(table(2)), QString("position\ttext\n0\ta b\n1\ta b\n"));
    }

    void whatIsSelectedIsCopiedAndStays() {
        ViewTableModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.show(table(5));
        QItemSelectionModel chosen(&model);
        chosen.select(QItemSelection(model.index(1, 0), model.index(2, 1)), QItemSelectionModel::Select);
        QCOMPARE(selectionAsTsv(model, chosen.selection()), QString("1\ta b\n2\ta b"));
        chosen.select(model.index(4, 0), QItemSelectionModel::Select);
        QCOMPARE(selectionAsTsv(model, chosen.selection()), QString("1\ta b\n2\ta b\n4\t"));
        model.renew(table(5));
        QCOMPARE(chosen.selectedIndexes().size(), 5);
        model.renew(table(4));
        QVERIFY(chosen.selection().isEmpty());
    }
};

KVSCOPE_TEST(ViewTableModelTest)
#include "view_table_model_test.moc"
