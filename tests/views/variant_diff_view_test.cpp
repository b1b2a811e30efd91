// Variant diff: lists against the variants' own runs, causes moved one by one, trap IDs from the help, and the rails.
#include "app/export/scene_export.h"
#include "app/study/makers/variant_diff_maker.h"
#include "core/base/error.h"
#include "core/metrics/fidelity.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/variant_diff/variant_diff_data.h"
#include "views/variant_diff/variant_facts.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// Marks of one colour that belong to the lists, not to the legend, whose bars are 2.6 pixels high.
std::vector<const RectangleItem*> boxesOnRails(const Scene& scene, Colour fill) {
    std::vector<const RectangleItem*> boxes = scene_checks::boxesBelowTitle(scene, fill);
    std::erase_if(boxes, [](const RectangleItem* box) { return box->box.height < 5; });
    return boxes;
}

std::vector<TokenIndex> keptBy(const std::string& spec, int head = 1) {
    return measured(spec, 3)->selection.heads[static_cast<std::size_t>(head)].kept;
}

std::int64_t differing(const std::vector<TokenIndex>& a, const std::vector<TokenIndex>& b) {
    std::vector<TokenIndex> out;
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
    return std::ssize(out);
}

const VariantList& listOf(const VariantDiffData& data, std::string_view id) {
    return *std::find_if(data.lists.begin(), data.lists.end(), [&](const VariantList& list) { return list.id == id; });
}

} // namespace

class VariantDiffViewTest : public ViewTest {
    Q_OBJECT

public:
    VariantDiffViewTest() : ViewTest(viewById("variant_diff")) {}

private slots:
    void listsAreThoseOfTheVariants() {
        const ParameterValues options = optionsOf(m_view);
        const auto data = dataAs<VariantDiffData>(inputFor(m_view, {"keydiff@0.25"}, options));
        QCOMPARE(data->variants, std::size_t{4});
        QCOMPARE(data->lists.size(), std::size_t{4});
        for (const VariantList& list : data->lists) {
            QVERIFY2(list.error.empty(), list.error.c_str());
            QCOMPARE(list.kept, keptBy("keydiff:" + list.id + "@0.25"));
        }
        QCOMPARE(listOf(*data, "kvpress").kept.size(), std::size_t{248}); // 0.25 * 995 rounded down (X2)
        QCOMPARE(data->lists.front().kept.size(), std::size_t{249});
        QVERIFY(data->lists.front().causes.empty());
        double sum = 0;
        for (std::size_t q = 4; q < 8; ++q)
            sum += measured("keydiff:kvpress@0.25", 3)->fidelity->meanOutputError[q] / 4;
        QVERIFY(std::abs(listOf(*data, "kvpress").outputError - sum) < 1e-12);
    }

    // At 0.25 the paper's sinks and recents are the whole budget: the reference is a list that nothing was balanced
    // for.
    void aListThatBalancedNothingSaysSo() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"balancekv:longbench@0.25"}, options);
        const std::string finding = m_view.finding(input, options);
        QVERIFY2(finding.find(" · nothing was balanced by “") != std::string::npos, finding.c_str());
        const std::string text = paintSceneAsText(build(input, options, 900, 700));
        QVERIFY2(text.find("kept, nothing balanced") != std::string::npos, text.c_str());
        const ViewTable table = m_view.table(input, options);
        QCOMPARE(table.columns.back(), std::string("notes"));
        QVERIFY(table.cell(0, 6).find("the reference balanced nothing") != std::string::npos);
    }

    // What was refused, or did not run yet, is not among those that keep the same tokens.
    void allVariantsAreThoseThatRan() {
        VariantDiffData data;
        data.policyName = "KeyDiff", data.budget = "0.25", data.visible = 4, data.variants = 3;
        for (const char* id : {"a", "b", "c"}) {
            VariantList& list = data.lists.emplace_back();
            list.id = list.label = id;
            list.kept = {0, 2};
        }
        const auto sentenceOf = [&](const VariantDiffData& of) {
            ViewInput input = needleInput({"keydiff@0.25"});
            input.data.value = std::make_shared<const VariantDiffData>(of);
            return m_view.finding(input, optionsOf(m_view));
        };
        QCOMPARE(sentenceOf(data), std::string("All variants of KeyDiff keep the same tokens at 0.25"));
        data.lists[2].error = "the window is too long";
        QCOMPARE(sentenceOf(data), std::string("2 of 3 variants of KeyDiff keep the same tokens at 0.25; the others "
                                               "have no list"));
        data.lists.pop_back();
        QCOMPARE(sentenceOf(data),
                 std::string("2 of 3 variants of KeyDiff keep the same tokens at 0.25; the others have no list"));
    }

    // kvpress differs from the paper in anchor (K1, K2), rounding (X2) and block alignment (K3). Moved alone, each must
    // do what the policy does with this one value; the alignment does nothing without blocks.
    void causesAreMovedOneByOne() {
        const auto data = dataAs<VariantDiffData>(inputFor(m_view, {"keydiff@0.25"}, optionsOf(m_view)));
        const VariantList& list = listOf(*data, "kvpress");
        QCOMPARE(list.causes.size(), std::size_t{3});
        const std::vector<TokenIndex> paper = keptBy("keydiff@0.25");
        for (const VariantCause& cause : list.causes)
            QCOMPARE(cause.alone, differing(paper, keptBy("keydiff," + cause.id + "=" + cause.to + "@0.25")));
        const auto causeOf = [&](const std::string& id) {
            return *std::find_if(list.causes.begin(), list.causes.end(),
                                 [&](const VariantCause& c) { return c.id == id; });
        };
        QCOMPARE(causeOf("anchor").traps, (std::vector<std::string>{"K1", "K2"}));
        QVERIFY(causeOf("anchor").alone > 0);
        QCOMPARE(causeOf("rounding").alone, std::int64_t{1}); // one token less
        QCOMPARE(causeOf("prompt_alignment").alone, std::int64_t{0});
        QCOMPARE(causeOf("anchor").change(),
                 std::string("Anchor: Mean of keys → Mean of unit keys")); // as the policy's row calls them
        QCOMPARE(list.traps, (std::vector<std::string>{"K1", "K2", "K3", "X2"}));
    }

    void trapsAreReadInParenthesesOnly() {
        QCOMPARE(trapsIn("can disagree (K1); the same under cosine (K2)."), (std::vector<std::string>{"K1", "K2"}));
        QCOMPARE(trapsIn("all (B17, B19); the overview says d ln n (or so, S1)"),
                 (std::vector<std::string>{"B17", "B19", "S1"}));
        QCOMPARE(trapsIn("An L2 norm, the K1 of nobody, (Table 13), (Eq. 7), (A4 paper)"), std::vector<std::string>{});
    }

    void thePaneCanBeTheReference() {
        const ParameterValues options = optionsOf(m_view, {{"reference", "pane"}});
        const auto data = dataAs<VariantDiffData>(inputFor(m_view, {"keydiff,window_share=0.5@0.25"}, options));
        QCOMPARE(data->lists.front().label, std::string("Pane A, as set"));
        QCOMPARE(data->lists.front().kept, keptBy("keydiff,window_share=0.5@0.25"));
        QCOMPARE(data->lists.size(), std::size_t{5});
        QCOMPARE(listOf(*data, "paper").causes.front().to, std::string("0"));
        // Against the first variant the pane's own setting comes last; a pane that is a variant is no further list.
        const auto first =
            dataAs<VariantDiffData>(inputFor(m_view, {"keydiff,window_share=0.5@0.25"}, optionsOf(m_view)));
        QCOMPARE(first->lists.back().label, std::string("Pane A, as set"));
        QCOMPARE(dataAs<VariantDiffData>(inputFor(m_view, {"keydiff:pairwise@0.25"}, optionsOf(m_view)))->lists.size(),
                 std::size_t{4});
    }

    void railsShowWhoKeepsWhat() {
        const ParameterValues options = optionsOf(m_view);
        ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        auto data = std::make_shared<VariantDiffData>(); // ten tokens: both keep 2 and 3; here 7, there 9
        data->policyName = "KeyDiff";
        data->visible = 10;
        data->variants = 2;
        data->budget = "3t";
        VariantList paper, code;
        paper.label = "Paper";
        paper.kept = {2, 3, 9};
        code.label = "Code";
        code.kept = {2, 3, 7};
        code.causes = {{"anchor", "Anchor", "mean", "median", {"K1"}, 2}};
        code.traps = {"K1"};
        data->lists = {paper, code};
        input.data.value = data;
        const Theme& theme = themeOf(ThemeId::Light);
        const Scene scene =
            m_view.buildScene(input, options, viewport(528, 240, m_text)); // rails of 500 pixels, 50 a token
        const auto gained = boxesOnRails(scene, theme.kept), lost = boxesOnRails(scene, theme.evicted);
        QCOMPARE(gained.size(), std::size_t{1});
        QCOMPARE(lost.size(), std::size_t{1});
        QVERIFY(std::abs(gained[0]->box.x - (14 + 7 * 50)) < 1e-9 && std::abs(gained[0]->box.width - 50) < 1e-9);
        QVERIFY(std::abs(lost[0]->box.x - (14 + 9 * 50)) < 1e-9);
        const auto both = boxesOnRails(scene, keptByBothColour(theme));
        QCOMPARE(both.size(), std::size_t{2}); // 2 and 3 as one run, 7 below the blue of "only here"
        QVERIFY(std::abs(both[0]->box.width - 100) < 1e-9);
        const auto reference = boxesOnRails(scene, theme.text2);
        QCOMPARE(reference.size(), std::size_t{2}); // 2 and 3, 9: not in the blue that says "only here"
        QVERIFY(std::abs(reference[1]->box.x - (14 + 9 * 50)) < 1e-9 && reference[1]->box.y < both[0]->box.y);
        const std::string text = paintSceneAsText(scene);
        QVERIFY2(text.find("1 in, 1 out, Jaccard 0.50") != std::string::npos, text.c_str());
        QVERIFY(text.find("Anchor: mean → median (K1); on its own it changes 2 tokens") != std::string::npos);
        QVERIFY(text.find("only here: 7 “") != std::string::npos &&
                text.find(" · only in the reference: 9 “") != std::string::npos);
        QVERIFY(m_view.finding(input, options).find("disagreement K1") != std::string::npos);
        const PointFacts facts = m_view.factsAt(input, options, scene, {gained[0]->box.x + 5, gained[0]->box.y + 2});
        QCOMPARE(facts.token, TokenIndex{7});
        QCOMPARE(facts.rows[1].second + " " + facts.rows[2].second, std::string("evicted kept"));
        QCOMPARE(m_view.tokensAt(input, options, scene, {gained[0]->box.x + 5, gained[0]->box.y + 2}),
                 (std::vector<TokenIndex>{7, 9}));
    }

    void theTableHasEveryChangedToken() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"snapkv@0.25"}, options);
        const auto data = dataAs<VariantDiffData>(input);
        std::int64_t changes = 0;
        for (std::size_t i = 1; i < data->lists.size(); ++i) changes += changeOf(*data, i).count();
        QVERIFY(changes > 50);
        QCOMPARE(m_view.table(input, options).rowCount, changes);
    }

    void everyPolicyHasADiffOrSaysWhyNot_data() {
        QTest::addColumn<QString>("spec");
        for (const char* spec : {"compactor@0.25", "balancekv@0.5", "tova@0.25", "h2o@0.25", "exact", "key_norm@0.25"})
            QTest::newRow(spec) << QString(spec);
    }
    void everyPolicyHasADiffOrSaysWhyNot() {
        QFETCH(QString, spec);
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {spec.toStdString()}, options);
        const auto data = dataAs<VariantDiffData>(input);
        QCOMPARE(data->lists.size(), data->variants);
        for (std::size_t i = 0; i < data->lists.size(); ++i)
            QVERIFY2(data->lists[i].error.empty() && !data->lists[i].kept.empty(), data->lists[i].error.c_str());
        if (data->variants == 1) QVERIFY(m_view.finding(input, options).find("one variant only") != std::string::npos);
        for (const QSize size : {QSize(300, 220), QSize(700, 420)}) {
            const Scene scene = m_view.buildScene(input, options, viewport(size.width(), size.height(), m_text));
            QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
        }
    }

    // In docks as low as the window makes them every row has its name, whole or at least its first letters.
    void namesStayAtEveryHeight_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size : {QSize(943, 126), QSize(490, 150), QSize(345, 130), QSize(246, 176), QSize(1134, 185)})
            QTest::newRow(qPrintable(QString("%1x%2").arg(size.width()).arg(size.height()))) << size;
    }
    void namesStayAtEveryHeight() {
        QFETCH(QSize, size);
        const ParameterValues options = optionsOf(m_view);
        for (const char* spec : {"keydiff@0.25", "compactor@0.25", "balancekv@0.25"}) {
            const ViewInput input = inputFor(m_view, {spec}, options);
            const auto data = dataAs<VariantDiffData>(input);
            const Scene scene = m_view.buildScene(input, options, viewport(size.width(), size.height(), m_text));
            const std::string text = paintSceneAsText(scene);
            for (const VariantList& list : data->lists)
                QVERIFY2(text.find('"' + list.label.substr(0, 6)) != std::string::npos,
                         (list.label + "\n" + text).c_str());
            QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            for (const char* entry :
                 {"\"reference\"", "\"kept by both\"", "\"only here\"", "\"only in the reference\""})
                QVERIFY2(text.find(entry) != std::string::npos, (entry + text).c_str()); // not cut
        }
    }

    void rowsThatFindNoPlaceAreCounted() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"balancekv@0.25"}, options);
        const Scene scene = m_view.buildScene(input, options, viewport(326, 100, m_text));
        const std::string text = paintSceneAsText(scene);
        std::size_t rails = 0;
        for (const Drawable& item : scene.items)
            if (const auto* box = std::get_if<RectangleItem>(&item)) rails += box->pick.kind == PickId::Kind::Cell;
        const std::size_t left = dataAs<VariantDiffData>(input)->variants - rails;
        QVERIFY2(left > 0 && text.find(std::to_string(left) + " more in a higher pane") != std::string::npos,
                 text.c_str());
        QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
    }

    // The axis has a title where there is room, and gives it up before the rows lose anything.
    void theAxisTitleGivesWayFirst() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        const auto hasTitle = [&](double height) {
            return paintSceneAsText(m_view.buildScene(input, options, viewport(900, height, m_text)))
                       .find("Token position (0-based)") != std::string::npos;
        };
        QVERIFY(hasTitle(420) && hasTitle(230) && !hasTitle(128));
    }

    // Half-transparent marks that share pixels are darker there.
    void marksOfARailAreOpaqueAndApart() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"keydiff@0.25"}, options);
        for (const ThemeId theme : {ThemeId::Light, ThemeId::Dark})
            for (const double width : {943.0, 345.0}) {
                const Scene scene = m_view.buildScene(input, options, viewport(width, 300, m_text, theme));
                const auto both = boxesOnRails(scene, keptByBothColour(themeOf(theme)));
                QVERIFY(both.size() > 60 && both.front()->fill.a == 255);
                for (std::size_t i = 1; i < both.size(); ++i)
                    QVERIFY(both[i]->box.y != both[i - 1]->box.y || both[i]->box.x > both[i - 1]->box.right());
            }
    }

    void everyCauseIsWrittenOutWhereThereIsRoom() {
        const ParameterValues options = optionsOf(m_view);
        for (const char* spec : {"compactor@0.25", "balancekv@0.25"}) {
            const ViewInput input = inputFor(m_view, {spec}, options);
            const auto data = dataAs<VariantDiffData>(input);
            for (const QSize size : {QSize(900, 700), QSize(1280, 800)}) {
                const Scene scene = m_view.buildScene(input, options, viewport(size.width(), size.height(), m_text));
                const std::string text = paintSceneAsText(scene);
                std::size_t written = 0;
                for (const VariantList& list : data->lists)
                    for (const VariantCause& cause : list.causes) {
                        const std::string words = cause.change();
                        QVERIFY2(text.find(words) != std::string::npos, (words + "\n" + text).c_str());
                        ++written;
                    }
                QVERIFY(written > 10);
                QVERIFY(text.find(" more") == std::string::npos);
                QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            }
        }
    }

    // Where there is none, the causes that are not named are counted, so that nobody takes the others for all.
    void causesThatDoNotFitAreCounted() {
        const ParameterValues options = optionsOf(m_view);
        const ViewInput input = inputFor(m_view, {"compactor@0.25"}, options);
        const VariantList& list = dataAs<VariantDiffData>(input)->lists.back();
        const Scene scene = m_view.buildScene(input, options, viewport(420, 300, m_text));
        const std::string all = paintSceneAsText(scene), text = all.substr(all.rfind('"' + list.label + '"'));
        const std::size_t more = text.rfind(" more");
        QVERIFY2(more != std::string::npos, text.c_str());
        const std::size_t number = text.rfind("… ", more) + std::string("… ").size();
        std::size_t named = 0;
        for (const VariantCause& cause : list.causes) named += text.rfind(cause.change()) != std::string::npos;
        QCOMPARE(named + std::stoul(text.substr(number)), list.causes.size());
    }

    void aRecordedListHasNoVariants() {
        const ParameterValues options = optionsOf(m_view);
        ViewDataRequest request;
        request.capture = needleCapture();
        request.panes.push_back({needleRequest("keydiff@0.25"), "list.json"});
        request.options = options;
        QVERIFY_THROWS_EXCEPTION(Error,
                                 makerFor(viewById("variant_diff"))->make(runner(), request, {}, [](const auto&) {}));
        QVERIFY(m_view.finding({}, options).find("Open one") != std::string::npos);
    }

    void thePictureShowsBothDirections() {
        const ParameterValues options = optionsOf(m_view);
        const QImage image = renderScene(
            m_view.buildScene(inputFor(m_view, {"keydiff@0.25"}, options), options, viewport(800, 420, m_text)), 1);
        int blue = 0, orange = 0;
        for (int y = 26; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) {
                blue += image.pixelColor(x, y) == QColor(0x00, 0x72, 0xB2);
                orange += image.pixelColor(x, y) == QColor(0xD5, 0x5E, 0x00);
            }
        QVERIFY2(blue > 60 && orange > 60, qPrintable(QString("%1 blue, %2 orange").arg(blue).arg(orange)));
    }
};

KVSCOPE_OFFSCREEN_TEST(VariantDiffViewTest)
#include "variant_diff_view_test.moc"
