// The view of the theory beside the measurement, on the sample.
#include "app/export/scene_export.h"
#include "core/metrics/measure_values.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/theory_fixture.h"
#include "tests/views/view_test.h"
#include "views/scene/axes.h"
#include "views/theory/theory_data.h"
#include "views/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

using namespace kvscope;
using namespace kvscope::scene_checks;
using namespace kvscope::theory_fixture;
using namespace kvscope::view_fixture;

namespace {

const std::string kPolicies[] = {"balancekv@0.25",
                                 "balancekv_stream@0.25",
                                 "subgen,delta_quantile=0.2@0.25",
                                 "compactor,sketch_size=16@0.25",
                                 "leverage,sketch_size=16@0.25",
                                 "keydiff@0.25"};

} // namespace

class TheoryViewTest : public ViewTest {
    Q_OBJECT

    ParameterValues m_options{m_view.card().options};

    ViewInput input(const std::string& spec) { return inputFor(m_view, {spec}, m_options); }

public:
    TheoryViewTest() : ViewTest(viewById("theory")) {}

private slots:
    void marksStandWhereTheirMarginIs() {
        const ViewInput in = input("compactor,sketch_size=16@0.25");
        const auto data = dataAs<TheoryData>(in);
        const Scene scene = m_view.buildScene(in, m_options, viewport(800, 400, m_text));
        int marks = 0;
        for (std::size_t i = 0; i < data->rows.size(); ++i) {
            const TheoryRow& row = data->rows[i];
            if (row.kvHead != kHead || !row.hasMargin()) continue;
            const std::vector<std::string> texts =
                textsOf(scene); // a bound that is not kept is not written as "1.39 ≤ 0.5"
            const std::string bound =
                formatShort(row.worst) + (row.margin() >= 1 ? " ≤ " : " > ") + formatShort(row.demanded);
            QVERIFY(row.kind != TheoryRow::Kind::Bound || std::find(texts.begin(), texts.end(), bound) != texts.end());
            const PickId wanted{PickId::Kind::Cell, static_cast<std::int64_t>(i)};
            for (const Drawable& item : scene.items) {
                const auto* circle = std::get_if<CircleItem>(&item);
                const auto* square = std::get_if<RectangleItem>(&item);
                const bool round = circle && circle->pick == wanted, angular = square && square->pick == wanted;
                if (!round && !angular) continue;
                ++marks;
                QCOMPARE(round, row.margin() >= 1);
            }
        }
        QCOMPARE(marks, 4); // two demands, two bounds
        const std::string finding = m_view.finding(in, m_options);
        QVERIFY2(finding.starts_with("0 of 2 demands of the theorems are met (sketch k asks ") &&
                     finding.find("1 of 2 bounds has no measurement beyond it") != std::string::npos,
                 finding.c_str());
    }

    // In a narrow picture the words go before the setting does.
    void aDemandKeepsItsSetting() {
        const ViewInput in = input("subgen@0.25");
        const auto textsAt = [&](double width) {
            return textsOf(m_view.buildScene(in, m_options, viewport(width, 300, m_text)));
        };
        const auto count = [](const std::vector<std::string>& texts, const std::string& begin) {
            return std::ranges::count_if(texts, [&](const std::string& text) {
                return text.starts_with(begin) && text.find(", set 4") != std::string::npos;
            });
        };
        QCOMPARE(count(textsAt(800), "asks "), 1);
        const auto narrow = textsAt(340);
        QCOMPARE(count(narrow, "asks "), 0);
        QCOMPARE(count(narrow, ""), 1);
        QVERIFY(std::ranges::none_of(narrow, [](const std::string& text) { return text.starts_with("asks 8"); }));
    }

    // What a row says about another ε is what the table says when it is asked for that ε.
    void rowsKnowWhatOtherErrorsAskFor() {
        const std::size_t at = 7;
        const double epsilon = theoryEpsilons()[at];
        QVERIFY(theoryEpsilons().front() == 0.01 && near(theoryEpsilons().back(), 0.99));
        int moved = 0;
        for (const char* spec : {"balancekv_stream@0.25", "subgen,delta_quantile=0.2@0.25",
                                 "compactor,sketch_size=16@0.25", "keydiff@0.25"}) {
            const auto rows = rowsOf(spec), asked = rowsOf(spec, {epsilon, 0.01});
            QCOMPARE(rows.size(), asked.size());
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const bool moves = !rows[i].overEpsilon.empty();
                moved += moves ? 1 : 0;
                QVERIFY2(near(moves ? rows[i].overEpsilon[at] : rows[i].demanded, asked[i].demanded) ||
                             std::isnan(asked[i].demanded),
                         rows[i].quantity.c_str());
                QVERIFY(!moves || rows[i].quantity == "levels T" ||
                        rows[i].overEpsilon.front() != rows[i].overEpsilon.back());
            }
        }
        QVERIFY(moved >= 2 * (3 + 3 + 4)); // two KV heads
    }

    void linesOverEpsilonPassTheMarksBelow() {
        const ViewInput in = input("compactor,sketch_size=16@0.25");
        const auto linesOf = [&](double height) {
            std::vector<PolylineItem> lines;
            for (const Drawable& item : m_view.buildScene(in, m_options, viewport(800, height, m_text)).items)
                if (const auto* line = std::get_if<PolylineItem>(&item);
                    line && line->points.size() == theoryEpsilons().size())
                    lines.push_back(*line);
            return lines;
        };
        QVERIFY(linesOf(300).empty()); // no room
        const auto lines = linesOf(700);
        const auto data = dataAs<TheoryData>(in);
        std::vector<const TheoryRow*> rows;
        for (const TheoryRow& row : data->rows)
            if (row.kvHead == kHead && row.hasMargin()) rows.push_back(&row);
        QCOMPARE(lines.size(), rows.size());
        // Heights are logarithms of margins: a ratio of differences does not depend on the axis.
        const auto decades = [&](std::size_t row, std::size_t i) {
            return std::log10(rows[row]->marginAgainst(rows[row]->overEpsilon[i]));
        };
        const double drawn =
            (lines[0].points[20].y - lines[2].points[10].y) / (lines[1].points[15].y - lines[3].points[5].y);
        QVERIFY(near(drawn, (decades(0, 20) - decades(2, 10)) / (decades(1, 15) - decades(3, 5)), 1e-6));
        QVERIFY(lines[0].points[3].x < lines[0].points[4].x);
    }

    // One set of ticks: a line of the grid over every label, at every size, and labels in low docks too.
    void everyLabelHasItsLineOfTheGrid() {
        for (const QSize size : {QSize(940, 126), QSize(345, 130), QSize(490, 150), QSize(1181, 477)}) {
            const Scene scene =
                m_view.buildScene(input("keydiff@0.25"), m_options, viewport(size.width(), size.height(), m_text));
            std::vector<double> lines, labels;
            for (const Drawable& item : scene.items) {
                const auto* line = std::get_if<PolylineItem>(&item);
                if (line && line->points.front().x == line->points.back().x) lines.push_back(line->points.front().x);
                const auto* text = std::get_if<TextItem>(&item);
                if (text && text->style.face == FontFace::Monospace && text->horizontal == HorizontalAlign::Centre)
                    labels.push_back(text->position.x);
            }
            QVERIFY(labels.size() >= 3);
            QCOMPARE(labels.size(), lines.size());
            for (std::size_t i = 0; i < labels.size(); ++i) QVERIFY(std::abs(labels[i] - lines[i]) <= 1);
        }
    }

    /// A note goes on below the numbers to the right edge.
    void aNoteHasTheWidthOfItsRow() {
        const Scene scene = m_view.buildScene(input("compactor@0.25"), m_options, viewport(435, 520, m_text));
        double right = 0;
        for (const Drawable& item : scene.items)
            if (const auto* text = std::get_if<TextItem>(&item); text && text->text.starts_with("more columns than"))
                right = text->position.x + m_text.measure(text->text, text->style).width;
        QVERIFY2(right > 310, qPrintable(QString::number(right))); // the scale ends at 297
    }

    // At this head Theorem 3.2 says nothing: no head has a mark there. The marks of other heads are drawn where a line
    // explains them.
    void rowsWithoutAStatementHaveNoMark() {
        const ViewInput in = input("keydiff@0.25");
        const auto data = dataAs<TheoryData>(in);
        for (const double width : {345.0, 1181.0}) {
            const Scene scene = m_view.buildScene(in, m_options, viewport(width, 300, m_text));
            int others = 0;
            for (const Drawable& item : scene.items)
                if (const auto* circle = std::get_if<CircleItem>(&item);
                    circle && circle->pick.kind == PickId::Kind::Cell) {
                    const TheoryRow& row = data->rows[static_cast<std::size_t>(circle->pick.index)];
                    QVERIFY(row.theorem != "KeyDiff Thm 3.2");
                    others += row.kvHead != kHead;
                }
            const std::vector<std::string> texts = textsOf(scene);
            const bool explained = std::find(texts.begin(), texts.end(), "other KV heads of the layer") != texts.end();
            QCOMPARE(explained, width > 1000);
            QCOMPARE(others, explained ? 1 : 0);
        }
    }

    void numbersHaveTheirUnitAndTheSentenceIsTrue() {
        const ViewInput in = input("keydiff@0.25");
        const std::vector<std::string> texts = textsOf(m_view.buildScene(in, m_options, viewport(800, 300, m_text)));
        QVERIFY(std::find_if(texts.begin(), texts.end(), [](const std::string& t) {
                    return t.find("° ≤ ") != std::string::npos && t.ends_with("°");
                }) != texts.end());
        QCOMPARE(
            m_view.finding(in, m_options),
            std::string(
                "No theorem about KeyDiff asks for a setting; on this capture the one measured value lies within its "
                "bound; one theorem says nothing at this head (needs cos(k̄, q̄) < 0 < cos(k*, q̄))"));
        QVERIFY(std::find(texts.begin(), texts.end(), "needs cos(k̄, q̄) < 0 < cos(k*, q̄)") != texts.end());
    }

    // A row without a mark says why: the walk has no c, or computes it. Words lie over the grid, not under its lines.
    void aRowWithoutASettingSaysWhy() {
        for (const auto& [spec, words] :
             {std::pair{"balancekv_stream@0.25", "each walk takes 30 ln(m/δ) at its own m and δ"},
              std::pair{"balancekv_stream:greedy@0.25", "this walk leans by γ and has no c"}}) {
            const Scene scene = m_view.buildScene(input(spec), m_options, viewport(900, 700, m_text));
            const auto at = std::find_if(scene.items.begin(), scene.items.end(), [&, w = words](const Drawable& item) {
                const auto* text = std::get_if<TextItem>(&item);
                return text && text->text == w;
            });
            QVERIFY2(at != scene.items.end(), spec);
            const Point place = std::get<TextItem>(*at).position;
            const auto* patch = std::get_if<RectangleItem>(&*std::prev(at));
            QVERIFY(patch && patch->box.contains({place.x + 1, place.y}));
        }
        QCOMPARE(rowsOf("balancekv_stream:manual@0.25")[2].set, 4.0); // chosen by hand
    }

    // The share beyond a bound stands behind its worst measurement, in the sentence and in the table.
    void theShareOfQueriesBeyondABoundIsWritten() {
        const ViewInput in = input("balancekv_stream@0.25");
        const auto data = dataAs<TheoryData>(in);
        const auto error = std::find_if(data->rows.begin(), data->rows.end(), [](const TheoryRow& row) {
            return row.kvHead == kHead && row.theorem == "BalanceKV (2)";
        });
        QVERIFY(error != data->rows.end() && error->beyond > 0 && error->worst > 0.5 && error->measured < 0.5);
        const std::string share = fmt::format("{:.2g} %", 100 * error->beyond);
        const std::vector<std::string> texts = textsOf(m_view.buildScene(in, m_options, viewport(1280, 800, m_text)));
        const std::string number = formatShort(error->worst) + " > 0.5, " + share + " beyond";
        QVERIFY2(std::find(texts.begin(), texts.end(), number) != texts.end(), number.c_str());
        const std::string finding = m_view.finding(in, m_options),
                          part = share + " of 132 measurements lie beyond BalanceKV (2), which allows 1 %";
        QVERIFY2(finding.find(part) != std::string::npos, finding.c_str());
        const ViewTable table = m_view.table(in, m_options);
        QCOMPARE(table.cell(error - data->rows.begin(), 13), error->ifBroken);
    }

    void aRunThatBalancedNothingHasNoMarks() {
        const ViewInput in = input("balancekv@0.25");
        const Scene scene = m_view.buildScene(in, m_options, viewport(1280, 800, m_text));
        for (const Drawable& item : scene.items) {
            const auto* circle = std::get_if<CircleItem>(&item);
            QVERIFY(!circle || circle->pick.kind != PickId::Kind::Cell);
        }
        const std::string finding = m_view.finding(in, m_options);
        QVERIFY2(finding.find("nothing was balanced") != std::string::npos, finding.c_str());
    }

    void stripesLieBehindTheLines() {
        const Scene scene = m_view.buildScene(input("keydiff@0.25"), m_options, viewport(800, 300, m_text));
        const Colour stripe = withAlpha(themeOf(ThemeId::Light).sunken, 0.45);
        const auto isStripe = [&](const Drawable& item) {
            const auto* box = std::get_if<RectangleItem>(&item);
            return box && box->fill == stripe && box->box.width > 700; // words have their own in front
        };
        const auto firstLine = std::find_if(scene.items.begin(), scene.items.end(), [](const Drawable& item) {
            return std::holds_alternative<PolylineItem>(item);
        });
        QVERIFY(std::any_of(scene.items.begin(), firstLine, isStripe) &&
                std::none_of(firstLine, scene.items.end(), isStripe));
    }

    void factsNameFormulaAndHead() {
        const ViewInput in = input("subgen,delta_quantile=0.2@0.25");
        const Scene scene = m_view.buildScene(in, m_options, viewport(800, 400, m_text));
        for (const Drawable& item : scene.items)
            if (const auto* square = std::get_if<RectangleItem>(&item);
                square && square->pick.kind == PickId::Kind::Cell) {
                const PointFacts facts = m_view.factsAt(in, m_options, scene, {square->box.x + 4, square->box.y + 4});
                QVERIFY(facts.rows.size() >= 5 && facts.rows[2].first == "formula");
                QVERIFY(facts.kvHead == 1 && facts.layer == 3);
                return;
            }
        QFAIL("nothing falls short?");
    }

    void tableHoldsAllHeads() {
        const ViewInput in = input("subgen,delta_quantile=0.2@0.25");
        const ViewTable table = m_view.table(in, m_options);
        QCOMPARE(table.rowCount, std::int64_t(dataAs<TheoryData>(in)->rows.size()));
        QCOMPARE(table.cell(0, 0), std::string("0"));
        QCOMPARE(table.cell(table.rowCount - 1, 0), std::string("1"));
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(220, 160), QSize(300, 220), QSize(500, 300), QSize(930, 410), QSize(1400, 900),
                                 QSize(940, 126), QSize(490, 150), QSize(345, 130), QSize(246, 176)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        for (const std::string& spec : kPolicies) {
            const ViewInput in = input(spec);
            QCOMPARE(misplacedTexts(m_view, in, m_options, size, m_text, ThemeId::Dark, ThemeId::Paper), QStringList());
        }
    }

    // Three labels have no room side by side.
    void aNarrowScaleHasOneLabel() {
        const Scene scene = m_view.buildScene(input("compactor@0.25"), m_options, viewport(180, 140, m_text));
        QCOMPARE(overlappingTexts(scene, m_text), QStringList());
    }

    void emptyStatesSayWhy() {
        QVERIFY(!m_view.finding(ViewInput{}, m_options).empty());
        ViewInput in = needleInput({"keydiff@0.25"});
        in.data = {};
        QVERIFY(m_view.finding(in, m_options).starts_with("Computing"));
        in.data.error = "no theorem";
        QCOMPARE(m_view.finding(in, m_options), in.data.error);
        QCOMPARE(m_view.table(in, m_options).rowCount, 0);
    }

    void pictureShowsGreenAndRedMarks() {
        const Scene scene =
            m_view.buildScene(input("compactor,sketch_size=16@0.25"), m_options, viewport(800, 400, m_text));
        const QImage image = renderScene(scene, 1);
        const auto count = [&](Colour wanted) {
            int pixels = 0;
            for (int y = 0; y < image.height(); ++y)
                for (int x = 0; x < image.width(); ++x) {
                    const QColor c = image.pixelColor(x, y);
                    pixels +=
                        std::abs(c.red() - wanted.r) + std::abs(c.green() - wanted.g) + std::abs(c.blue() - wanted.b) <
                        24;
                }
            return pixels;
        };
        const Theme& theme = themeOf(ThemeId::Light);
        QVERIFY(count(theme.error) > 100 && count(theme.ok) > 60);
    }
};

KVSCOPE_OFFSCREEN_TEST(TheoryViewTest)
#include "theory_view_test.moc"
