// What the calibration view says of its points' origin: notes of rows from another cut or with other parameters, the
// context of a table, the whole model under an exported figure, and a table that is edited while it is shown.
#include "core/base/atomic_file.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/calibration/calibration_data.h"
#include "views/view.h"

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

std::string under(const Scene& scene) { return scene_checks::textWith(scene, "cut: "); }

} // namespace

class CalibrationNotesTest : public ViewTest {
    Q_OBJECT

    QTemporaryDir m_folder;

    ViewInput inputAt(const char* cut, const std::vector<std::string>& specs, const ParameterValues& options) const {
        ViewInput input = makeInput(needleCapture(), specs, 2, 1);
        input.cut = Cut::resolve(cut, *input.capture);
        fillData(input, m_view, options);
        return input;
    }

    Scene figure(const ViewInput& input, const ParameterValues& options) const {
        Viewport paper = viewport(900, 600, m_text, ThemeId::Paper);
        paper.forExport = true;
        return m_view.buildScene(input, options, paper);
    }

    std::string tableOf(const std::string& context, const char* more = "") const {
        const std::string path = m_folder.path().toStdString() + "/one.csv";
        writeFileAtomically(path, "context,retention,quality\n" + context + ",0.2,0.8\n" + context + ",0.5,0.97\n" +
                                      (*more ? context + more + "\n" : ""));
        return path;
    }

public:
    CalibrationNotesTest() : ViewTest(viewById("calibration"), 900, 600) {}

private slots:
    // Measured with the cut 995 and the variant's window; asked for at the cut 772 with another.
    void rowsOfAnotherCutAndOtherParametersSaySo() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputAt("last:256", {"snapkv:kvpress,window=8@0.25", "keydiff@0.25"}, options);
        const std::string finding = m_view.finding(input, options);
        for (const char* words :
             {". A: ", "was measured with the cut 995, this cut is 772", "this run changes some of its variant"})
            QVERIFY2(contains(finding, words), finding.c_str());
        QVERIFY2(!contains(finding, ". B: "), finding.c_str());
        const ViewTable table = m_view.table(input, options);
        const auto notes = static_cast<int>(std::ranges::find(table.columns, "notes") - table.columns.begin());
        QVERIFY(contains(table.cell(0, notes), "this cut is 772"));
        QVERIFY(table.cell(table.rowCount - 1, notes).empty());
        const Scene scene = figure(input, options);
        QVERIFY2(contains(under(scene), "A measured with its own cut: 995"), under(scene).c_str());
        QVERIFY(scene_checks::says(scene, "A SnapKV†"));
    }

    // With 256 sinks and 256 recents there is nothing to balance at small budgets, and the proxy says so.
    void aProxyThatBalancedNothingSaysSo() {
        const ParameterValues options = optionsOf(m_view, {{"source", "proxy"}});
        const std::string finding = m_view.finding(inputAt("default", {"balancekv@0.25"}, options), options);
        QVERIFY2(contains(finding, "up to retention 0.5") && contains(finding, "nothing was balanced"),
                 finding.c_str());
    }

    void aTableSaysNothingOfParametersThatThePaneChanges() {
        const ParameterValues options =
            optionsOf(m_view, {{"source", "table"}, {"table", tableOf(needleCapture()->info().fileName)}});
        const std::string changed = m_view.finding(inputAt("default", {"snapkv,window=8@0.25"}, options), options);
        QVERIFY2(contains(changed, "does not say with which parameters"), changed.c_str());
        const std::string plain = m_view.finding(inputAt("default", {"snapkv@0.25"}, options), options);
        QVERIFY2(!contains(plain, "parameters"), plain.c_str());
    }

    // Means over all layers and heads: no head is named under the figure.
    void theFigureNamesNoHead() {
        const ParameterValues options = optionsOf(m_view, {{"source", "proxy"}});
        const std::string words = under(figure(inputAt("default", {"snapkv@0.25"}, options), options));
        QVERIFY2(words.starts_with("cut: "), words.c_str());
    }

    void theOneContextOfATableIsNamedWhereItIsAnother() {
        const ParameterValues options = optionsOf(m_view, {{"source", "table"}, {"table", tableOf("other-book.h5")}});
        const ViewInput input = inputAt("default", {"snapkv@0.25"}, options);
        const std::string finding = m_view.finding(input, options);
        QVERIFY2(contains(finding, "A SnapKV (context other-book.h5)"), finding.c_str());
        QVERIFY(scene_checks::says(build(input, options), "other-book"));
    }

    void anEditedTableIsReadAgain() {
        const ParameterValues options = optionsOf(m_view, {{"source", "table"}, {"table", tableOf("a.h5")}});
        const ViewDataRequest request = dataRequest(inputAt("default", {"snapkv@0.25"}, options), options);
        const std::string before = makerFor(m_view)->key(request);
        QCOMPARE(makerFor(m_view)->key(request), before);
        tableOf("a.h5", ",0.7,0.99");
        QVERIFY(makerFor(m_view)->key(request) != before);
    }
};

KVSCOPE_OFFSCREEN_TEST(CalibrationNotesTest)
#include "calibration_notes_test.moc"
