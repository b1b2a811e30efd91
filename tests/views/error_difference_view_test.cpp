// Error per query: differences against the results, the winner's colour on its side of zero, and the sentence.
#include "app/export/scene_export.h"
#include "core/base/error.h"
#include "core/metrics/fidelity.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/colour_scale.h"
#include "views/common/policy_style.h"
#include "views/common/value_range.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace kvscope;
using namespace kvscope::view_fixture;
using kvscope::scene_checks::boxesBelowTitle;

namespace {

ViewInput measuredInput(const std::vector<std::string>& specs) {
    ViewInput input = needleInput(specs);
    for (std::size_t i = 0; i < specs.size(); ++i) input.panes[i].result = measured(specs[i], 3);
    return input;
}

/// Gives the pane a result of its own with the fidelity that `change` makes of a copy of the pane's.
template <class Change> void changeFidelity(ViewInput& input, std::size_t pane, const Change& change) {
    auto result = std::make_shared<RunResult>(*input.panes[pane].result);
    auto fidelity = std::make_shared<Fidelity>(*result->fidelity);
    change(*fidelity);
    result->fidelity = std::move(fidelity);
    input.panes[pane].result = std::move(result);
}

/// Two panes of three queries whose errors are set by hand; the second query of B is skipped.
ViewInput handInput() {
    ViewInput input = measuredInput({"keydiff@0.25", "snapkv@0.25"});
    const std::vector<std::vector<float>> errors = {{0.1F, 0.3F, 0.5F}, {0.4F, NAN, 0.3F}};
    for (std::size_t pane = 0; pane < 2; ++pane)
        changeFidelity(input, pane, [&](Fidelity& fidelity) {
            fidelity = {};
            fidelity.firstQuery = 1000;
            fidelity.queryCount = 3;
            fidelity.outputError = fidelity.retainedMass = {{8, 3}, std::vector<float>(24, 0.5F)};
            std::ranges::copy(errors[pane], fidelity.outputError.data.begin() + 4 * 3); // query head 4
        });
    return input;
}

QString joined(const std::vector<std::string>& texts) {
    QStringList list;
    for (const std::string& text : texts) list << QString::fromStdString(text);
    return list.join(" | ");
}

} // namespace

class ErrorDifferenceViewTest : public ViewTest {
    Q_OBJECT

public:
    ErrorDifferenceViewTest() : ViewTest(viewById("error_difference")) {}

private slots:
    // Two captures: a height means the same in both pictures.
    void picturesSideBySideHaveOneVerticalAxis() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput a = handInput();
        ViewInput b = a;
        for (const std::size_t pane : {0, 1})
            changeFidelity(b, pane, [](Fidelity& fidelity) {
                for (float& error : fidelity.outputError.data) error *= 2;
            });
        const auto heightOf = [&](const ViewInput& input, const ParameterValues& of) {
            const Scene scene = m_view.buildScene(input, of, viewport(600, 300, m_text));
            return boxesBelowTitle(scene, policyStyle("keydiff", ThemeId::Light).colour).at(0)->box.height;
        };
        QVERIFY(std::abs(heightOf(b, options) / heightOf(a, options) - 1) < 1e-6); // each fills its own axis
        const ParameterValues shared = withCommonRange(m_view, {&a, &b}, options);
        QVERIFY(std::abs(heightOf(b, shared) / heightOf(a, shared) - 2) < 1e-6);
        QCOMPARE(ValueRange::parse(shared.text(kValueRangeOption)).quantity, std::string("output_error"));
        QVERIFY_THROWS_EXCEPTION(Error, optionsOf(m_view, {{"range", "entropy:0..1"}}));
    }

    // A wins query 1000 by 0.3, query 1001 has no answer of B, B wins query 1002 by 0.2.
    void theWinnersBarStandsOnItsSide() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = handInput();
        const Scene scene = m_view.buildScene(input, options, viewport(600, 300, m_text));
        const auto above = boxesBelowTitle(scene, policyStyle("keydiff", ThemeId::Light).colour),
                   below = boxesBelowTitle(scene, policyStyle("snapkv", ThemeId::Light).colour);
        QCOMPARE(above.size(), std::size_t{1});
        QCOMPARE(below.size(), std::size_t{1});
        const double zero = above[0]->box.bottom();
        QVERIFY(std::abs(below[0]->box.y - zero) < 1e-9);
        QVERIFY(std::abs(below[0]->box.height / above[0]->box.height - 0.2 / 0.3) < 1e-6);
        QVERIFY(above[0]->box.x < below[0]->box.x);
        QCOMPARE(m_view.finding(input, options),
                 std::string("A KeyDiff is better on 1 of 2 queries of query head 4, by 0.05 of error on average; 1 "
                             "query skipped"));
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.rowCount, std::int64_t{3});
        QVERIFY(std::abs(std::stod(table.cell(0, 4)) - 0.3) < 1e-6);
        QCOMPARE(table.cell(1, 4), std::string());
    }

    // The cut is the same: another one is no remedy.
    void whereAllQueriesAreSkippedTheCutIsNotBlamed() {
        ViewInput input = handInput();
        changeFidelity(input, 1, [](Fidelity& fidelity) { std::ranges::fill(fidelity.outputError.data, NAN); });
        const std::string finding = m_view.finding(input, optionsOf(m_view));
        QVERIFY2(finding.starts_with("Every query is skipped") && finding.find("cut") == std::string::npos,
                 finding.c_str());
    }

    void exchangingThePanesTurnsThePictureOver() {
        const ViewInput input = handInput();
        const ParameterValues turned = optionsOf(m_view, {{"above", "B"}, {"below", "A"}});
        QVERIFY(std::abs(std::stod(m_view.table(input, turned).cell(0, 4)) + 0.3) < 1e-6);
        QVERIFY(m_view.finding(input, turned).find("B SnapKV is better on 1") == 0);
        QVERIFY(m_view.finding(input, turned).find("yet worse by 0.05") != std::string::npos);
    }

    void numbersAreThoseOfTheResults() {
        const ViewInput input = measuredInput({"keydiff@0.25", "snapkv@0.25"});
        const auto &a = *input.panes[0].result->fidelity, &b = *input.panes[1].result->fidelity;
        const ViewTable one = m_view.table(input, optionsOf(m_view));
        const ViewTable mass =
            m_view.table(input, optionsOf(m_view, {{"measure", "retained_mass"}, {"heads", "mean"}}));
        QCOMPARE(one.rowCount, std::int64_t{33});
        for (std::int64_t query = 0; query < 33; ++query) {
            const auto at = [&](const HostTensor& table, std::int64_t head) {
                return static_cast<double>(table.data[static_cast<std::size_t>(head * 33 + query)]);
            };
            QVERIFY(std::abs(std::stod(one.cell(query, 4)) - (at(b.outputError, 4) - at(a.outputError, 4))) < 1e-6);
            double difference = 0;
            for (std::int64_t head = 4; head < 8; ++head)
                difference += (at(a.retainedMass, head) - at(b.retainedMass, head)) / 4;
            QVERIFY(std::abs(std::stod(mass.cell(query, 4)) - difference) < 1e-6);
        }
    }

    void readOutNamesTheQuery() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = handInput();
        const Scene scene = m_view.buildScene(input, options, viewport(600, 300, m_text));
        const PointFacts facts =
            m_view.factsAt(input, options, scene, {scene.plot.x + 0.5 * scene.plot.width, scene.plot.y + 20});
        QCOMPARE(facts.token, TokenIndex{1001});
        QCOMPARE(facts.rows[1].second, std::string("0.3"));
        QCOMPARE(facts.rows[2].second, std::string("skipped"));
        QCOMPARE(pickAt(scene, {scene.plot.x + 10, scene.plot.y + 10}, 0).kind, PickId::Kind::Cell);
    }

    // A tick is a query: the middle of its bar, whatever the width of the bars, and none stands beyond the last one.
    void ticksStandAtTheMiddlesOfBars() {
        const ViewInput input = measuredInput({"keydiff@0.25", "snapkv@0.25"});
        const ViewTable table = m_view.table(input, optionsOf(m_view));
        for (const QSize size : {QSize(331, 150), QSize(620, 240), QSize(1780, 260)}) {
            const Scene scene = build(input, optionsOf(m_view), size.width(), size.height());
            std::size_t ticks = 0;
            for (const Drawable& item : scene.items) {
                const auto* text = std::get_if<TextItem>(&item);
                if (!text || text->style.face != FontFace::Monospace || text->position.y < scene.plot.bottom())
                    continue;
                std::string digits = text->text;
                std::erase(digits, ',');
                const int query = std::stoi(digits), row = query - std::stoi(table.cell(0, 0));
                QVERIFY2(row >= 0 && row < table.rowCount, text->text.c_str());
                const Colour colour =
                    policyStyle(std::stod(table.cell(row, 4)) > 0 ? "keydiff" : "snapkv", ThemeId::Light).colour;
                const double pitch = scene.plot.width / double(table.rowCount);
                const auto bars = boxesBelowTitle(scene, colour);
                const auto bar = std::find_if(bars.begin(), bars.end(), [&](const RectangleItem* b) {
                    return b->box.width < 2 * pitch &&
                           std::abs(b->box.x + b->box.width / 2 - text->position.x) < 0.26 * pitch;
                });
                QVERIFY2(bar != bars.end(), text->text.c_str());
                QCOMPARE(
                    m_view.factsAt(input, optionsOf(m_view), scene, {text->position.x - 0.4 * pitch, scene.plot.y + 1})
                        .token,
                    TokenIndex(query));
                QCOMPARE(
                    m_view.factsAt(input, optionsOf(m_view), scene, {text->position.x + 0.4 * pitch, scene.plot.y + 1})
                        .token,
                    TokenIndex(query));
                ++ticks;
            }
            QVERIFY(ticks >= 3);
        }
    }

    // The dashed line is named with its value, to three decimals, or fewer digits where those would be zeros.
    void theMeanIsNamedWithItsValue() {
        ViewInput input = handInput(); // 0.3 and -0.2 over two queries
        const auto legendIn = [&] { return scene_checks::textsOf(build(input, optionsOf(m_view), 620, 300)); };
        auto texts = legendIn();
        QVERIFY2(std::count(texts.begin(), texts.end(), std::string("mean +0.050")) == 1, qPrintable(joined(texts)));
        texts = scene_checks::textsOf(
            m_view.buildScene(input, optionsOf(m_view, {{"above", "B"}, {"below", "A"}}), viewport(331, 150, m_text)));
        QVERIFY2(std::count(texts.begin(), texts.end(), std::string("mean \u22120.050")) == 1,
                 qPrintable(joined(texts)));
        for (std::size_t pane = 0; pane < 2; ++pane)
            changeFidelity(input, pane, [&](Fidelity& fidelity) {
                fidelity.outputError = {{8, 3}, std::vector<float>(24, pane == 0 ? 0.0F : 1.5e-5F)};
            });
        texts = legendIn();
        QVERIFY2(std::count(texts.begin(), texts.end(), std::string("mean +1.5e\u22125")) == 1,
                 qPrintable(joined(texts)));
    }

    // Two of thirty queries differ by 250, the others by 1: the axis ends where the others are seen, and says so.
    void queriesFarBeyondTheOthersAreMarkedAtTheEdge() {
        ViewInput input = handInput();
        for (std::size_t pane = 0; pane < 2; ++pane)
            changeFidelity(input, pane, [&](Fidelity& fidelity) {
                fidelity.queryCount = 30;
                fidelity.outputError = {{8, 30}, std::vector<float>(8 * 30, pane == 0 ? 1.0F : 2.0F)};
                for (const std::size_t query : {7, 21})
                    fidelity.outputError.data[4 * 30 + query] = pane == 0 ? 1.0F : query == 7 ? 251.0F : 201.0F;
            });
        const auto marksOf = [&](const Scene& scene) {
            return std::count_if(scene.items.begin(), scene.items.end(), [](const Drawable& item) {
                const auto* mark = std::get_if<PolygonItem>(&item);
                return mark && mark->points.size() == 3 && mark->fill == themeOf(ThemeId::Light).ink;
            });
        };
        const std::string note = "▲ 2 queries beyond the axis, up to 250";
        for (const QSize size : {QSize(317, 240), QSize(620, 420), QSize(900, 700)}) {
            const Scene most =
                m_view.buildScene(input, optionsOf(m_view), viewport(size.width(), size.height(), m_text));
            QCOMPARE(most.yMax, 1.08 * 1.5);
            QCOMPARE(marksOf(most), std::ptrdiff_t{2});
            const auto texts = scene_checks::textsOf(most);
            QVERIFY(std::find(texts.begin(), texts.end(), note) != texts.end());
            QCOMPARE(scene_checks::overlappingTexts(most, m_text), QStringList());
        }
        const Scene all = m_view.buildScene(input, optionsOf(m_view, {{"shown", "all"}}), viewport(620, 420, m_text));
        QCOMPARE(all.yMax, 1.08 * 250);
        QCOMPARE(marksOf(all), std::ptrdiff_t{0});
        const Scene turned =
            m_view.buildScene(input, optionsOf(m_view, {{"above", "B"}, {"below", "A"}}), viewport(620, 420, m_text));
        const auto texts = scene_checks::textsOf(turned);
        QVERIFY(std::ranges::count(texts, "▼ 2 queries beyond the axis, down to \u2212250") == 1);
    }

    // More queries than pixels: each pixel shows the largest advantage on either side, and nobody is lost.
    void crowdedQueriesKeepTheirExtremes() {
        ViewInput input = handInput();
        for (std::size_t pane = 0; pane < 2; ++pane)
            changeFidelity(input, pane, [&](Fidelity& fidelity) {
                fidelity.firstQuery = 0;
                fidelity.queryCount = 5000;
                fidelity.outputError = {{8, 5000}, std::vector<float>(8 * 5000, 0.1F)};
                fidelity.outputError.data[4 * 5000 + 2345] = pane == 0 ? 0.1F : 0.9F;
                fidelity.outputError.data[4 * 5000 + 2346] = pane == 0 ? 0.5F : 0.1F;
            });
        const Scene scene = m_view.buildScene(input, optionsOf(m_view), viewport(400, 300, m_text));
        const auto above = boxesBelowTitle(scene, policyStyle("keydiff", ThemeId::Light).colour),
                   below = boxesBelowTitle(scene, policyStyle("snapkv", ThemeId::Light).colour);
        QVERIFY(above.size() == 1 && below.size() == 1);
        QVERIFY(std::abs(above[0]->box.height / below[0]->box.height - 2) < 1e-5 && above[0]->box.width >= 1);
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(300, 220), QSize(300, 138), QSize(930, 260), QSize(1400, 900)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        const ViewInput input = measuredInput({"keydiff@0.25", "keydiff@0.5"});
        QCOMPARE(misplacedTexts(m_view, input, optionsOf(m_view), size, m_text), QStringList());
    }

    /// In the row under the panes there is room for few numbers, and 0 alone would be no scale.
    void aLowPictureHasAScaleOnBothSides() {
        const ViewInput input = measuredInput({"snapkv@0.1", "keydiff@0.1"});
        for (const int height : {130, 150, 170}) {
            const Scene scene = m_view.buildScene(input, optionsOf(m_view), viewport(430, height, m_text));
            const auto texts = scene_checks::textsOf(scene);
            QVERIFY2(std::any_of(texts.begin(), texts.end(),
                                 [](const std::string& text) { return text.starts_with("\u2212"); }),
                     qPrintable(QString("%1: %2").arg(height).arg(joined(texts))));
            const QStringList over = scene_checks::overlappingTexts(scene, m_text);
            QVERIFY2(over.isEmpty(), qPrintable(over.join("; ")));
        }
    }

    void thePictureShowsBothColours() {
        const ViewInput input = measuredInput({"keydiff@0.25", "snapkv@0.25"});
        const QImage image = renderScene(m_view.buildScene(input, optionsOf(m_view), viewport(600, 300, m_text)), 1);
        int teal = 0, olive = 0;
        for (int y = 28; y < image.height(); ++y)
            for (int x = 60; x < image.width(); ++x) {
                teal += image.pixelColor(x, y) == QColor(0x03, 0x65, 0x69);
                olive += image.pixelColor(x, y) == QColor(0x5D, 0x50, 0x04);
            }
        QVERIFY2(teal > 300 && olive > 300, qPrintable(QString("%1 teal, %2 olive").arg(teal).arg(olive)));
    }

    void emptyStatesSayWhatIsMissing() {
        const ParameterValues options = optionsOf(m_view);
        QVERIFY(m_view.finding({}, options).find("Open one") != std::string::npos);
        QVERIFY(m_view.finding(measuredInput({"keydiff@0.25"}), options).find("There is no pane B") == 0);
        QVERIFY(m_view.finding(handInput(), optionsOf(m_view, {{"below", "A"}})).find("choose two panes") !=
                std::string::npos);
        ViewInput apart = handInput(); // A is evaluated on queries 1000 to 1002, B by others
        changeFidelity(apart, 1, [](Fidelity& fidelity) { fidelity.firstQuery = 1010; });
        QVERIFY(m_view.finding(apart, options).find("No query evaluates both panes") == 0);
        QCOMPARE(m_view.table(apart, options).rowCount, std::int64_t{0});
        QVERIFY(m_view.finding(needleInput({"keydiff@0.25", "snapkv@0.25"}), options).find("capture queries") !=
                std::string::npos);
    }
};

KVSCOPE_OFFSCREEN_TEST(ErrorDifferenceViewTest)
#include "error_difference_view_test.moc"
