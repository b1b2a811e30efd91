// The clustering view against SubGen's algorithm written down here again: one pass over the keys of the sample, state
// at any cursor, the grid of radii, the greedy centres; the fairness of real reservoirs; words and layout.
#include "app/export/scene_export.h"
#include "tests/support/error_message.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/clustering/stream_state.h"
#include "views/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>

using namespace kvscope;
using namespace kvscope::scene_checks;
using namespace kvscope::view_fixture;

namespace {

const char* const kPictures[] = {"overview", "births", "sizes", "reservoir", "sampling", "delta", "radius"};
const std::string kStream = "subgen,delta_quantile=0.2", kCentres = "subgen_kcenter,recent=16@0.1";

ParameterValues optionsWith(const std::vector<std::pair<std::string, std::string>>& set) {
    return optionsOf(viewById("clustering"), set);
}

/// Computed once for each policy and picture.
ViewInput inputFor(const std::string& spec, const ParameterValues& options) {
    static std::map<std::string, ViewInput> known;
    ViewInput& input = known[spec + "|" + options.key(Stage::Features)];
    if (!input.capture) input = view_fixture::inputFor(viewById("clustering"), {spec}, options);
    return input;
}

/// Rows [0, count) of KV head 1, layer 3.
struct Rows {
    std::vector<double> x;
    std::size_t d = 0;
    explicit Rows(TensorRole role, std::int64_t count = 995) {
        const HostTensor all = needleCapture()->read(LayerIndex(3), role, {});
        d = static_cast<std::size_t>(all.shape[2]);
        const auto begin = all.data.begin() + all.shape[1] * all.shape[2];
        x.assign(begin, begin + count * all.shape[2]);
    }
    double distance(std::size_t a, std::size_t b) const {
        double sum = 0;
        for (std::size_t c = 0; c < d; ++c) sum += (x[a * d + c] - x[b * d + c]) * (x[a * d + c] - x[b * d + c]);
        return std::sqrt(sum);
    }
};

/// Algorithm 1's clustering of the first `count` rows.
struct NaiveStream {
    std::vector<std::size_t> representatives, cluster;
    std::vector<std::int64_t> counts;
    std::vector<double> radii;
    NaiveStream(const Rows& rows, std::size_t count, double radius) {
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t nearest = 0;
            for (std::size_t c = 1; c < representatives.size(); ++c)
                if (rows.distance(i, representatives[c]) < rows.distance(i, representatives[nearest])) nearest = c;
            if (representatives.empty() || rows.distance(i, representatives[nearest]) > radius) {
                nearest = representatives.size();
                representatives.push_back(i);
                counts.push_back(0);
                radii.push_back(0);
            }
            cluster.push_back(nearest);
            ++counts[nearest];
            radii[nearest] = std::max(radii[nearest], rows.distance(i, representatives[nearest]));
        }
    }
};

} // namespace

class ClusteringViewTest : public ViewTest {
    Q_OBJECT

public:
    ClusteringViewTest() : ViewTest(viewById("clustering"), 760, 460) {}

private slots:
    void theStateAtACursorIsTheStreamReadThatFar() {
        const auto data = dataAs<ClusteringData>(inputFor(kStream, optionsWith({})));
        QVERIFY(data && data->stream && !data->centres);
        const Rows keys(TensorRole::Keys);
        for (const TokenIndex read : {1, 100, 700, 995}) {
            const NaiveStream expected(keys, static_cast<std::size_t>(read), data->stream->delta);
            const StreamState state = streamState(*data->stream, read);
            QCOMPARE(state.clusters, expected.representatives.size());
            QCOMPARE(state.counts, expected.counts);
            for (std::size_t c = 0; c < state.clusters; ++c)
                QVERIFY(std::abs(state.radii[c] - expected.radii[c]) < 1e-4);
            QCOMPARE(state.read, read);
        }
        QVERIFY(streamState(*data->stream, {}).clusters > 20);
    }

    // A prefix of the stream is a stream: the slots at a cursor are those of a run that ends there.
    void slotsAtACursorAreThoseOfAShorterRun() {
        const auto data = dataAs<ClusteringData>(inputFor(kStream, optionsWith({})));
        RunRequest request;
        request.capture = needleCapture();
        request.layer = LayerIndex(3);
        request.policy = PolicySpec::parse("subgen:given,delta=" + std::to_string(data->stream->delta));
        request.policy.values.set("delta", data->stream->delta);
        request.measure = false;
        request.recordSteps = true;
        for (const int read : {40, 600}) {
            request.cut = Cut::resolve(std::to_string(read), *request.capture);
            const auto run = runner().run(request, {});
            const SubgenLog::Head& shorter = dynamic_cast<const SubgenLog&>(*run->log).heads[1];
            const StreamState state = streamState(*data->stream, read);
            QCOMPARE(state.clusterSlots, shorter.clusterSlots);
            QCOMPARE(state.valueSlots, shorter.valueSlots);
            QVERIFY(std::abs(state.mu / shorter.mu - 1) < 1e-9);
        }
        const StreamState end = streamState(*data->stream, {});
        QCOMPARE(end.clusterSlots, data->stream->clusterSlots);
        QCOMPARE(end.valueSlots, data->stream->valueSlots);
    }

    void birthsAreTheMilestonesOfTheSteps() {
        ViewInput input = inputFor(kStream, optionsWith({}));
        const auto data = dataAs<ClusteringData>(input);
        const StepSequence sequence = m_view.stepSequence(input, optionsWith({}));
        QCOMPARE(sequence.events.size(), std::size_t{995});
        QVERIFY(sequence.events.front() == 1 && sequence.events.back() == 995);
        QCOMPARE(sequence.milestones.size(), data->stream->representatives.size());
        QVERIFY(std::is_sorted(sequence.milestones.begin(), sequence.milestones.end()));
        input.cursor = sequence.milestones[7];
        const std::string birth = m_view.caption(input, optionsWith({}));
        QVERIFY2(birth.starts_with("m = 8 after " + std::to_string(sequence.milestones[7]) + " tokens. Token "),
                 birth.c_str());
        QVERIFY2(birth.find("from all 7 representatives and opens cluster 8; all 4 slots hold it") != std::string::npos,
                 birth.c_str());
        input.cursor = 0;
        QVERIFY(m_view.caption(input, optionsWith({})).starts_with("Nothing has been read"));
        for (TokenIndex token = 0; token < 995; ++token) { // the first that joins
            const auto i = static_cast<std::size_t>(token);
            if (data->stream->representatives[static_cast<std::size_t>(data->stream->cluster[i])] == token) continue;
            input.cursor = token + 1;
            const std::string joins = m_view.caption(input, optionsWith({}));
            QVERIFY2(joins.starts_with("m = ") && joins.find(". Token " + std::to_string(token)) != std::string::npos &&
                         joins.find("joins the cluster of") != std::string::npos,
                     joins.c_str());
            break;
        }
    }

    void theRadiusGridCountsWhatAStreamOpens() {
        const ParameterValues options = optionsWith({{"picture", "delta"}});
        const auto data = dataAs<ClusteringData>(inputFor("keydiff@0.1", options)); // needs no SubGen
        QCOMPARE(data->curves.size(), std::size_t{3});
        const TensorRole roles[] = {TensorRole::Keys, TensorRole::KeysPreRope, TensorRole::Values};
        for (std::size_t source = 0; source < 3; ++source) {
            const auto& curve = data->curves[source];
            const Rows rows(roles[source]);
            QVERIFY(curve.radius.size() > 5 && std::is_sorted(curve.radius.begin(), curve.radius.end()));
            for (std::size_t i = 0; i < curve.radius.size(); i += 8) {
                const auto expected =
                    std::ssize(NaiveStream(rows, 995, curve.radius[i] * curve.median).representatives);
                QCOMPARE(curve.clusters[i], expected <= data->most ? expected : 0);
            }
            // The median of the pairwise distances, over every second token here.
            std::vector<double> distances;
            for (std::size_t a = 0; a < 995; a += 2)
                for (std::size_t b = 0; b < a; b += 2) distances.push_back(rows.distance(a, b));
            std::nth_element(distances.begin(), distances.begin() + std::ssize(distances) / 2, distances.end());
            QVERIFY(std::abs(curve.median / distances[distances.size() / 2] - 1) < 0.02);
        }
        ViewInput input = inputFor("keydiff@0.1", options);
        QVERIFY(m_view.finding(input, options).find("At 0.8 of the sampled median distance") != std::string::npos);
        QCOMPARE(m_view.table(input, options).cell(0, 4), std::string("512 sampled rows"));
        ClusteringData whole = *data;
        whole.medianRows = whole.cut;
        QCOMPARE(medianWords(whole), std::string("median distance"));
    }

    void theCoveringRadiusIsTheDistanceOfTheFarthestKey() {
        const auto data = dataAs<ClusteringData>(inputFor(kCentres, optionsWith({})));
        QVERIFY(data->centres && !data->stream);
        QCOMPARE(data->centres->order.size(), std::size_t{84}); // ceil(0.1 * 995) less the recent
        QVERIFY(data->coverRadius.size() > 900);                // beyond the budget
        QVERIFY(std::equal(data->centres->order.begin(), data->centres->order.end(), data->coverOrder.begin()));
        const Rows keys(TensorRole::Keys);
        for (const std::size_t k : {std::size_t{1}, std::size_t{10}, std::size_t{84}, std::size_t{300}}) {
            double farthest = 0;
            for (std::size_t i = 0; i < 979; ++i) { // without the 16 recent
                double nearest = INFINITY;
                for (std::size_t c = 0; c < k; ++c)
                    nearest = std::min(nearest, keys.distance(i, static_cast<std::size_t>(data->coverOrder[c])));
                farthest = std::max(farthest, nearest);
            }
            QVERIFY(std::abs(data->coverRadius[k - 1] - farthest) < 1e-4);
        }
    }

    // What the policy draws passes its own test: 20 seeds, expected chi-square = degrees of freedom.
    void realReservoirsAreFair() {
        double sum = 0, degrees = 0;
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            ViewInput input = needleInput({});
            PaneData pane;
            auto result = std::make_shared<RunResult>();
            result->request.capture = input.capture;
            result->request.layer = LayerIndex(3);
            result->request.policy = PolicySpec::parse(kStream);
            result->request.cut = input.cut;
            result->request.seed = seed;
            pane.result = result;
            input.panes = {pane};
            fillData(input, m_view, optionsWith({{"picture", "sampling"}}));
            const auto data = dataAs<ClusteringData>(input);
            const Sampling sampling = samplingOf(*data->stream, streamState(*data->stream, {}));
            sum += sampling.chiSquare;
            degrees += static_cast<double>(sampling.degrees());
        }
        QVERIFY2(std::abs(sum - degrees) < 5 * std::sqrt(2 * degrees),
                 qPrintable(QString("%1 over %2").arg(sum).arg(degrees))); // 5 sigma
    }

    // Equal keys have no radius that could be halved.
    void equalKeysAreOneCentre() {
        const ParameterValues options = optionsWith({{"picture", "radius"}});
        ViewInput input = inputFor("subgen_kcenter@0.25", options);
        auto data = std::make_shared<ClusteringData>(*dataAs<ClusteringData>(input));
        data->stream.reset();
        data->coverRadius = {0};
        input.data.value = data;
        QCOMPARE(m_view.finding(input, options), std::string("All keys are equal: one centre lies on each of them"));
    }

    void theOverviewDrawsBallsOfTheActualRadii() {
        const ParameterValues options = optionsWith({{"balls", "head"}});
        ViewInput input = inputFor(kStream, options);
        input.focus.selected.clear();
        const auto data = dataAs<ClusteringData>(input);
        const StreamState state = streamState(*data->stream, {});
        const Scene scene = build(input, options);
        const auto shared = cloudNamed(scene, "representatives")->points->size(),
                   alone = cloudNamed(scene, "clusters of one")->points->size();
        QCOMPARE(shared + alone, state.clusters);
        QCOMPARE(alone, static_cast<std::size_t>(std::count(state.counts.begin(), state.counts.end(), 1)));
        const double unit = scene.plot.width / (scene.xMax - scene.xMin);
        QVERIFY(std::abs(unit - scene.plot.height / (scene.yMax - scene.yMin)) <
                1e-9); // equal units, or balls were ellipses
        std::vector<double> drawn, expected;
        for (const Drawable& item : scene.items)
            if (const auto* circle = std::get_if<CircleItem>(&item); circle && circle->radius > 8)
                drawn.push_back(circle->radius / unit);
        std::vector<std::size_t> largest(state.clusters); // 60 of them have a ball
        std::iota(largest.begin(), largest.end(), std::size_t{0});
        std::ranges::stable_sort(largest, std::greater<>(), [&](std::size_t c) { return state.counts[c]; });
        largest.resize(std::min(largest.size(), std::size_t{60}));
        for (const std::size_t c : largest)
            if (state.counts[c] > 1 && state.radii[c] * unit > 8) expected.push_back(state.radii[c]);
        std::sort(drawn.begin(), drawn.end());
        std::sort(expected.begin(), expected.end());
        QVERIFY(drawn.size() > 3);
        QCOMPARE(drawn.size(), expected.size());
        for (std::size_t i = 0; i < drawn.size(); ++i) QVERIFY(std::abs(drawn[i] - expected[i]) < 1e-6);
        for (const double radius : drawn) QVERIFY(radius <= data->stream->delta + 1e-9);
    }

    // Circles of the plane hold all members as they are drawn, touch the outermost, and none is wider than the ball.
    void circlesOfThePlaneReachTheirOutermostMember() {
        const ParameterValues options = optionsWith({{"balls", "plane"}});
        ViewInput input = inputFor(kStream, options);
        input.focus.selected.clear();
        const auto data = dataAs<ClusteringData>(input);
        const StreamState state = streamState(*data->stream, {});
        const Scene scene = build(input, options);
        const double unit = scene.plot.width / (scene.xMax - scene.xMin);
        const PointCloudItem& keys = *cloudNamed(scene, "keys");
        int circles = 0;
        for (const Drawable& item : scene.items) {
            const auto* circle = std::get_if<CircleItem>(&item);
            if (!circle || circle->radius < 8) continue;
            ++circles;
            double closestRim = INFINITY;
            for (std::size_t i = 0; i < keys.points->size(); ++i) {
                const double d =
                    std::hypot((*keys.points)[i].x - circle->centre.x, (*keys.points)[i].y - circle->centre.y);
                closestRim = std::min(closestRim, std::abs(d - circle->radius));
            }
            QVERIFY(closestRim < 1e-6);
            QVERIFY(circle->radius / unit <= data->stream->delta + 1e-6);
        }
        QVERIFY(circles > 10 && circles <= 60);
        const Scene bare = build(input, optionsWith({{"balls", "none"}}));
        QVERIFY(std::none_of(bare.items.begin(), bare.items.end(), [](const Drawable& item) {
            const auto* circle = std::get_if<CircleItem>(&item);
            return circle && circle->radius >= 8;
        }));
    }

    void theCursorHidesWhatHasNotBeenRead() {
        const ParameterValues options = optionsWith({});
        ViewInput input = inputFor(kStream, options);
        input.cursor = 200;
        const Scene scene = build(input, options);
        QCOMPARE(cloudNamed(scene, "keys")->points->size(), std::size_t{200});
        const StreamState state = streamState(*dataAs<ClusteringData>(input)->stream, 200);
        QCOMPARE(cloudNamed(scene, "representatives")->points->size() +
                     cloudNamed(scene, "clusters of one")->points->size(),
                 state.clusters);
        const auto texts = textsOf(scene);
        QVERIFY(std::count(texts.begin(), texts.end(), "m = " + std::to_string(state.clusters)) == 1);
        QVERIFY(m_view.finding(input, options).find("clusters for 200 tokens") != std::string::npos);
        const auto& stream = *dataAs<ClusteringData>(input)->stream; // of the second half of what was read
        const double half = static_cast<double>(streamState(stream, 100).clusters);
        const std::string growth =
            fmt::format("n^{:.2f}", std::log(static_cast<double>(state.clusters) / half) / std::log(2.0));
        QVERIFY2(m_view.finding(input, options).find(growth) != std::string::npos,
                 (growth + ", not: " + m_view.finding(input, options)).c_str());
        QCOMPARE(m_view.table(input, options).rowCount, static_cast<std::int64_t>(state.clusters));
    }

    void factsOfAClusterAndOfAToken() {
        const ParameterValues options = optionsWith({});
        ViewInput input = inputFor(kStream, options);
        input.focus.selected.clear(); // whose rings lie on top
        const Scene scene = build(input, options);
        const PointCloudItem& marks = *cloudNamed(scene, "representatives");
        const PointFacts facts = m_view.factsAt(input, options, scene, marks.points->back());
        const auto data = dataAs<ClusteringData>(input);
        QCOMPARE(facts.token, data->stream->representatives[static_cast<std::size_t>(marks.ids->back())]);
        QCOMPARE(facts.rows.size(), std::size_t{5});
        QCOMPARE(facts.rows[4].first, std::string("slots (age)"));
        QVERIFY(m_view.factsAt(input, options, scene, {1, 1}).rows.empty());
    }

    void wordsOfEveryPicture() {
        const std::pair<const char*, std::vector<const char*>> wanted[] = {
            {"overview", {"PC 1 (", "Clusters m", "Cluster, by size", "its members in this plane"}},
            {"births", {"Tokens read", "m = "}},
            {"sizes", {"Radius max ‖k − x‖", "δ = ", "Tokens of the cluster"}},
            {"reservoir", {"Cluster, in order of birth", "M: value reservoir"}},
            {"sampling", {"degrees of freedom", "s ‖v‖²/μ, ± 2σ"}},
            {"delta", {"δ / sampled median distance", "keys before RoPE", "values"}},
            {"radius", {"Greedy centres k", "Covering radius"}}};
        for (const auto& [picture, sentences] : wanted) {
            const ParameterValues options = optionsWith({{"picture", picture}});
            const ViewInput input = inputFor(kStream, options);
            const Scene scene = build(input, options, 900, 600);
            for (const char* sentence : sentences)
                QVERIFY2(scene_checks::says(scene, sentence), qPrintable(QString("%1: %2").arg(picture, sentence)));
            QVERIFY(!m_view.finding(input, options).empty() && m_view.table(input, options).rowCount > 0);
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
        std::vector<std::string> specs = {kStream};
        if (picture == "overview" || picture == "sizes" || picture == "radius") specs.push_back(kCentres);
        for (const std::string& spec : specs) {
            const ViewInput input = inputFor(spec, options);
            QCOMPARE(misplacedTexts(m_view, input, options, size, m_text, ThemeId::Dark, ThemeId::Paper),
                     QStringList());
        }
    }

    void otherPoliciesAreToldWhatToChoose() {
        const auto refused = [&](const std::string& spec, const char* picture) {
            return errorText([&] { inputFor(spec, optionsWith({{"picture", picture}})); });
        };
        QVERIFY(refused("keydiff@0.1", "overview").contains("Choose SubGen"));
        QVERIFY(refused(kCentres, "reservoir").contains("k-center has neither"));
        ViewInput empty;
        QVERIFY(!m_view.finding(empty, optionsWith({})).empty());
        ViewInput waiting = needleInput({kStream});
        waiting.data = {};
        QCOMPARE(m_view.finding(waiting, optionsWith({})), std::string("Computing the clusters…"));
        QVERIFY(m_view.stepSequence(waiting, optionsWith({})).events.empty() &&
                m_view.caption(waiting, optionsWith({})).empty());
        waiting.data.error = "no";
        QCOMPARE(m_view.finding(waiting, optionsWith({})), std::string("no"));
    }

    void pictureShowsGreenBallsAndBars() {
        const ParameterValues options = optionsWith({});
        const QImage image = renderScene(build(inputFor(kStream, options), options, 900, 600), 1);
        int green = 0;
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) {
                const QColor c = image.pixelColor(x, y);
                green +=
                    std::abs(c.red() - 0x66) < 30 && std::abs(c.green() - 0x9C) < 30 && std::abs(c.blue() - 0x15) < 40;
            }
        QVERIFY2(green > 3000, qPrintable(QString::number(green)));
    }
};

KVSCOPE_OFFSCREEN_TEST(ClusteringViewTest)
#include "clustering_view_test.moc"
