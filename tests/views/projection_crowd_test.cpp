// Crowds of the key projection: counts in cells against a naive count, when a density stands in for rings, what it
// says, and the plane's Voronoi cells against a look at every site.
#include "app/text/qt_text_service.h"
#include "tests/support/random_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/voronoi_tint.h"
#include "views/key_projection/projection_marks.h"

#include <map>
#include <random>
#include <set>

using namespace kvscope;
using namespace kvscope::view_fixture;
using kvscope::scene_checks::cloudNamed;
using kvscope::scene_checks::says;

namespace {

constexpr unsigned kSeed = 20261122;

const ImageItem* imageIn(const Scene& scene) {
    for (const Drawable& item : scene.items)
        if (const auto* image = std::get_if<ImageItem>(&item)) return image;
    return nullptr;
}

int alphaAt(const ImageItem& image, int column, int row) {
    return (*image.rgba)[4 * static_cast<std::size_t>(row * image.width + column) + 3];
}

} // namespace

class ProjectionCrowdTest : public ViewTest {
    Q_OBJECT

    std::shared_ptr<const CaptureReader> m_crowd = makeRandomCapture(7, 48'000, 1, 2, 1, 8);

    ViewInput crowdInput() const { return makeInput(m_crowd, {"uniform@200t"}, 0, 0); }

public:
    ProjectionCrowdTest() : ViewTest(viewById("key_projection"), 700, 520) {}

private slots:
    void cellsCountAsANaiveCountDoes() {
        std::mt19937 random(kSeed);
        qInfo("seed %u", kSeed);
        std::uniform_real_distribution<double> x(-3, 5), y(-1, 2);
        const Viewport::Range range{-2, 4, -0.5, 1.5};
        const double side = 6.0 / DensityGrid::kCells;
        DensityGrid grid(range, 3);
        std::map<std::pair<int, int>, std::vector<std::pair<float, std::size_t>>> naive; // column, row from above
        for (int i = 0; i < 5000; ++i) {
            const Point at{x(random), y(random)};
            const float shade = i % 5 == 0 ? NAN : static_cast<float>(i % 11) / 11;
            if (const std::size_t cell = grid.cellOf(at); cell < grid.cells())
                grid.add(cell, shade, static_cast<std::size_t>(i % 3));
            if (at.x >= range.xMin && at.x <= range.xMax && at.y >= range.yMin && at.y <= range.yMax)
                naive[{static_cast<int>(std::floor((at.x - range.xMin) / side)),
                       static_cast<int>(std::floor((range.yMax - at.y) / side))}]
                    .emplace_back(shade, static_cast<std::size_t>(i % 3));
        }
        std::int64_t total = 0, cells = 0;
        const ImageItem image = grid.image({0, 0, 10, 10}, [&](const DensityGrid::Cell& cell) {
            total += cell.count;
            ++cells;
            // Enough to tell which cell it is: counts, means and categories of all cells together are compared below.
            return Colour{static_cast<std::uint8_t>(cell.count), static_cast<std::uint8_t>(cell.category),
                          static_cast<std::uint8_t>(std::isnan(cell.shade) ? 255 : std::lround(200 * cell.shade)), 255};
        });
        QCOMPARE(cells, std::ssize(naive));
        QCOMPARE(image.width, DensityGrid::kCells);
        std::int64_t most = 0, counted = 0;
        for (const auto& [cell, members] : naive) {
            const std::uint8_t* pixel = image.rgba->data() + 4 * (cell.second * image.width + cell.first);
            QCOMPARE(std::int64_t{pixel[0]}, std::ssize(members));
            std::array<int, 3> groups{};
            double sum = 0;
            int valued = 0;
            for (const auto& [shade, group] : members) {
                ++groups[group];
                if (!std::isnan(shade)) sum += static_cast<double>(shade), ++valued;
            }
            QCOMPARE(int{pixel[1]}, static_cast<int>(std::max_element(groups.begin(), groups.end()) - groups.begin()));
            QVERIFY(std::abs(int{pixel[2]} - (valued == 0 ? 255 : std::lround(200 * sum / valued))) <= 1);
            most = std::max<std::int64_t>(most, std::ssize(members));
            counted += std::ssize(members);
        }
        QCOMPARE(total, counted);
        QCOMPARE(grid.most(), most);
    }

    void fullerCellsAreStronger() {
        DensityGrid grid({0, 200, 0, 100}, 0);
        for (int column = 0; column < 4; ++column)
            for (int times = 0; times < (1 << (3 * column)); ++times)
                grid.add(grid.cellOf({column + 0.5, 99.5}), NAN, 0);
        const ImageItem image = grid.image({0, 0, 200, 100}, [](const DensityGrid::Cell&) {
            return Colour{1, 2, 3, 255};
        });
        QVERIFY(alphaAt(image, 0, 0) > 50); // one token beside 512 is still seen
        QVERIFY(alphaAt(image, 0, 0) < alphaAt(image, 1, 0) && alphaAt(image, 1, 0) < alphaAt(image, 2, 0) &&
                alphaAt(image, 2, 0) < alphaAt(image, 3, 0));
        QCOMPARE(alphaAt(image, 4, 0), 0);
        QCOMPARE(alphaAt(image, 0, 1), 0);
    }

    void aCrowdBecomesADensityAndZoomingBringsTheRingsBack() {
        const ViewInput input = crowdInput();
        const ParameterValues options = optionsOf(m_view);
        const Scene scene = build(input, options);
        const auto evicted = static_cast<std::size_t>(input.panes[0].result->visible) - 200;
        QVERIFY(evicted > kMostMarks);
        QVERIFY(imageIn(scene));
        const PointCloudItem& hidden = *cloudNamed(scene, "evicted");
        QCOMPARE(hidden.ids->size(), evicted); // every one can be pointed at
        QVERIFY(hidden.fill.a == 0 && hidden.stroke.width * hidden.stroke.colour.a == 0);
        QCOMPARE(cloudNamed(scene, "kept")->ids->size(), std::size_t{200});
        QVERIFY(says(scene, formatCount(static_cast<std::int64_t>(evicted)) + " evicted as a density, up to ") &&
                says(scene, "all kept shown"));
        QVERIFY(says(scene, ", density"));
        QCOMPARE(pickAt(scene, hidden.points->front(), 1).kind, PickId::Kind::Token);

        Viewport near = viewport(700, 520, m_text);
        near.range = {0, 1, 0, 1};
        const Scene zoomed = m_view.buildScene(input, options, near);
        QVERIFY(!imageIn(zoomed) && !says(zoomed, "density"));
        const PointCloudItem& rings = *cloudNamed(zoomed, "evicted");
        QVERIFY(!rings.ids->empty() && rings.ids->size() < evicted && rings.stroke.colour.a > 0);
        const auto projection = dataAs<ProjectionData>(input);
        const auto inside = std::count_if(hidden.ids->begin(), hidden.ids->end(), [&](std::int64_t token) {
            const float* row = projection->keys.data.data() + token * projection->keys.shape[1];
            return row[0] >= 0 && row[0] <= 1 && row[1] >= 0 && row[1] <= 1;
        });
        QCOMPARE(std::ssize(*rings.ids), inside);
    }

    // The data remember the cells of their tokens; what other ranges, components and budgets made is not shown.
    void rememberedCellsAreThoseOfThePicture() {
        const ViewInput few = crowdInput(), many = makeInput(m_crowd, {"uniform@0.6"}, 0, 0);
        const auto data = dataAs<ProjectionData>(few);
        for (const char* component : {"2", "3"})
            for (const Viewport::Range& range : {Viewport::Range{-2, 2, -2, 2}, Viewport::Range{-1.5, 1, -2, 2}})
                for (ViewInput input : {few, many}) {
                    const auto picture = [&](std::shared_ptr<const ViewData> of) {
                        input.data.value = std::move(of);
                        Viewport frame = viewport(700, 520, m_text);
                        frame.range = range;
                        const ParameterValues options =
                            optionsOf(m_view, {{"y_component", component}, {"crowd", "density"}});
                        return *imageIn(m_view.buildScene(input, options, frame))->rgba;
                    };
                    QVERIFY(picture(data) == picture(std::make_shared<ProjectionData>(*data)));
                }
    }

    // As many kept ones would hide what lies under them: a cell's colour is the share that is kept.
    void manyKeptTokensAreCountedToo() {
        const ViewInput input = makeInput(m_crowd, {"streaming_llm@0.9"}, 0, 0);
        const Scene scene = build(input, optionsOf(m_view));
        const PointCloudItem& kept = *cloudNamed(scene, "kept");
        QVERIFY(std::ssize(*kept.ids) > kMostMarks && kept.fill.a == 0);
        QVERIFY(says(scene, " evicted and " + formatCount(std::ssize(*kept.ids)) + " kept as a density") &&
                !says(scene, "all kept shown"));
        const Theme& theme = themeOf(ThemeId::Light);
        const ImageItem& image = *imageIn(scene);
        bool pureKept = false, mixed = false;
        for (std::size_t i = 0; i < image.rgba->size(); i += 4) {
            const Colour cell{(*image.rgba)[i], (*image.rgba)[i + 1], (*image.rgba)[i + 2], (*image.rgba)[i + 3]};
            pureKept = pureKept || (cell.a > 0 && cell.r == theme.kept.r && cell.b == theme.kept.b);
            mixed = mixed || (cell.a > 0 && cell.r > theme.kept.r + 5 && cell.r + 5 < theme.evicted.r);
        }
        QVERIFY(pureKept && mixed);
        const ParameterValues byPosition = optionsOf(m_view, {{"colour_by", "position"}});
        QVERIFY(cloudNamed(build(input, byPosition), "kept")->fill.a == 0);
    }

    // What is a crowd in a pane is none in a figure.
    void smallPicturesAreCrowdedEarlier() {
        const ViewInput input = makeInput(m_crowd, {"streaming_llm@0.5"}, 0, 0); // 12,000 evicted
        QVERIFY(!imageIn(build(input, optionsOf(m_view))));
        QVERIFY(imageIn(build(input, optionsOf(m_view), 300, 300)));
    }

    void ringsOfACrowdAreThinnedAndSaySo() {
        const Scene scene = build(crowdInput(), optionsOf(m_view, {{"crowd", "marks"}}));
        QVERIFY(!imageIn(scene));
        const auto shown = std::ssize(*cloudNamed(scene, "evicted")->ids);
        QVERIFY(shown <= kMostMarks && shown > kMostMarks / 2);
        QVERIFY(says(scene, "showing " + formatCount(shown) + " of "));
        QCOMPARE(cloudNamed(scene, "kept")->ids->size(), std::size_t{200});
    }

    void aColouringIsTheMeanOfTheCell() {
        const ViewInput input = crowdInput();
        const Scene byPosition = build(input, optionsOf(m_view, {{"colour_by", "position"}})),
                    byState = build(input, optionsOf(m_view));
        const ImageItem *shaded = imageIn(byPosition), *plain = imageIn(byState);
        QVERIFY(shaded && plain);
        std::set<std::uint32_t> colours, ofState;
        for (std::size_t i = 0; i < shaded->rgba->size(); i += 4)
            if ((*shaded->rgba)[i + 3] > 0)
                colours.insert((*shaded->rgba)[i] * 65536U + (*shaded->rgba)[i + 1] * 256U + (*shaded->rgba)[i + 2]);
        for (std::size_t i = 0; i < plain->rgba->size(); i += 4)
            if ((*plain->rgba)[i + 3] > 0)
                ofState.insert((*plain->rgba)[i] * 65536U + (*plain->rgba)[i + 1] * 256U + (*plain->rgba)[i + 2]);
        QCOMPARE(ofState.size(), std::size_t{1});
        QVERIFY(colours.size() > 10);
    }

    void tokensBeyondTheRangeAreCounted() {
        const ViewInput input = crowdInput();
        const auto projection = dataAs<ProjectionData>(input);
        std::int64_t beyond = 0;
        for (std::int64_t token = 0; token < input.panes[0].result->visible; ++token) {
            const float* row = projection->keys.data.data() + token * projection->keys.shape[1];
            beyond += !(row[0] >= -0.5F && row[0] <= 0.5F && row[1] >= -0.5F && row[1] <= 0.5F);
        }
        Viewport near = viewport(700, 520, m_text);
        near.range = {-0.5, 0.5, -0.5, 0.5};
        QVERIFY(beyond > 0 && beyond < input.panes[0].result->visible);
        QVERIFY(
            says(m_view.buildScene(input, optionsOf(m_view), near), formatCount(beyond) + " tokens beyond the range"));
        QVERIFY(!says(build(input, optionsOf(m_view)), "beyond the range"));
    }

    void theRimIsTheOutermostTenth() {
        const ViewInput input = crowdInput(); // has no needle
        const auto projection = dataAs<ProjectionData>(input);
        const RunResult& result = *input.panes[0].result;
        std::vector<std::pair<double, TokenIndex>> order; // the farthest first, of equals the earlier
        for (TokenIndex token = 0; token < result.visible; ++token) {
            const float* row = projection->keys.data.data() + token * projection->keys.shape[1];
            order.emplace_back(-std::hypot(static_cast<double>(row[0]), static_cast<double>(row[1])), token);
        }
        std::ranges::sort(order);
        order.resize(order.size() / 10);
        const std::vector<TokenIndex>& kept = result.selection.heads[0].kept;
        const auto hit = std::ranges::count_if(
            order, [&](const auto& place) { return std::ranges::binary_search(kept, place.second); });
        const std::string wanted = " keeps " + formatCount(hit) + " of the " + formatCount(std::ssize(order)) +
                                   " tokens farthest from the mean in this plane";
        const std::string said = m_view.finding(input, optionsOf(m_view));
        QVERIFY2(hit > 0 && said.find(wanted) != std::string::npos, said.c_str());
    }

    void keptTokensAloneHaveNoDensity() {
        const Scene scene = build(crowdInput(), optionsOf(m_view, {{"retained_only", "true"}, {"crowd", "density"}}));
        QVERIFY(!imageIn(scene) && !says(scene, "density"));
    }

    void theMeanQueryHasAMark() {
        const ViewInput input = needleInput({"keydiff@0.1"});
        const Scene scene = build(input, optionsOf(m_view, {{"show_queries", "true"}}));
        const PointCloudItem &queries = *cloudNamed(scene, "queries"), &mean = *cloudNamed(scene, "query mean");
        QCOMPARE(mean.points->size(), std::size_t{1});
        Point sum;
        for (const Point& p : *queries.points) sum = {sum.x + p.x, sum.y + p.y};
        const auto count = static_cast<double>(queries.points->size()); // the axes are linear: the mean stays the mean
        QVERIFY(std::abs(mean.points->front().x - sum.x / count) < 0.01 &&
                std::abs(mean.points->front().y - sum.y / count) < 0.01);
        QVERIFY(says(scene, "query mean"));
        QVERIFY(!cloudNamed(build(input, optionsOf(m_view)), "query mean"));
    }

    void tintIsTheNearestSite() {
        std::mt19937 random(kSeed);
        qInfo("seed %u", kSeed);
        std::uniform_real_distribution<double> place(-1, 1);
        std::vector<TintSite> sites;
        for (int i = 0; i < 40; ++i)
            sites.push_back({{place(random), place(random)}, Colour{static_cast<std::uint8_t>(i), 0, 0, 255}});
        sites.push_back({sites[3].at, {99, 0, 0, 255}}); // of two at one place the earlier
        PlotFrame frame;
        frame.plot = {10, 20, 120, 90};
        frame.x = {-1, 1, AxisScale::Linear, ""};
        frame.y = {-0.5, 0.5, AxisScale::Linear, ""}; // units of unequal length
        const ImageItem image = voronoiTint(frame, sites);
        QCOMPARE(image.width * image.height, 60 * 45);
        for (int row = 0; row < image.height; ++row)
            for (int column = 0; column < image.width; ++column) {
                const Point at{-1 + 2 * (column + 0.5) / 60, 0.5 - (row + 0.5) / 45};
                std::size_t nearest = 0;
                for (std::size_t i = 1; i < sites.size(); ++i)
                    if (std::hypot(sites[i].at.x - at.x, sites[i].at.y - at.y) <
                        std::hypot(sites[nearest].at.x - at.x, sites[nearest].at.y - at.y))
                        nearest = i;
                QCOMPARE(std::size_t{(*image.rgba)[4 * static_cast<std::size_t>(row * image.width + column)]}, nearest);
                QCOMPARE(nearestSites(sites, {at}), std::vector{nearest});
            }
        QVERIFY(!voronoiTint(frame, {}).rgba);
    }

    // The tint is of the plane; the note says of how many tokens it is also the head's.
    void tintSaysHowFarItMayBeBelieved() {
        const ParameterValues options = optionsOf(m_view, {{"colour_by", "cluster"}, {"tint", "true"}});
        const ViewInput input = inputFor(m_view, {"keydiff@0.1"}, options);
        const auto data = dataAs<ProjectionData>(input);
        std::int64_t same = 0;
        const auto count = std::ssize(data->cluster);
        for (std::int64_t token = 0; token < count; ++token) {
            const auto distance = [&](TokenIndex centre) {
                const float *a = data->keys.data.data() + token * data->keys.shape[1],
                            *b = data->keys.data.data() + centre * data->keys.shape[1];
                return std::hypot(static_cast<double>(a[0] - b[0]), static_cast<double>(a[1] - b[1]));
            };
            const auto nearest =
                std::min_element(data->centres.begin(), data->centres.end(),
                                 [&](TokenIndex a, TokenIndex b) { return distance(a) < distance(b); });
            same += nearest - data->centres.begin() == data->cluster[static_cast<std::size_t>(token)];
        }
        const Scene scene = build(input, options);
        QVERIFY(imageIn(scene));
        const std::string share = formatFixed(100.0 * static_cast<double>(same) / static_cast<double>(count), 0);
        QVERIFY2(says(scene, "of " + share + " % of the tokens also in the head"), share.c_str());
        QVERIFY(!imageIn(build(input, optionsOf(m_view, {{"tint", "true"}})))); // only with clusters
    }
};

KVSCOPE_OFFSCREEN_TEST(ProjectionCrowdTest)
#include "projection_crowd_test.moc"
