// Further captures of the budget curves, chosen in the view's menu and a file dialog, taken away again by a click.
#include "app/window/canvas/view_options.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/one_view.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"
#include "views/curves/curves_data.h"
#include "views/view.h"

#include <QMenu>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::OneView;

namespace {

const QString kFolder = QString::fromStdString(kvscope::testing::sourceDir()) + "/sample_data/";

/// The entries of an option with a menu of its own, as they are when the view's menu opens.
struct OptionMenu {
    QMenu menu;
    QMenu* of = nullptr;
    OptionMenu(OneView& one, const View& view, const QString& label) : menu(one.view.get()) {
        addOptionEntries(&menu, one.bench, view);
        for (QAction* action : menu.actions())
            if (action->menu() && action->text() == label) of = action->menu();
    }
    QAction* entry(const QString& text) const {
        for (QAction* action : of ? of->actions() : QList<QAction*>())
            if (action->text() == text) return action;
        return nullptr;
    }
};

} // namespace

class FurtherCapturesTest : public QObject {
    Q_OBJECT

private slots:
    void capturesAreChosenAndTakenAway() {
        OneView one(viewById("curves"), {"keydiff@0.25"}, {{"seeds", "1"}});
        QVERIFY(one.ready());
        const auto captures = [&] { return dataAs<CurvesData>(one.bench.viewInput(viewById("curves")))->captures; };
        QCOMPARE(captures(), std::size_t{1});
        {
            const OptionMenu options(one, viewById("curves"), "Further captures");
            QVERIFY(options.entry("None") && options.entry("None")->isChecked());
            answerFileDialog(kFolder + "fewshot-1k.h5");
            options.entry("Choose…")->trigger();
        }
        QTRY_VERIFY_WITH_TIMEOUT(one.ready() && captures() == 2, 30000);
        const OptionMenu options(one, viewById("curves"), "Further captures");
        QVERIFY(options.entry("fewshot-1k.h5") && options.entry("fewshot-1k.h5")->isChecked());
        answerFileDialog(kFolder + "records-2k.h5");
        options.entry("Choose…")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(one.ready() && captures() == 3, 30000); // it joins the other
        const OptionMenu three(one, viewById("curves"), "Further captures");
        three.entry("fewshot-1k.h5")->trigger();
        QCOMPARE(viewOptions(one.bench.session(), viewById("curves")).text("captures"),
                 (kFolder + "records-2k.h5").toStdString());
        QTRY_VERIFY_WITH_TIMEOUT(one.ready() && captures() == 2, 30000);
    }

    void aTableTakesThePlaceOfTheOneBefore() {
        OneView one(viewById("calibration"), {"keydiff@0.25"}, {{"table", "/before.csv"}});
        const OptionMenu options(one, viewById("calibration"), "Table of triples");
        QVERIFY(options.entry("before.csv"));
        answerFileDialog(kFolder + "README.md");
        options.entry("Choose…")->trigger();
        QCOMPARE(viewOptions(one.bench.session(), viewById("calibration")).text("table"),
                 (kFolder + "README.md").toStdString());
    }
};

KVSCOPE_WINDOW_TEST(FurtherCapturesTest)
#include "further_captures_test.moc"
