// What decides: bars, lanes and words of data made by hand; and why there is no picture of a capture.
#include "core/base/error.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/answer_needs/answer_needs_data.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// Three chunks, of which the second decides; pane A keeps a quarter of it, B all.
std::shared_ptr<AnswerNeedsData> handData() {
    auto data = std::make_shared<AnswerNeedsData>();
    data->chunks = {{0, 400}, {400, 800}, {800, 995}};
    data->rises = {-0.1, 2.0, 0.05};
    data->answered = 3;
    data->steps = 12;
    data->scores.assign(995, 0);
    data->scores[620] = 1.5;
    data->fullLoss = 0.25;
    data->panes = {{{'A', "keydiff", "KeyDiff"}, {}, {0.5, 0.25, 1}}, {{'B', "snapkv", "SnapKV"}, {}, {0, 1, 0.5}}};
    data->panes[0].rise = 1.75;
    data->panes[0].predicted = 1.125;
    return data;
}

ViewInput handInput() {
    ViewInput input = needleInput({"keydiff@0.25", "snapkv@0.25"});
    input.data.value = handData();
    return input;
}

} // namespace

class AnswerNeedsViewTest : public ViewTest {
    Q_OBJECT

public:
    AnswerNeedsViewTest() : ViewTest(viewById("answer_needs")) {}

private slots:
    void pointsSayWhatTheChunkCostsAndWhoKeepsIt() {
        const ViewInput input = handInput();
        const ParameterValues options = optionsOf(m_view, {});
        const Scene scene = build(input, options);
        const Point at{scene.plot.x + scene.plot.width * 620.5 / 995, scene.plot.bottom() - 20};
        const PointFacts facts = m_view.factsAt(input, options, scene, at);
        QCOMPARE(facts.token, 620);
        const auto value = [&](const std::string& name) {
            for (const auto& [key, text] : facts.rows)
                if (key == name) return QString::fromStdString(text);
            return QString();
        };
        QCOMPARE(value("chunk"), "tokens 400 to 799");
        QCOMPARE(value("without it"), "+2.000 nat");
        QCOMPARE(value("its scores"), "+1.500 nat");
        QCOMPARE(value("token's score"), "+1.500");
        QCOMPARE(value("A KeyDiff"), "keeps 25.0 % of it");
        QCOMPARE(value("B SnapKV"), "keeps 100.0 % of it");
        const auto tokens = m_view.tokensAt(input, options, scene, at);
        QVERIFY(tokens.size() == 400 && tokens.front() == 400 && tokens.back() == 799);
        QVERIFY(m_view.tokensAt(input, options, scene, {1, 1}).empty());
    }

    void barsHaveTheirHeights() {
        const Scene scene = build(handInput(), optionsOf(m_view, {}));
        std::vector<Box> bars; // below the lanes
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item))
                if (box->pick.kind == PickId::Kind::Cell && box->box.y > scene.plot.y + 28) bars.push_back(box->box);
        QCOMPARE(bars.size(), std::size_t{3});
        const double unit = scene.plot.height / (scene.yMax - scene.yMin);
        QVERIFY(std::abs(bars[1].height - 2.0 * unit) < 0.5);
        QVERIFY(std::abs(bars[0].height - 0.1 * unit) < 0.5);
        QVERIFY(std::abs(bars[0].y - bars[1].bottom()) < 0.5); // one falls from the zero, the other stands on it
    }

    void wordsNameTheChunkAndThePanes() {
        const ViewInput input = handInput();
        const ParameterValues options = optionsOf(m_view, {});
        QCOMPARE(
            QString::fromStdString(m_view.finding(input, options)),
            "Hiding tokens 400 to 799 raises the loss of the answer most, by 2.000 nat over 0.250; A keeps 25.0 %, B "
            "keeps 100.0 % of it");
        const std::string text = paintSceneAsText(build(input, options));
        QVERIFY2(text.find("+1.750 (+1.125)") != std::string::npos, text.c_str());
        QVERIFY2(text.find("…") != std::string::npos, text.c_str());
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.rowCount, 3);
        QCOMPARE(table.cell(1, 3), std::string("2"));
        QCOMPARE(table.cell(1, 4), std::string("1.5"));
        QCOMPARE(table.cell(1, 5), std::string("0.25"));
        QCOMPARE(table.columns.back(), std::string("B SnapKV kept"));
    }

    void whatIsNotKnownYetIsSaid() {
        ViewInput input = handInput();
        const ParameterValues options = optionsOf(m_view, {});
        auto data = handData();
        data->rises = {0.5, NAN, NAN};
        data->answered = 1;
        data->scores.clear();
        data->panes.clear();
        input.data.value = data;
        QVERIFY(QString::fromStdString(m_view.finding(input, options)).endsWith("(1 of 3 chunks so far)"));
        QVERIFY(paintSceneAsText(build(input, options)).find("scores: computing") != std::string::npos);
        data = std::make_shared<AnswerNeedsData>(*data);
        data->rises.assign(3, NAN);
        input.data.value = data;
        QCOMPARE(QString::fromStdString(m_view.finding(input, options)), "Hiding the first chunks…");
    }

    void aChunkWithoutALossIsSaid() {
        ViewInput input = handInput();
        const ParameterValues options = optionsOf(m_view, {});
        auto data = handData();
        data->rises = {0.5, NAN, 0.25};
        input.data.value = data;
        QVERIFY(QString::fromStdString(m_view.finding(input, options))
                    .endsWith("; without 1 of the chunks the loss is NaN or infinite"));
        const Scene scene = build(input, options);
        const Point at{scene.plot.x + scene.plot.width * 620.5 / 995, scene.plot.bottom() - 20};
        const auto rows = m_view.factsAt(input, options, scene, at).rows;
        QVERIFY(std::ranges::find(rows, std::pair<std::string, std::string>("without it", "NaN or infinite")) !=
                rows.end());
        std::vector<Box> bands;
        const auto find = [&](const Scene& drawn) {
            for (const Drawable& item : drawn.items)
                if (const auto* box = std::get_if<RectangleItem>(&item))
                    if (box->fill == themeOf(ThemeId::Light).notANumber && box->pick.kind == PickId::Kind::Cell)
                        bands.push_back(box->box);
        };
        find(scene);
        QVERIFY(bands.size() == 1 && bands[0].height == scene.plot.height);
        QVERIFY(bands[0].x < at.x && at.x < bands[0].right());
        QVERIFY(paintSceneAsText(scene).find("NaN or infinite") != std::string::npos);
        data = std::make_shared<AnswerNeedsData>(*data);
        data->answered = 1; // the others are not known yet
        input.data.value = data;
        find(build(input, options));
        QCOMPARE(bands.size(), std::size_t{1});
    }

    void aCaptureHasNoModelToAsk() {
        const ParameterValues options = optionsOf(m_view, {});
        QVERIFY_THROWS_EXCEPTION(Error, inputFor(m_view, {"keydiff@0.1"}, options));
    }
};

KVSCOPE_OFFSCREEN_TEST(AnswerNeedsViewTest)
#include "answer_needs_view_test.moc"
