// Token classes: counts against a plain loop over the lists, bars as long as their shares, and the sentence below them.
#include "app/export/scene_export.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/policy_style.h"
#include "views/token_classes/token_classes_data.h"
#include "views/view.h"

#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

const std::vector<std::string> kPanes = {"keydiff@0.25", "snapkv@0.25", "streaming_llm@0.25"};

std::vector<Box> barsOf(const Scene& scene, std::int64_t cell) {
    std::vector<Box> boxes;
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item);
            box && box->pick == PickId{PickId::Kind::Cell, cell} && box->fill.a > 0)
            boxes.push_back(box->box);
    return boxes;
}

} // namespace

class TokenClassesViewTest : public ViewTest {
    Q_OBJECT

public:
    TokenClassesViewTest() : ViewTest(viewById("token_classes")) {}

private slots:
    // Streaming keeps the first 4 and the last 245 of 995 tokens: by tenths its shares are known without any policy.
    void streamingByTenthsIsKnown() {
        const ParameterValues options = optionsOf(m_view, {{"classes", "position"}});
        const ViewInput input = inputFor(m_view, {"streaming_llm@0.25"}, options);
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.rowCount, std::int64_t{10});
        const std::vector<int> kept = {4, 0, 0,  0,   0,
                                       0, 0, 46, 100, 99}; // tenths begin at 0, 100, 199, 299 ... 796, 896
        int sum = 0;
        for (std::int64_t row = 0; row < 10; ++row) {
            QCOMPARE(std::stoi(table.cell(row, 2)), kept[static_cast<std::size_t>(row)]);
            sum += std::stoi(table.cell(row, 2));
        }
        QCOMPARE(sum, 249);
        QCOMPARE(m_view.finding(input, options),
                 std::string("StreamingLLM keeps 100 % of the 100 tokens of class “80–90 %” and 25.0 % of all tokens"));
    }

    // By tenths a prompt of 90 tokens has classes of 9: too few to say anything about.
    void classesTooSmallToJudgeAreNotJudged() {
        const ParameterValues options = optionsOf(m_view, {{"classes", "position"}});
        ViewInput input = inputFor(m_view, {"streaming_llm@0.25"}, options);
        input.cut = Cut::resolve("90", *input.capture);
        RunRequest request = input.panes[0].result->request;
        request.cut = input.cut;
        input.panes[0].result = runner().run(request, {});
        QCOMPARE(m_view.finding(input, options), std::string("No class has 10 tokens before the cut"));
    }

    void countsAreThoseOfAPlainLoop() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, kPanes, options);
        const TokenClasses classes = classesByText(input.capture->tokens());
        const ViewTable table = m_view.table(input, options);
        for (std::int64_t row = 0; row < table.rowCount; ++row)
            for (std::size_t pane = 0; pane < 3; ++pane) {
                int tokens = 0, kept = 0;
                for (TokenIndex token = 0; token < 995; ++token) {
                    if (classes.names[classes.classOf[static_cast<std::size_t>(token)]] != table.cell(row, 0)) continue;
                    ++tokens;
                    kept += keptAmong(input, input.panes[pane], {token}).kept > 0;
                }
                QCOMPARE(std::stoi(table.cell(row, 1)), tokens);
                QCOMPARE(std::stoi(table.cell(row, 2 + 2 * static_cast<int>(pane))), kept);
                QVERIFY(std::abs(std::stod(table.cell(row, 3 + 2 * static_cast<int>(pane))) -
                                 static_cast<double>(kept) / tokens) < 1e-6);
            }
    }

    void sharesOfTheKeptListAddUpToOne() {
        const ParameterValues options = optionsOf(m_view, {{"share", "of_kept"}, {"classes", "repeat"}});
        const ViewInput input = inputFor(m_view, kPanes, options);
        const ViewTable table = m_view.table(input, options);
        for (const int column : {3, 5, 7}) {
            double sum = 0;
            for (std::int64_t row = 0; row < table.rowCount; ++row) sum += std::stod(table.cell(row, column));
            QVERIFY(std::abs(sum - 1) < 1e-5);
        }
    }

    void barsAreAsLongAsTheirShares() {
        const ParameterValues options = optionsOf(m_view, {{"classes", "position"}});
        const ViewInput input = inputFor(m_view, {"streaming_llm@0.25"}, options);
        const Scene scene = m_view.buildScene(input, options, viewport(600, 400, m_text));
        const double whole = barsOf(scene, 8).front().width; // all 100 kept
        QVERIFY(whole > 200);
        QVERIFY(std::abs(barsOf(scene, 7).front().width / whole - 46.0 / 99) < 1e-9);
        QVERIFY(barsOf(scene, 4).empty());
    }

    void twoPanesOfOnePolicyAreToldApart() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"keydiff@0.25", "keydiff@0.5"}, options);
        const Scene scene = m_view.buildScene(input, options, viewport(600, 400, m_text));
        const auto strokeOf = [&](std::int64_t cell) {
            for (const Drawable& item : scene.items)
                if (const auto* box = std::get_if<RectangleItem>(&item);
                    box && box->pick == PickId{PickId::Kind::Cell, cell} && box->fill.a > 0)
                    return box->stroke.dash.size();
            return std::size_t{99};
        };
        QCOMPARE(strokeOf(0), std::size_t{0});
        QCOMPARE(strokeOf(1), std::size_t{2});
    }

    void aClickSelectsTheTokensOfTheClass() {
        const ParameterValues options = optionsOf(m_view, {{"classes", "segment"}});
        const ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        const Scene scene = m_view.buildScene(input, options, viewport(600, 400, m_text));
        const Box needle = barsOf(scene, 1).front(); // rows: context, needle, no segment (token 0)
        const PointFacts facts = m_view.factsAt(input, options, scene, {needle.x + 1, needle.y + needle.height / 2});
        QCOMPARE(facts.rows[0].second, std::string("needle"));
        const auto& groups = m_view;
        QCOMPARE(groups.tokensAt(input, options, scene, {needle.x + 1, needle.y + needle.height / 2}),
                 tokensOfKind(*input.capture, SegmentKind::Needle));
        QVERIFY(facts.rows[1].second.find("of 48 kept") != std::string::npos);
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QString>("classes");
        QTest::addColumn<QSize>("size");
        for (const char* classes : {"text", "position"})
            for (const QSize size : {QSize(300, 220), QSize(460, 300), QSize(930, 260), QSize(1400, 900),
                                     QSize(940, 126), QSize(490, 150), QSize(345, 130), QSize(246, 176)})
                QTest::newRow(qPrintable(QString("%1 %2x%3").arg(classes).arg(size.width()).arg(size.height())))
                    << QString(classes) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QString, classes);
        QFETCH(QSize, size);
        const ParameterValues options = optionsOf(m_view, {{"classes", classes.toStdString()}});
        const ViewInput input = inputFor(m_view, kPanes, options);
        QCOMPARE(misplacedTexts(m_view, input, options, size, m_text), QStringList());
        const Scene scene = m_view.buildScene(input, options, viewport(size.width(), size.height(), m_text));
        const bool hasRoom = size.height() >= 200 || size.width() >= 460; // else the help explains the black line
        QVERIFY(!hasRoom || QString::fromStdString(paintSceneAsText(scene)).contains("kept share of all tokens"));
    }

    // Names and counts go last: in low docks there are fewer rows, and what is not shown is counted.
    void namesStayInLowDocks_data() {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<QString>("classes");
        for (const QSize size : {QSize(940, 126), QSize(490, 150), QSize(345, 130), QSize(326, 176)})
            for (const char* classes : {"text", "position"})
                QTest::newRow(qPrintable(QString("%1x%2 %3").arg(size.width()).arg(size.height()).arg(classes)))
                    << size << QString(classes);
    }
    void namesStayInLowDocks() {
        QFETCH(QSize, size);
        QFETCH(QString, classes);
        const ParameterValues options = optionsOf(m_view, {{"classes", classes.toStdString()}});
        const ViewInput input = inputFor(m_view, kPanes, options);
        const Scene scene = m_view.buildScene(input, options, viewport(size.width(), size.height(), m_text));
        const std::vector<std::string> texts = scene_checks::textsOf(scene);
        const auto has = [&](const std::string& wanted) {
            return std::find(texts.begin(), texts.end(), wanted) != texts.end();
        };
        const ViewTable table = m_view.table(input, options);
        std::int64_t named = 0;
        double best = 0, bestShown = 0; // distance from the tick
        for (std::int64_t row = 0; row < table.rowCount; ++row) {
            const bool shown = has(table.cell(row, 0)) && has(table.cell(row, 1));
            named += shown;
            for (const int column : {3, 5, 7}) {
                const double off = std::abs(std::stod(table.cell(row, column)) - 0.25);
                best = std::max(best, off);
                bestShown = std::max(bestShown, shown ? off : 0);
            }
        }
        QVERIFY(named >= (classes == "text" ? 5 : 4));
        QCOMPARE(bestShown, best);
        if (named < table.rowCount)
            QVERIFY2(has(std::to_string(table.rowCount - named) + " more lie nearer to the tick"),
                     paintSceneAsText(scene).c_str());
    }

    // All bars of a picture are equally high, at least 3 pixels, and begin on pixels of the screen.
    void barsAreOfOneHeightOnWholePixels() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, kPanes, options);
        for (const QSize size : {QSize(940, 126), QSize(345, 130), QSize(700, 420), QSize(1134, 207)})
            for (const double scale : {1.0, 1.5, 2.0}) {
                Viewport frame = viewport(size.width(), size.height(), m_text);
                frame.pixelScale = scale;
                double height = 0;
                for (const Drawable& item : m_view.buildScene(input, options, frame).items)
                    if (const auto* box = std::get_if<RectangleItem>(&item);
                        box && box->pick.kind == PickId::Kind::Cell) {
                        height = height == 0 ? box->box.height : height;
                        QVERIFY(std::abs(box->box.height - height) < 1e-9 && height >= 3);
                        QVERIFY(std::abs(box->box.y * scale - std::round(box->box.y * scale)) < 1e-6);
                    }
                QVERIFY(height > 0);
            }
    }

    // Panes whose kept shares differ by a token have one straight tick in a row; those of other budgets have their own.
    void theTickIsOneStraightLine() {
        const ParameterValues options = optionsOf(m_view);
        const auto ticks = [&](const std::vector<std::string>& panes) {
            std::vector<double> xs;
            for (const Drawable& item :
                 m_view.buildScene(inputFor(m_view, panes, options), options, viewport(1788, 300, m_text)).items)
                if (const auto* line = std::get_if<PolylineItem>(&item);
                    line && line->stroke.colour == themeOf(ThemeId::Light).ink && line->stroke.width == 1)
                    xs.push_back(line->points.front().x);
            return xs;
        };
        QCOMPARE(ticks({"keydiff:kvpress@0.25", "snapkv@0.25"}).size(), std::size_t{6});
        QCOMPARE(ticks({"keydiff@0.25", "snapkv@0.5"}).size(), std::size_t{12});
    }

    // No kept token of a class: nothing that would look like a small share, but its place answers.
    void noneKeptDrawsNothing() {
        const ParameterValues options = optionsOf(m_view, {{"classes", "position"}});
        const ViewInput input = inputFor(m_view, {"streaming_llm@0.25"}, options);
        const Scene scene = m_view.buildScene(input, options, viewport(600, 400, m_text));
        const auto isHit = [](const Drawable& item) {
            const auto* box = std::get_if<RectangleItem>(&item);
            return box && box->pick == PickId{PickId::Kind::Cell, 4};
        };
        QVERIFY(barsOf(scene, 4).empty() && !barsOf(scene, 8).empty());
        const Box none = std::get<RectangleItem>(*std::find_if(scene.items.begin(), scene.items.end(), isHit)).box;
        const Colour colour = policyStyle("streaming_llm", ThemeId::Light).colour;
        for (const RectangleItem* box : scene_checks::boxesBelowTitle(scene, colour)) QVERIFY(box->box.y != none.y);
        QVERIFY(!m_view.factsAt(input, options, scene, {none.x + 1, none.y + none.height / 2}).rows.empty());
    }

    void thePictureShowsBarsInPolicyColours() {
        const ParameterValues options = optionsOf(m_view);
        const QImage image =
            renderScene(m_view.buildScene(inputFor(m_view, kPanes, options), options, viewport(700, 420, m_text)), 1);
        int teal = 0, olive = 0;
        for (int y = 28; y < image.height(); ++y)
            for (int x = 100; x < image.width(); ++x) {
                teal += image.pixelColor(x, y) == QColor(0x03, 0x65, 0x69);
                olive += image.pixelColor(x, y) == QColor(0x5D, 0x50, 0x04);
            }
        QVERIFY2(teal > 2000 && olive > 2000, qPrintable(QString("%1 teal, %2 olive").arg(teal).arg(olive)));
    }

    void emptyStatesSayWhatIsMissing() {
        const ParameterValues options = optionsOf(m_view);
        QVERIFY(m_view.finding({}, options).find("Open one") != std::string::npos);
        const ViewInput none = inputFor(m_view, {}, options);
        QVERIFY(m_view.finding(none, options).find("add a pane") != std::string::npos);
        QCOMPARE(m_view.table(none, options).rowCount, std::int64_t{0});
    }
};

KVSCOPE_OFFSCREEN_TEST(TokenClassesViewTest)
#include "token_classes_view_test.moc"
