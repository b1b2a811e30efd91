// What becomes of a token is seen where tokens lie close together, and nothing is left out of a crowd without a word.
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/token_marks.h"

using namespace kvscope;

class TokenMarksTest : public QObject {
    Q_OBJECT

    QtTextService m_text;

private slots:
    void noRingHidesTheMarkOfANeighbour() {
        const Theme& theme = themeOf(ThemeId::Light);
        Scene scene;
        SceneBuilder builder(scene, m_text);
        drawRingedMarks(builder,
                        {{4, {10, 10}, 2.3, Marker::Circle, theme.kept, {}},
                         {5, {13, 10}, 2, Marker::Circle, kTransparent, {theme.evicted, 1.2, {}}},
                         {6, {11, 12}, 2, Marker::Square, theme.protectedToken, {}}},
                        theme);
        std::vector<std::size_t> casings, rings, marks;
        for (std::size_t i = 0; i < scene.items.size(); ++i) {
            const auto* circle = std::get_if<CircleItem>(&scene.items[i]);
            const bool isMark = !circle || circle->fill == theme.kept || circle->stroke.colour == theme.evicted;
            (isMark ? marks : circle->fill == theme.casing ? casings : rings).push_back(i);
        }
        QCOMPARE(casings.size() + rings.size() + marks.size(), std::size_t{9});
        QCOMPARE(marks.size(), std::size_t{3});
        QVERIFY(casings.back() < rings.front() && rings.back() < marks.front());
    }

    // Whoever looks from one view to another looks for the same ring.
    void everyViewRingsTheHoveredTokenAlike_data() {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<QString>("picture");
        QTest::newRow("key_projection") << "keydiff@0.1" << QString();
        QTest::newRow("score_plane") << "compactor@0.1" << QString();
        QTest::newRow("leverage") << "compactor@0.1"
                                  << "scatter";
        QTest::newRow("clustering") << "subgen" << QString();
        QTest::newRow("keep_probability") << "uniform@0.1" << QString();
    }
    void everyViewRingsTheHoveredTokenAlike() {
        QFETCH(QString, policy);
        QFETCH(QString, picture);
        const View& view = viewById(QTest::currentDataTag());
        const ParameterValues options = picture.isEmpty()
                                            ? ParameterValues(view.card().options)
                                            : view_fixture::optionsOf(view, {{"picture", picture.toStdString()}});
        ViewInput input = view_fixture::inputFor(view, {policy.toStdString()}, options);
        if (view.card().data.empty()) input.panes[0].result = view_fixture::measured(policy.toStdString(), 3);
        input.focus = {};
        input.focus.hovered = 100;
        const Theme& theme = themeOf(ThemeId::Light);
        std::vector<const CircleItem*> rings;
        const Scene scene = view.buildScene(input, options, view_fixture::viewport(900, 500, m_text));
        for (const Drawable& item : scene.items)
            if (const auto* circle = std::get_if<CircleItem>(&item);
                circle && circle->fill.a == 0 && circle->stroke.width >= 2)
                rings.push_back(circle);
        QCOMPARE(rings.size(), std::size_t{2});
        QVERIFY(rings[0]->stroke.colour == theme.casing && rings[0]->stroke.width == 4 && rings[1]->stroke.width == 2);
        for (const CircleItem* ring : rings)
            QVERIFY(ring->radius == 8 && ring->pick.kind == PickId::Kind::None); // one may point at what lies inside
    }

    void aCrowdOfEvictedTokensIsThinned() {
        TokenMarks marks;
        for (const std::size_t evicted : {std::size_t{20'000}, std::size_t{20'001}, std::size_t{60'001}}) {
            marks.states.assign(evicted + 7, TokenState::Evicted);
            std::fill_n(marks.states.begin(), 7, TokenState::Kept); // are never left out
            marks.places.assign(marks.states.size(), {1, 1});
            QCOMPARE(markStride(marks), std::int64_t(evicted <= 20'000 ? 1 : evicted <= 40'000 ? 2 : 4));
        }
        marks.places.back() = {NAN, 1}; // has no place, so it is not drawn anyway
        QCOMPARE(markStride(marks), std::int64_t{3});
    }
};

KVSCOPE_OFFSCREEN_TEST(TokenMarksTest)
#include "token_marks_test.moc"
