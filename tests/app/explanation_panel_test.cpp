// What a policy does, in a panel of any width: formulas are broken where a reader would break them, and nowhere else.
#include <QTest>

#include "app/window/panels/explanation_panel.h"
#include "app/workbench/step_driver.h"
#include "core/policies/policy.h"
#include "tests/app/open_lesson.h"
#include "tests/support/test_program.h"

#include <QApplication>
#include <QLabel>
#include <QTextBlock>
#include <QTextDocument>
#include <QTextLayout>

using namespace kvscope;
using namespace kvscope::testing;

namespace {

/// A block that is all set in the face of listings; subscripts are fragments of their own.
bool isFormula(const QTextBlock& block) {
    for (auto at = block.begin(); !at.atEnd(); ++at)
        if (!at.fragment().charFormat().fontFamilies().toStringList().contains("Noto Sans Mono")) return false;
    return !block.begin().atEnd();
}

} // namespace

class ExplanationPanelTest : public QObject {
    Q_OBJECT

private slots:
    void everyLineOfAFormulaIsOneLine_data() {
        QTest::addColumn<int>("width");
        for (const int width : {280, 288, 312, 400, 700}) QTest::newRow(qPrintable(QString::number(width))) << width;
    }
    void everyLineOfAFormulaIsOneLine() {
        QFETCH(int, width);
        ManualExecutor executor;
        const auto bench = manualWorkbench(executor);
        StepDriver steps(*bench);
        ExplanationPanel panel(*bench, steps);
        panel.resize(width, 2000);
        panel.setVisible(true);
        const auto* label = panel.findChild<QLabel*>("explanation");
        for (const Policy* policy : allPolicies()) {
            const std::string& id = policy->card().id;
            bench->change([&](Session& s) { s.panes = {{specOfVariant(id, {}), {}, {}}}; }, "Policy");
            QTextDocument page;
            page.setDocumentMargin(0); // as a label has it
            page.setHtml(label->text());
            page.setTextWidth(label->width());
            QVERIFY2(page.idealWidth() <= label->width(), id.c_str());
            int formulas = 0;
            for (QTextBlock block = page.begin(); block.isValid(); block = block.next()) {
                if (!isFormula(block)) continue;
                ++formulas;
                QVERIFY2(block.layout()->lineCount() == 1, qPrintable(block.text()));
            }
            QVERIFY2(formulas > 0, id.c_str());
        }
    }

    /// The picture stays until the one of another cut is there, and so does what is said of it.
    void factsAreOfThePictureThatIsDrawn() {
        OpenLesson lesson("quotient");
        const View& view = viewById("merge_tree");
        lesson.bench->showView(view);
        lesson.executor.settle();
        StepDriver steps(*lesson.bench);
        steps.prefer(view);
        lesson.bench->change([](Session& s) { s.look.cursor = {}; }, "Read all");
        lesson.executor.settle();
        ExplanationPanel panel(*lesson.bench, steps);
        panel.resize(400, 2000);
        panel.setVisible(true);
        lesson.executor.settle();
        QCoreApplication::processEvents();
        const auto said = [&] { return panel.findChild<QWidget*>("runFacts")->findChildren<QLabel*>(); };
        const auto texts = [&] {
            QStringList all;
            for (const QLabel* label : said()) all += label->text();
            return all;
        };
        const QStringList before = texts();
        QVERIFY(lesson.bench->drawn(view).input.data.value != nullptr);
        QVERIFY(!before.isEmpty());
        lesson.bench->change([](Session& s) { s.cut = "last:200"; }, "Cut");
        QCoreApplication::processEvents();
        QVERIFY(lesson.bench->drawn(view).isOutdated);
        QCOMPARE(texts(), before);
        lesson.executor.settle();
        QCoreApplication::processEvents();
        QVERIFY(!lesson.bench->drawn(view).isOutdated);
        QVERIFY(texts() != before);
    }
};

KVSCOPE_OFFSCREEN_WIDGETS_TEST(ExplanationPanelTest)
#include "explanation_panel_test.moc"
