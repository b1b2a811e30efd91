// The list of the heads that lose most: its numbers align, and another pane's stand beside them.
#include <QtTest>

#include "app/window/panels/worst_heads.h"
#include "app/window/style/number_text.h"
#include "core/metrics/fidelity.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"
#include "views/head_grid/head_grid_data.h"
#include "views/view.h"

#include <QHeaderView>
#include <QTableView>

#include <cmath>
#include <set>
#include <utility>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

constexpr int kValue = 3, kOther = 4, kDifference = 5, kBar = 6;

struct WholeModel : OpenWindow {
    QTableView* table = window.findChild<QTableView*>("worstHeads");

    WholeModel() { QTest::keyClick(&window, Qt::Key_4, Qt::ControlModifier); }
    std::shared_ptr<const HeadGridData> grid() const {
        return dataAs<HeadGridData>(bench.viewInput(viewById("head_grid")));
    }
    bool gridIsThere() const { return grid() && !bench.viewInput(viewById("head_grid")).data.computing; }
    QString heading(int column) const { return table->model()->headerData(column, Qt::Horizontal).toString(); }
    QString title(int column) const { return heading(column).remove(" ↑").remove(" ↓"); }
    QString cell(int row, int column) const { return table->model()->index(row, column).data().toString(); }
    double number(int row, int column) const { return cell(row, column).replace("−", "-").remove('+').toDouble(); }
    bool compares() const { return !table->isColumnHidden(kOther); }
    bool comparesAll() const {
        for (int row = 0; row < table->model()->rowCount(); ++row)
            if (!compares() || cell(row, kOther) == QString::fromUtf8("…")) return false;
        return table->model()->rowCount() > 0;
    }
    bool waitForAll() {
        return until([this] { return gridIsThere() && comparesAll(); });
    }
    void show(const char* quantity) {
        bench.change([&](Session& s) { setViewOption(s, viewById("head_grid").card().id, "quantity", quantity); },
                     "Quantity");
    }
};

int decimals(const QString& number) {
    return number.contains('.') ? static_cast<int>(number.size() - number.indexOf('.')) - 1 : 0;
}

} // namespace

class WorstHeadsTest : public QObject {
    Q_OBJECT

private slots:
    void numbersOfAColumnHaveTheSameDecimals() {
        const auto texts = [](const std::vector<double>& values) {
            QStringList all;
            for (const double value : values) all += NumberColumn(values).text(value);
            return all;
        };
        QCOMPARE(texts({1.1694, 0.9, 0.04}), QStringList({"1.169", "0.900", "0.040"}));
        QCOMPARE(texts({-12.5, 3}), QStringList({QString::fromUtf8("−12.50"), "3.00"}));
        QCOMPARE(texts({248, 249, 1000}), QStringList({"248", "249", "1000"}));
        QCOMPARE(texts({0.00123}), QStringList({"0.001230"}));
        QCOMPARE(texts({3e-7, 2.5e-9}), QStringList({QString::fromUtf8("3.000e−07"), QString::fromUtf8("2.500e−09")}));
        QCOMPARE(texts({0, 0}), QStringList({"0", "0"}));
        QCOMPARE(texts({INFINITY, 0.5})[1], QString("0.5000"));
        // One outlier does not take the digits of the others; what would read 0.000 has an exponent.
        QCOMPARE(texts({0.745, 0.7, 27.2, 0.0004, 0.68, 0.71}),
                 QStringList({"0.745", "0.700", "27.200", QString::fromUtf8("4.0e−4"), "0.680", "0.710"}));
    }

    void theNextPaneStandsBeside() {
        WholeModel open;
        QVERIFY(open.waitForAll());
        QCOMPARE(open.title(kValue), QString("A KeyDiff"));
        QCOMPARE(open.title(kOther), QString("B SnapKV"));
        for (int row = 0; row < open.table->model()->rowCount(); ++row) {
            RunRequest run = open.bench.request()->panes[1].run;
            run.layer = LayerIndex(open.cell(row, 0).toInt());
            const auto result = open.bench.runner().run(run, {});
            const double expected = result->fidelity->meanOutputError[open.cell(row, 1).toUInt()];
            QVERIFY2(std::abs(open.cell(row, kOther).toDouble() - expected) < 6e-4, qPrintable(open.cell(row, kOther)));
            QCOMPARE(decimals(open.cell(row, kOther)), decimals(open.cell(0, kValue)));
            QCOMPARE(decimals(open.cell(row, kValue)), decimals(open.cell(0, kValue)));
        }
        open.bench.change([](Session& s) { s.activePane = 2; }, "Pane"); // after the last the first
        QVERIFY(
            open.until([&] { return open.gridIsThere() && open.comparesAll() && open.title(kOther) == "A KeyDiff"; }));
        QCOMPARE(open.title(kValue), QString("C StreamingLLM"));
    }

    /// A bar needs its length: the outlier of the other pane ends at an arrow.
    void anOutlierLeavesTheBarsTheirLength() {
        WholeModel open;
        open.bench.change(
            [](Session& s) {
                s.panes[1] = {PolicySpec::parse("balancekv_stream"), {}, {}};
                s.panes[0].policy = PolicySpec::parse("compactor");
            },
            "Panes");
        QVERIFY(open.waitForAll());
        double largest = 0, others = 0;
        for (int row = 0; row < open.table->model()->rowCount(); ++row) {
            largest = std::max(largest, open.number(row, kValue));
            others = std::max(others, open.number(row, kOther));
        }
        QVERIFY2(others > 4 * largest, qPrintable(QString("%1, %2").arg(others).arg(largest)));
        open.arrange();
        const QImage bar =
            open.table->viewport()->grab(open.table->visualRect(open.table->model()->index(0, kBar))).toImage();
        const QColor ground = bar.pixelColor(bar.width() - 2, 2);
        int length = 0; // in the row of the largest value, above the square
        for (int x = 0; x < bar.width(); ++x) length += bar.pixelColor(x, bar.height() / 2 - 3) != ground ? 1 : 0;
        QVERIFY2(length > bar.width() / 3, qPrintable(QString("%1 of %2").arg(length).arg(bar.width())));
    }

    /// Who keeps everything scores nothing; the pane after it does.
    void aPaneWithoutTheMeasureIsPassedOver() {
        WholeModel open;
        open.bench.change([](Session& s) { s.panes[1] = {PolicySpec::parse("exact"), {}, {}}; }, "Pane");
        open.show("score_correlation");
        QVERIFY(open.waitForAll());
        QCOMPARE(open.title(kOther), QString("C StreamingLLM"));
    }

    void whatBelongsToNoPaneIsNotCompared() {
        WholeModel open;
        QVERIFY(open.waitForAll());
        open.show("entropy");
        open.settle();
        QVERIFY(open.gridIsThere() && open.grid()->quantity == "entropy");
        QVERIFY(!open.compares());
        QCOMPARE(open.title(kValue), QString("value"));
        open.show("output_error");
        open.bench.change(
            [](Session& s) {
                removePane(s, 2);
                removePane(s, 1);
            },
            "Panes");
        open.settle();
        QVERIFY(open.gridIsThere());
        QCOMPARE(open.title(kValue), QString("A KeyDiff"));
        QVERIFY(!open.compares());
    }

    /// Two panes by name: both errors, their difference, the largest magnitude first.
    void aDifferenceHasBothSides() {
        WholeModel open;
        open.bench.change(
            [](Session& s) {
                for (const auto& [id, text] :
                     {std::pair("quantity", "error_difference"), std::pair("first", "C"), std::pair("second", "A")})
                    setViewOption(s, "head_grid", id, text);
            },
            "Compare");
        QVERIFY(open.waitForAll());
        QCOMPARE(open.title(kValue), QString("C StreamingLLM"));
        QCOMPARE(open.title(kOther), QString("A KeyDiff"));
        double before = INFINITY;
        for (int row = 0; row < open.table->model()->rowCount(); ++row) {
            const double apart = open.number(row, kDifference);
            QVERIFY(std::abs(apart - open.number(row, kValue) + open.number(row, kOther)) < 2e-3);
            QVERIFY(std::abs(apart) <= before + 1e-9);
            before = std::abs(apart);
        }
        QVERIFY(open.grid()->isSigned);
        open.bench.change([](Session& s) { setViewOption(s, "head_grid", "difference", "absolute"); }, "Absolute");
        QVERIFY(open.until([&] { return open.gridIsThere() && !open.grid()->isSigned; }));
        for (const HeadGridData::Row& row : open.grid()->rows)
            for (const double value : row.values) QVERIFY(value >= 0);
        open.bench.change([](Session& s) { setViewOption(s, "head_grid", "second", "C"); }, "Itself");
        open.settle();
        const std::string why = open.bench.viewInput(viewById("head_grid")).data.error;
        QVERIFY2(why.find("compared with itself") != std::string::npos, why.c_str());
    }

    void aClickOnAColumnSorts() {
        WholeModel open;
        QVERIFY(open.waitForAll());
        auto* header = open.table->horizontalHeader();
        for (const int column : {0, kOther, kDifference}) {
            const QPoint at(header->sectionViewportPosition(column) + header->sectionSize(column) / 2, 8);
            for (const bool first : {true, false}) {
                QTest::mouseClick(header->viewport(), Qt::LeftButton, {}, at);
                open.arrange();
                const bool ascending = (column == 0) == first;
                QVERIFY2(open.heading(column).endsWith(ascending ? " ↑" : " ↓"), qPrintable(open.heading(column)));
                QVERIFY(open.heading(kValue) == open.title(kValue)); // sorted by another column
                for (int row = 1; row < open.table->model()->rowCount(); ++row) {
                    const double above = open.number(row - 1, column), here = open.number(row, column);
                    QVERIFY(ascending ? above <= here : above >= here);
                }
            }
        }
    }

    void tabLeavesTheListAndOpensNoHead() {
        WholeModel open;
        QVERIFY(open.waitForAll());
        const Session before = open.bench.session();
        for (const Qt::Key key : {Qt::Key_Tab, Qt::Key_Backtab}) {
            open.table->setFocus(Qt::TabFocusReason);
            QTest::keyClick(open.table, key);
            QVERIFY(!open.table->hasFocus());
            QVERIFY(open.bench.session() == before);
        }
    }

    /// The row of the open head is marked, the arrow keys go on from it and open at once; opened rows get a tick.
    void theArrowKeysKeepTheirPlace() {
        WholeModel open;
        QVERIFY(open.waitForAll());
        const auto isOpen = [&](int row) {
            const Session& now = open.bench.session();
            return now.layer.value == open.number(row, 0) && now.queryHead.value == open.number(row, 1) &&
                   open.table->currentIndex().row() == row && open.table->selectionModel()->isRowSelected(row);
        };
        const auto cellPicture = [&](int row) {
            open.arrange();
            return open.table->viewport()->grab(open.table->visualRect(open.table->model()->index(row, 0))).toImage();
        };
        const QImage fresh = cellPicture(2);
        QTest::mouseClick(open.table->viewport(), Qt::LeftButton, {},
                          open.table->visualRect(open.table->model()->index(2, 1)).center());
        open.settle();
        QVERIFY(isOpen(2));
        for (int row = 3; row < 6; ++row) {
            QTest::keyClick(open.table, Qt::Key_Down);
            open.settle();
            QVERIFY2(isOpen(row), qPrintable(QString::number(open.table->currentIndex().row())));
        }
        QTest::keyClick(open.table, Qt::Key_Up);
        open.settle();
        QVERIFY(isOpen(4));
        QVERIFY(cellPicture(2) != fresh); // no longer marked, but with a tick
        // So have the cells of the grid.
        const auto& opened = open.bench.opened().queryHeads;
        QVERIFY(opened.size() >= 4);
        for (int row = 2; row < 6; ++row)
            QVERIFY(opened.contains({int(open.number(row, 0)), int(open.number(row, 1))}));
        const View& grid = viewById("head_grid");
        const DrawnView drawn = open.bench.drawn(grid);
        const Scene scene =
            grid.buildScene(drawn.input, drawn.options, {.width = 700, .height = 400, .text = &open.text, .range = {}});
        std::set<std::pair<int, int>> dots;
        const auto data = dataAs<HeadGridData>(drawn.input);
        for (const Drawable& item : scene.items)
            if (const auto* dot = std::get_if<CircleItem>(&item)) {
                const PickId cell = pickAt(scene, dot->centre, 0);
                dots.emplace(data->rows[static_cast<std::size_t>(cell.index / data->columns)].layer,
                             static_cast<int>(cell.index % data->columns));
            }
        QCOMPARE(dots, opened);
    }

    /// A view opened as a tab over the grid hides it, not the list.
    void theListGoesOnWithoutTheGrid() {
        WholeModel open;
        QVERIFY(open.waitForAll());
        for (ViewDock* dock : open.window.canvases()->docks())
            if (dock->canvas()->view().card().id == "head_grid") dock->hide();
        open.settle();
        open.bench.change([](Session& s) { s.activePane = 1; }, "Pane");
        QVERIFY(open.waitForAll());
        QVERIFY(open.table->model()->rowCount() > 0);
        QCOMPARE(open.title(kValue), QString("B SnapKV"));
    }

    /// Nobody sees the list, nobody computes for it.
    void aHiddenListAsksForNothing() {
        OpenWindow open;
        open.bench.showView(viewById("head_grid"));
        auto* list = open.window.findChild<WorstHeads*>();
        QVERIFY(!list->isVisible());
        open.settle();
        QVERIFY(dataAs<HeadGridData>(open.bench.viewInput(viewById("head_grid"))));
        QVERIFY(open.window.findChild<QTableView*>("worstHeads")->isColumnHidden(kOther));
        open.bench.hideView(viewById("head_grid"));
    }
};

KVSCOPE_WINDOW_TEST(WorstHeadsTest)
#include "worst_heads_test.moc"
