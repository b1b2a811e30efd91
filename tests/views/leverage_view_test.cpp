// The leverage view: its numbers against leverage computed here by Gaussian elimination, the law of the sum, the
// overlap counted by hand, Theorem 2, and that every picture says what it shows at every size.
#include "app/export/scene_export.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/leverage/leverage_pictures.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace kvscope;
using namespace kvscope::scene_checks;
using namespace kvscope::view_fixture;

namespace {

const char* const kPictures[] = {"overview", "sorted", "cumulative", "histogram", "tokens", "spectrum", "scatter"};

ParameterValues optionsWith(const std::vector<std::pair<std::string, std::string>>& set) {
    return optionsOf(viewById("leverage"), set);
}

ViewInput inputFor(const std::string& spec, const ParameterValues& options) {
    return view_fixture::inputFor(viewById("leverage"), {spec}, options);
}

/// k^T (K^T K)^-1 k for rows [n, d], by elimination on [G | k]; nothing shared with the engine.
std::vector<double> naiveLeverage(const std::vector<double>& rows, std::size_t n, std::size_t d) {
    std::vector<double> gram(d * d, 0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t a = 0; a < d; ++a)
            for (std::size_t b = 0; b < d; ++b) gram[a * d + b] += rows[i * d + a] * rows[i * d + b];
    std::vector<double> inverse(d * d, 0);
    for (std::size_t a = 0; a < d; ++a) inverse[a * d + a] = 1;
    for (std::size_t pivot = 0; pivot < d; ++pivot) {
        const double p = gram[pivot * d + pivot];
        for (std::size_t row = 0; row < d; ++row) {
            const double f = gram[row * d + pivot] / p;
            for (std::size_t c = 0; row != pivot && c < d; ++c) {
                gram[row * d + c] -= f * gram[pivot * d + c];
                inverse[row * d + c] -= f * inverse[pivot * d + c];
            }
        }
    }
    std::vector<double> leverage(n, 0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t a = 0; a < d; ++a)
            for (std::size_t b = 0; b < d; ++b)
                leverage[i] += rows[i * d + a] * inverse[a * d + b] / gram[a * d + a] * rows[i * d + b];
    return leverage;
}

std::vector<double> keysBeforeRope(std::int64_t count) {
    const HostTensor keys = needleCapture()->read(LayerIndex(3), TensorRole::KeysPreRope, {});
    const std::int64_t n = keys.shape[1], d = keys.shape[2];
    const auto begin = keys.data.begin() + n * d; // KV head 1
    return {begin, begin + count * d};
}

} // namespace

class LeverageViewTest : public ViewTest {
    Q_OBJECT

public:
    LeverageViewTest() : ViewTest(viewById("leverage")) {}

private slots:
    void exactScoresAreTheDefinition() {
        const ViewInput input = inputFor("compactor@0.25", optionsWith({}));
        const auto data = dataAs<LeverageData>(input);
        QCOMPARE(data->exact.scores.size(), std::size_t{995}); // the tokens before the cut and no others
        const std::vector<double> expected = naiveLeverage(keysBeforeRope(995), 995, 64);
        for (std::size_t i = 0; i < expected.size(); ++i)
            QVERIFY2(std::abs(double(data->exact.scores[i]) - expected[i]) < 1e-5,
                     qPrintable(QString("token %1").arg(i)));
        QCOMPARE(data->exact.rank, 64);
        QVERIFY(std::abs(data->exact.sum - 64) < 1e-3); // the rank
        QVERIFY(std::is_sorted(data->exact.order.begin(), data->exact.order.end(), [&](TokenIndex a, TokenIndex b) {
            const float x = data->exact.scores[std::size_t(a)], y = data->exact.scores[std::size_t(b)];
            return x > y || (x == y && a < b);
        }));
    }

    // Half the key's width by default; as wide as the key it is the exact leverage again.
    void theSketchSumsToItsColumnsAndIsExactWhenFull() {
        const auto half = dataAs<LeverageData>(inputFor("exact", optionsWith({})));
        QCOMPARE(half->columns, 32);
        QVERIFY(std::abs(half->sketched.sum - 32) < 1e-3);
        QCOMPARE(half->sketched.spectrum.size(), std::size_t{32});
        const auto full = dataAs<LeverageData>(inputFor("exact", optionsWith({{"sketch_size", "200"}})));
        QCOMPARE(full->columns, 64);
        for (std::size_t i = 0; i < full->exact.scores.size(); ++i)
            QVERIFY(std::abs(full->exact.scores[i] - full->sketched.scores[i]) < 1e-5F);
        const auto srht = dataAs<LeverageData>(inputFor("exact", optionsWith({{"sketch", "srht"}})));
        QVERIFY(srht->sketched.scores != half->sketched.scores && std::abs(srht->sketched.sum - 32) < 1e-3);
    }

    void centringTakesTheMeanAway() {
        std::vector<double> rows = keysBeforeRope(995);
        for (std::size_t c = 0; c < 64; ++c) {
            double mean = 0;
            for (std::size_t i = 0; i < 995; ++i) mean += rows[i * 64 + c] / 995;
            for (std::size_t i = 0; i < 995; ++i) rows[i * 64 + c] -= mean;
        }
        const std::vector<double> expected = naiveLeverage(rows, 995, 64);
        const auto data = dataAs<LeverageData>(inputFor("exact", optionsWith({{"centred", "true"}})));
        for (std::size_t i = 0; i < expected.size(); i += 13)
            QVERIFY(std::abs(double(data->exact.scores[i]) - expected[i]) < 1e-5);
    }

    void theOverlapFollowsTheBudgetOfTheActivePane() {
        const ParameterValues options = optionsWith({{"sketch_size", "8"}});
        for (const double share : {0.05, 0.25, 0.9}) {
            const ViewInput input = inputFor("keydiff@" + std::to_string(share), options);
            const LeverageChoice choice = leverageChoice(input);
            const auto kept = static_cast<std::size_t>(std::ceil(share * 995));
            QCOMPARE(choice.budget, std::int64_t(kept));
            const auto best = [&](const std::vector<float>& scores) {
                std::set<std::pair<float, std::size_t>> order; // ascending by (-score, token)
                for (std::size_t i = 0; i < scores.size(); ++i) order.insert({-scores[i], i});
                std::set<std::size_t> tokens;
                for (const auto& [score, token] : order)
                    if (tokens.size() < kept) tokens.insert(token);
                return tokens;
            };
            const auto exact = best(choice.data->exact.scores), sketched = best(choice.data->sketched.scores);
            std::int64_t common = 0;
            double sum = 0;
            for (const std::size_t token : exact) {
                common += sketched.contains(token) ? 1 : 0;
                sum += double(choice.data->exact.scores[token]);
            }
            QCOMPARE(choice.common, common);
            QVERIFY(common > 0 && common < std::int64_t(kept)); // 8 of 64 columns do not agree wholly
            QVERIFY(std::abs(choice.shareOfBest(choice.budget) - sum / choice.data->exact.sum) < 1e-9);
        }
    }

    void theoremTwoByHand() {
        LeverageData data;
        data.exact.scores = {0.5F, 0.25F, 0};
        data.sketched.scores = {0.25F, 0.5F, 0.1F};
        data.exact.spectrum = {6, 3, 0};
        data.exact.rank = 2;
        const SketchTheorem theorem = sketchTheorem(data, 0.5);
        QVERIFY(std::abs(theorem.factor - 4 * 3) < 1e-12);                                        // (6/3)^2 (1.5/0.5)
        QVERIFY(std::abs(theorem.demanded - 48 * (2 * std::log(84.0) + std::log(200.0))) < 1e-9); // 12 / 0.25
        QVERIFY(std::abs(theorem.measuredLow - 0.5) < 1e-7 &&
                std::abs(theorem.measuredHigh - 2) < 1e-7); // the zero has no ratio
    }

    // All ratios lie inside the band that the theorem gives with the exact spectrum, on real keys.
    void theBandHoldsTheMeasuredRatios() {
        for (const char* columns : {"16", "32", "48"}) {
            const SketchTheorem theorem =
                sketchTheorem(*dataAs<LeverageData>(inputFor("exact", optionsWith({{"sketch_size", columns}}))), 0.5);
            QVERIFY(theorem.measuredHigh <= theorem.factor && theorem.measuredLow >= 1 / theorem.factor);
            QVERIFY(theorem.measuredLow < 1 && theorem.demanded > 1000);
        }
    }

    void scatterMarksStandAtBothScores() {
        const ParameterValues options = optionsWith({{"picture", "scatter"}, {"sketch_size", "16"}});
        const ViewInput input = inputFor("compactor@0.25", options);
        const LeverageChoice choice = leverageChoice(input);
        const Scene scene = build(input, options, 600, 600);
        std::size_t marks = 0;
        for (const char* name : {"both", "one", "neither"}) marks += cloudNamed(scene, name)->points->size();
        QCOMPARE(marks, std::size_t{995});
        QCOMPARE(cloudNamed(scene, "both")->points->size(), std::size_t(choice.common));
        QCOMPARE(cloudNamed(scene, "one")->points->size(), std::size_t(2 * (249 - choice.common)));
        // Equal logarithmic axes: a token above the diagonal has more sketched than exact leverage.
        const PointCloudItem& cloud = *cloudNamed(scene, "both");
        for (std::size_t i = 0; i < cloud.points->size(); ++i) {
            const Point p = (*cloud.points)[i];
            const auto token = std::size_t((*cloud.ids)[i]);
            const double above = (scene.plot.bottom() - p.y) - (p.x - scene.plot.x);
            const double ratio =
                std::log(double(choice.data->sketched.scores[token]) / double(choice.data->exact.scores[token]));
            QVERIFY(std::abs(ratio) < 1e-3 || (ratio > 0) == (above > 0));
        }
        QVERIFY(std::abs(scene.plot.width - scene.plot.height) < 1e-9);
    }

    void theSortedCurveFallsAndTheBudgetIsShaded() {
        const ParameterValues options = optionsWith({{"picture", "sorted"}, {"sketch_size", "16"}});
        const ViewInput input = inputFor("compactor@0.25", options);
        const Scene scene = build(input, options);
        std::vector<const PolylineItem*> curves;
        for (const Drawable& item : scene.items)
            if (const auto* line = std::get_if<PolylineItem>(&item); line && line->points.size() > 100)
                curves.push_back(line);
        QCOMPARE(curves.size(), std::size_t{2});
        QVERIFY(curves[0]->stroke.dash.empty() && !curves[1]->stroke.dash.empty()); // exact solid, sketched dashed
        for (const PolylineItem* curve : curves)
            for (std::size_t i = 1; i < curve->points.size(); ++i)
                QVERIFY(curve->points[i].y >= curve->points[i - 1].y && curve->points[i].x > curve->points[i - 1].x);
        const double edge = scene.plot.x + scene.plot.width * std::log(249.0) / std::log(995.0);
        const bool shaded = std::any_of(scene.items.begin(), scene.items.end(), [&](const Drawable& item) {
            const auto* box = std::get_if<RectangleItem>(&item);
            return box && box->box.x == scene.plot.x && std::abs(box->box.right() - edge) < 1e-6 && box->fill.a > 0;
        });
        QVERIFY(shaded);
    }

    /// The active pane's k, else that of the first pane with a sketch, and whose it is.
    void theSketchIsThePanes() {
        const auto of = [&](const std::vector<std::string>& specs) {
            const ViewInput input = view_fixture::inputFor(m_view, specs, optionsWith({}));
            return std::pair(dataAs<LeverageData>(input), m_view.finding(input, optionsWith({})));
        };
        const auto [own, finding] = of({"compactor,sketch_size=48@0.25", "snapkv@0.25"});
        QVERIFY(own->columns == 48 && own->pane == 'A');
        QVERIFY2(finding.find("48 of 64 columns, pane A's k, picks") != std::string::npos, finding.c_str());
        const auto [other, words] = of({"snapkv@0.25", "leverage,sketch_size=200@0.25"});
        QVERIFY(other->columns == 64 && other->pane == 'B');
        QVERIFY2(words.ends_with("picks 100.0 % of them: as wide as a key it is exact"), words.c_str());
        QVERIFY(of({"snapkv@0.25", "leverage:exact@0.25"}).first->columns == 32);
    }

    void aPointOfTheCurveNamesItsToken() {
        const ParameterValues options = optionsWith({{"picture", "sorted"}});
        const ViewInput input = inputFor("compactor@0.25", options);
        const Scene scene = build(input, options);
        const PointFacts first = m_view.factsAt(input, options, scene, {scene.plot.x + 1, scene.plot.y + 20});
        QCOMPARE(first.token, dataAs<LeverageData>(input)->exact.order[0]);
        QCOMPARE(first.rows.size(), std::size_t{3});
        QVERIFY(first.rows[1].second.ends_with("rank 0"));
        QVERIFY(m_view.factsAt(input, options, scene, {1, 1}).rows.empty());
    }

    void theFindingCountsAndTheTableAgrees() {
        const ParameterValues options = optionsWith({{"sketch_size", "16"}});
        const ViewInput input = inputFor("compactor@0.25", options);
        const LeverageChoice choice = leverageChoice(input);
        const std::string finding = m_view.finding(input, options);
        QVERIFY2(finding.starts_with("The best 249 of 995 tokens (25.0 %) hold ") &&
                     finding.find("16 of 64 columns") != std::string::npos,
                 finding.c_str());
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.rowCount, 995);
        std::int64_t both = 0;
        for (std::int64_t row = 0; row < 995; ++row) {
            both += table.cell(row, 7) == "both";
            const bool exact = std::stoi(table.cell(row, 4)) < 249, sketched = std::stoi(table.cell(row, 6)) < 249;
            QCOMPARE(table.cell(row, 7), std::string(exact && sketched ? "both"
                                                     : exact           ? "exact"
                                                     : sketched        ? "sketched"
                                                                       : "neither"));
        }
        QCOMPARE(both, choice.common);
    }

    void everyPictureSaysWhatItShows() {
        const std::pair<const char*, std::vector<const char*>> wanted[] = {
            {"overview", {"Rank of token", "exact leverage", "top 249 hold", "overlap"}},
            {"cumulative", {"Leverage, % of the sum", "half of the sum lies on"}},
            {"histogram", {"Tokens per bin"}},
            {"tokens", {"Token position (0-based)", "rank 249: l ≥", "rank 64 / 995"}},
            {"spectrum", {"rank 64 of 64", "condition number", "Singular value of the keys"}},
            {"scatter", {"sketched, k = 32", "overlap", "Thm 2, ε = 0.5", "not met"}}};
        for (const auto& [picture, sentences] : wanted) {
            const ParameterValues options = optionsWith({{"picture", picture}, {"sketch_size", "32"}});
            const Scene scene = build(inputFor("compactor@0.25", options), options, 900, 600);
            for (const char* sentence : sentences)
                QVERIFY2(scene_checks::says(scene, sentence), qPrintable(QString("%1: %2").arg(picture, sentence)));
        }
    }

    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QString>("picture");
        QTest::addColumn<QSize>("size");
        for (const char* picture : kPictures)
            for (const QSize size :
                 {QSize(220, 160), QSize(300, 220), QSize(500, 300), QSize(930, 410), QSize(1400, 900)})
                QTest::newRow(qPrintable(QString("%1 %2x%3").arg(picture).arg(size.width()).arg(size.height())))
                    << QString(picture) << size;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QString, picture);
        QFETCH(QSize, size);
        const ParameterValues options = optionsWith({{"picture", picture.toStdString()}});
        const ViewInput input = inputFor("compactor@0.25", options);
        QCOMPARE(misplacedTexts(m_view, input, options, size, m_text, ThemeId::Dark, ThemeId::Paper), QStringList());
    }

    void emptyStatesSayWhy() {
        const ParameterValues options = optionsWith({});
        QVERIFY(!m_view.finding(ViewInput{}, options).empty());
        ViewInput input = needleInput({"keydiff@0.25"});
        input.data = {};
        QCOMPARE(textsOf(build(input, options)).front(), std::string("Computing leverage…"));
        input.data.error = "layer 3 has no keys before RoPE";
        QCOMPARE(m_view.finding(input, options), input.data.error);
        QCOMPARE(m_view.table(input, options).rowCount, 0);
        input = inputFor("keydiff@0.25", options); // no result yet: leverage is still leverage
        input.panes[0].result = nullptr;
        QVERIFY(m_view.finding(input, options).find("The keys have rank 64") == 0);
        QVERIFY(cloudNamed(build(input, options), "both")->points->empty());
    }

    void pictureShowsPurpleCurvesOnBlueShade() {
        const ParameterValues options = optionsWith({{"picture", "sorted"}, {"sketch_size", "16"}});
        const QImage image = renderScene(build(inputFor("compactor@0.25", options), options), 1);
        int purple = 0, shade = 0;
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) {
                const QColor c = image.pixelColor(x, y);
                purple +=
                    std::abs(c.red() - 0x8C) < 30 && std::abs(c.green() - 0x50) < 30 && std::abs(c.blue() - 0xC6) < 30;
                shade += c.blue() > 240 && c.red() < 240 && c.red() > 225;
            }
        QVERIFY2(purple > 500 && shade > 20'000, qPrintable(QString("%1 purple, %2 shaded").arg(purple).arg(shade)));
    }
};

KVSCOPE_OFFSCREEN_TEST(LeverageViewTest)
#include "leverage_view_test.moc"
