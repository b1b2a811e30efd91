// What is typed reaches what it was typed for, as the number that it reads as, or is refused.
#include "app/window/actions/window_actions.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/panels/pane_list.h"
#include "app/window/panels/parameter_panel.h"
#include "app/window/panels/policy_panel.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QToolButton>

#include <algorithm>
#include <vector>

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
    /// The row of a pane in the list, which is made anew when a pane changes.
    QPushButton* row(char letter) const {
        for (auto* button : window.findChild<PaneList*>()->findChildren<QPushButton*>())
            if (button->isVisible() && button->accessibleName().startsWith(QString("Pane %1,").arg(letter)))
                return button;
        return nullptr;
    }
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

    /// Its field goes while it is not confirmed, and the next policy has a parameter of that name, too.
    void whatIsTypedForAPolicyIsNotTakenByTheNext() {
        Fields open;
        const auto choose = [&](const char* spec) {
            open.bench.change([&](Session& s) { s.panes[0].policy = PolicySpec::parse(spec); }, "Policy");
        };
        choose("compactor");
        open.type(open.window.policyPanel()->parameters()->row("protect_first")->findChild<QLineEdit*>(), "7");
        choose("keydiff");
        QVERIFY(open.bench.session().panes[0].policy == PolicySpec::parse("keydiff"));
    }

    void whatIsTypedForAPaneIsNotTakenByAnother() {
        Fields open;
        const SessionPane pane{PolicySpec::parse("compactor"), {}, {}};
        open.bench.change([&](Session& s) { s.panes = {pane, pane}; }, "Panes");
        auto* field = open.window.policyPanel()->parameters()->row("protect_first")->findChild<QLineEdit*>();
        const QString before = field->text();
        open.type(field, "7");
        open.bench.change([](Session& s) { s.activePane = 1; }, "Active pane");
        QCOMPARE(field->text(), before);
        emit field->editingFinished();
        for (const SessionPane& one : open.bench.session().panes) QVERIFY(one.policy == pane.policy);
    }

    void aRefusalQuotesWhatWasTyped() {
        Fields open;
        open.type(open.budget(), "200%");
        QTest::keyClick(open.budget(), Qt::Key_Return);
        QVERIFY(open.budget()->property("wrong").toBool());
        const QString said = open.window.notices().messages().join(' ');
        QVERIFY2(said.contains("'200%' is not a share") && !said.contains("2t"), qPrintable(said));
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

    void aValidValueTakesTheRefusalBack() {
        Fields open;
        const auto enter = [&](const char* name, const char* text) {
            open.type(open.named(name), text);
            QTest::keyClick(open.named(name), Qt::Key_Return);
        };
        const QString layer = open.named("Layer")->text();
        enter("Layer", "99");
        const QStringList said = open.window.notices().messages();
        QVERIFY2(said.size() == 1 && said[0].startsWith("The capture has no layer 99. "), qPrintable(said.join('|')));
        enter("Layer", "3");
        QVERIFY(open.window.notices().messages().isEmpty());
        QVERIFY(!open.named("Layer")->property("wrong").toBool());
        enter("Layer", "99");
        enter("KV head", "0"); // another field: the layer that is shown stands again where the wrong one was
        QVERIFY(open.window.notices().messages().isEmpty());
        QCOMPARE(open.named("Layer")->text(), layer);
        QVERIFY(!open.named("Layer")->property("wrong").toBool());
    }

    void thePaneListKeepsTheFocusAndItsPlaceInTheOrder() {
        Fields open;
        open.row('B')->setFocus();
        QTest::keyClick(open.row('B'), Qt::Key_Space);
        QCOMPARE(open.bench.session().activePane, 1);
        open.arrange();
        QVERIFY(open.row('B')->hasFocus());
        const auto tab = [] { QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab); };
        tab(); // the button that removes it
        QVERIFY(open.row('B')->isAncestorOf(QApplication::focusWidget()));
        tab();
        QVERIFY(open.row('C')->hasFocus());
        tab();
        tab();
        QCOMPARE(QApplication::focusWidget()->objectName(), QString("addPolicy"));
        auto* remove = open.row('C')->findChild<QToolButton*>();
        remove->setFocus();
        QTest::keyClick(remove, Qt::Key_Space);
        QCOMPARE(open.bench.session().panes.size(), std::size_t{2});
        open.arrange();
        QVERIFY(open.row('B')->hasFocus()); // what is last now
    }

    void tabGoesThroughTheParametersOfANewPolicy() {
        Fields open;
        open.bench.change([](Session& s) { s.panes[0].policy = PolicySpec::parse("compactor"); }, "Policy");
        open.settle();
        const ParameterPanel* panel = open.window.policyPanel()->parameters();
        const auto isIn = [&] { return panel->isAncestorOf(QApplication::focusWidget()); };
        const auto tab = [] { QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab); };
        open.window.policyPanel()->findChild<QToolButton*>()->setFocus(); // above them
        for (int pressed = 0; pressed < 6 && !isIn(); ++pressed) tab();
        std::vector<int> heights;
        for (; isIn() && heights.size() < 200; tab()) {
            const QWidget* line = QApplication::focusWidget();
            while (line->parentWidget() != panel) line = line->parentWidget();
            heights.push_back(line->y());
        }
        QVERIFY2(heights.size() > 3, qPrintable(QString::number(heights.size())));
        QVERIFY(std::ranges::is_sorted(heights));
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
