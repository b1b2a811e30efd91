// The panel of a policy's parameters: the paper's few come first, the rest is folded by stage, and what differs is what
// differs from the variant.
#include <QtTest>

#include "app/window/panels/parameter_panel.h"
#include "app/window/panels/policy_panel.h"
#include "app/window/style/appearance.h"
#include "core/policies/policy.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QCheckBox>
#include <QLineEdit>
#include <QPushButton>
#include <QToolButton>

#include <algorithm>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

struct Panel : OpenWindow {
    ParameterPanel* panel = window.policyPanel()->parameters();
    QLineEdit* search = panel->findChild<QLineEdit*>("parameterSearch");

    explicit Panel(const char* spec) { choose(PolicySpec::parse(spec)); }
    void choose(const PolicySpec& spec) {
        bench.change(
            [&](Session& s) {
                s.activePane = 0;
                s.panes[0].policy = spec;
            },
            "Policy");
        arrange();
    }
    const ParameterTable& table() const { return bench.session().panes[0].policy.values.table(); }
    QStringList shown() const { ///< ids from top to bottom
        std::vector<const ParameterRow*> rows;
        for (const ParameterSpec& spec : table())
            if (const ParameterRow* row = panel->row(spec.id); row->isVisible()) rows.push_back(row);
        std::ranges::sort(rows, {}, [](const ParameterRow* row) { return row->y(); });
        QStringList ids;
        for (const ParameterRow* row : rows) ids += QString::fromStdString(row->id());
        return ids;
    }
    QStringList differing() const {
        QStringList ids;
        for (const ParameterSpec& spec : table())
            if (panel->row(spec.id)->differs()) ids += QString::fromStdString(spec.id);
        return ids;
    }
    QPushButton* fold(const QString& name) const {
        for (auto* button : panel->findChildren<QPushButton*>("parameterFold"))
            if (button->text().contains(name)) return button;
        return nullptr;
    }
    void click(QWidget* widget) {
        QTest::mouseClick(widget, Qt::LeftButton);
        arrange();
    }
    QPushButton* resetAll() const {
        for (auto* button : window.policyPanel()->findChildren<QPushButton*>())
            if (button->text() == "Reset all") return button;
        return nullptr;
    }
};

} // namespace

class ParameterPanelTest : public QObject {
    Q_OBJECT

private slots:
    /// The window shows labels, not ids.
    void aRefusalNamesTheLabel() {
        Panel open("keydiff");
        auto* row = const_cast<ParameterRow*>(open.panel->row("window_share"));
        emit row->edited("64", false);
        QCOMPARE(row->errorMessage(), QString("'64' is not a value of Sliding window w. Give a number from 0 to 0.9"));
    }

    void thePapersFewComeFirstAndTheRestIsFolded() {
        Panel open("compactor");
        const QStringList few{"lambda", "sketch_size", "chunk", "protect_first"};
        QCOMPARE(open.shown(), few);
        QVERIFY(open.fold("Features") && open.fold("Score") && open.fold("Selection"));
        open.click(open.fold("Score"));
        const auto inScore = std::ranges::count_if(open.table(), [](const ParameterSpec& spec) {
            return spec.stage == Stage::Combine && spec.id != "lambda";
        });
        QCOMPARE(open.shown().size(), few.size() + inScore);
        QCOMPARE(open.shown().mid(0, few.size()), few);
        QVERIFY(open.shown().contains("z_scope") && !open.shown().contains("route"));
        QVERIFY2(open.fold("Score")->text().contains(QString::number(inScore)), qPrintable(open.fold("Score")->text()));
        open.click(open.fold("Score"));
        QCOMPARE(open.shown(), few);
        open.choose(PolicySpec::parse("keydiff"));
        QCOMPARE(open.shown(), QStringList({"anchor", "metric", "window_share", "prompt_block"}));
    }

    void noFreshVariantDiffersFromItself() {
        Panel open("keydiff:kvpress");
        for (const Policy* policy : allPolicies())
            for (const PolicyVariant& variant : policy->card().variants) {
                open.choose(specOfVariant(policy->card().id, variant.id));
                QVERIFY2(open.differing().isEmpty(), qPrintable(open.differing().join(", ")));
                QVERIFY(!open.resetAll()->isEnabled());
            }
    }

    void aFoldSaysHowManyInItDifferAndResetReachesThem() {
        Panel open("compactor:kvpress");
        PolicySpec spec = open.bench.session().panes[0].policy;
        spec.values.setText("z_floor", "0");
        spec.values.setText("z_scope", "head");
        open.choose(spec);
        QCOMPARE(open.differing(), QStringList({"z_scope", "z_floor"}));
        QVERIFY2(open.fold("Score")->text().contains("2 differ"), qPrintable(open.fold("Score")->text()));
        QVERIFY(!open.fold("Features")->text().contains("differ"));
        open.click(open.fold("Score"));
        open.click(open.panel->row("z_floor")->findChild<QToolButton*>());
        QCOMPARE(open.bench.session().panes[0].policy.values.text("z_floor"), std::string("1e-06"));
        QVERIFY2(open.fold("Score")->text().contains("1 differs"), qPrintable(open.fold("Score")->text()));
        open.click(open.resetAll());
        QVERIFY(open.bench.session().panes[0].policy == specOfVariant("compactor", "kvpress"));
        QVERIFY(!open.fold("Score")->text().contains("differ"));
    }

    void theSearchFindsWhatIsFolded() {
        Panel open("compactor");
        QTest::mouseClick(open.search, Qt::LeftButton);
        QTest::keyClicks(open.search, "deviation");
        open.arrange();
        QCOMPARE(open.shown(), QStringList({"z_sample", "z_floor"}));
        QTest::keyClicks(open.search, "xx");
        open.arrange();
        QVERIFY(open.shown().isEmpty());
        QVERIFY(!open.visibleTexts().filter("No parameter of this policy").isEmpty());
        open.search->clear();
        open.arrange();
        QCOMPARE(open.shown().size(), 4);
    }

    void aSymbolsIndexStandsBelow() {
        Panel open("streaming_llm");
        QString name;
        for (const QLabel* label : open.panel->row("sinks")->findChildren<QLabel*>())
            if (label->text().startsWith("Attention sinks")) name = label->text();
        QVERIFY2(name.contains(">n<sub>s</sub></i>"), qPrintable(name));
        QVERIFY2(name.startsWith("Attention sinks&nbsp;<i"), qPrintable(name)); // on one line with the last word
    }

    void noLabelIsSaidTwice() {
        for (const Policy* policy : allPolicies())
            for (const ParameterSpec& spec : *policy->card().parameters) {
                QVERIFY2(spec.symbol != spec.label, spec.id.c_str());
                const QStringList words =
                    QString::fromStdString(labelAndSymbol(spec) + " " + unitBeside(spec)).toLower().split(' ');
                QCOMPARE(QSet<QString>(words.begin(), words.end()).size(), words.size());
            }
    }

    void aCheckedBoxHasATick() {
        for (const ThemeChoice theme : {ThemeChoice::Light, ThemeChoice::Dark}) {
            Panel open("compactor");
            open.bench.change([&](Session& s) { s.look.theme = theme; }, "Theme");
            open.arrange();
            auto* panel = open.window.policyPanel()->parameters();
            QTest::keyClicks(panel->findChild<QLineEdit*>("parameterSearch"), "value norm");
            open.arrange();
            auto* box = panel->row("value_norm")->findChild<QCheckBox*>();
            QVERIFY(box && box->isVisible() && box->isChecked());
            const QImage image = box->grab().toImage();
            int ink = 0, paper = 0;
            const int middle = image.height() / 2;
            for (int y = middle - 4; y <= middle + 4; ++y)
                for (int x = 3; x < 11; ++x) {
                    const QColor pixel = image.pixelColor(x, y);
                    ink += pixel == qColor(chrome().ink) ? 1 : 0;
                    paper += std::abs(pixel.lightness() - qColor(chrome().paper).lightness()) < 40 ? 1 : 0;
                }
            QVERIFY2(ink > 20 && paper > 5, qPrintable(QString("%1 ink, %2 paper").arg(ink).arg(paper)));
        }
    }
};

KVSCOPE_WINDOW_TEST(ParameterPanelTest)
#include "parameter_panel_test.moc"
