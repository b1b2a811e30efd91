// What is typed reaches what it was typed for, as the number that it reads as, or is refused.
#include "app/window/actions/window_actions.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/panels/parameter_panel.h"
#include "app/window/panels/policy_panel.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QLineEdit>
#include <QSettings>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

struct Fields : OpenWindow {
    QLineEdit* named(const QString& accessibleName) const {
        for (auto* field : window.findChildren<QLineEdit*>())
            if (field->accessibleName() == accessibleName) return field;
        return nullptr;
    }
    QLineEdit* budget() const { return window.budgetBar()->findChild<QLineEdit*>("budgetTokens"); }
    std::string budgetOf(std::size_t pane) const { return effectiveBudget(bench.session(), pane).text(); }
    /// Replaces the text and confirms nothing.
    static void type(QLineEdit* field, const QString& text) {
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, text);
    }
};

} // namespace

class WindowTypingTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    void aTypedBudgetStaysInThePaneItWasTypedFor() {
        Fields open;
        open.bench.change([](Session& s) { linkPanes(s, false); }, "Unlink");
        const std::string before = open.budgetOf(2);
        open.type(open.budget(), "100");
        QTest::mouseClick(open.pane(2)->header(), Qt::LeftButton, {}, QPoint(5, 5));
        QCOMPARE(open.bench.session().activePane, 2);
        QCOMPARE(open.budgetOf(0), std::string("100t"));
        QCOMPARE(open.budgetOf(2), before);
    }

    void closingForgetsAPlaceThatWasNotConfirmed() {
        Fields open;
        for (const char* name : {"Layer", "KV head", "query head"}) {
            open.bench.openCapture(kvscope::testing::kSample);
            open.waitForResults();
            open.type(open.named(name), "1");
            open.window.actions()->byName("close")->trigger();
            open.finish();
            QVERIFY(!open.bench.capture());
            QVERIFY(open.window.notices().messages().isEmpty());
        }
    }

    void aDecimalCommaIsRefused() {
        Fields open;
        for (const char* typed : {"0,25", "25,5%", "1,00", "0,250"}) {
            open.type(open.budget(), typed);
            QTest::keyClick(open.budget(), Qt::Key_Return);
            QVERIFY2(open.budget()->property("wrong").toBool(), typed);
            QCOMPARE(open.bench.session().budget.text(), std::string("0.25"));
            QCOMPARE(open.window.notices().messages().filter("comma").size(), 1);
        }
        open.bench.change([](Session& s) { s.panes[0].policy = PolicySpec::parse("compactor"); }, "Policy");
        ParameterRow* row = open.window.policyPanel()->parameters()->row("lambda");
        const std::string before = open.bench.session().panes[0].policy.values.text("lambda");
        open.type(row->findChild<QLineEdit*>(), "0,7");
        QTest::keyClick(row->findChild<QLineEdit*>(), Qt::Key_Return);
        QVERIFY2(row->errorMessage().contains("comma"), qPrintable(row->errorMessage()));
        QCOMPARE(open.bench.session().panes[0].policy.values.text("lambda"), before);
    }

    /// The text of a larger field than the sample's shows thousands, and is typed again as it is shown.
    void commasOfThousandsAreNoPartOfANumber() {
        Fields open;
        ParameterRow* row = nullptr;
        open.bench.change([](Session& s) { s.panes[0].policy = PolicySpec::parse("compactor"); }, "Policy");
        row = open.window.policyPanel()->parameters()->row("chunk");
        open.type(row->findChild<QLineEdit*>(), "1,024");
        QTest::keyClick(row->findChild<QLineEdit*>(), Qt::Key_Return);
        QVERIFY2(row->errorMessage().isEmpty(), qPrintable(row->errorMessage()));
        QCOMPARE(open.bench.session().panes[0].policy.values.integer("chunk"), 1024);
    }

    void anotherLookKeepsTheFocus() {
        Fields open;
        open.budget()->setFocus();
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Dark; }, "Theme");
        open.arrange();
        QCOMPARE(QApplication::focusWidget(), open.budget());
        QVERIFY(open.budget()->isVisible());
    }
};

KVSCOPE_WINDOW_TEST(WindowTypingTest)
#include "window_typing_test.moc"
