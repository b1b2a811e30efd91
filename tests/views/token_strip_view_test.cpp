// The token strip: every token stands once and in order, bars mean kept, the cut is marked, long prompts scroll.
#include "app/export/scene_export.h"
#include "app/text/qt_text_service.h"
#include "tests/support/random_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_fixture.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/scene/scene_builder.h"
#include "views/token_strip/strip_picture.h"
#include "views/view.h"

#include <QRegularExpression>

#include <algorithm>
#include <cctype>
#include <set>

using namespace kvscope;
using namespace kvscope::scene_checks;
using namespace kvscope::view_fixture;

namespace {

/// Token rectangles in drawing order.
std::vector<const RectangleItem*> tokenBoxes(const Scene& scene) {
    std::vector<const RectangleItem*> boxes;
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick.kind == PickId::Kind::Token)
            boxes.push_back(box);
    return boxes;
}

std::int64_t barsOf(const Scene& scene, Colour colour) {
    return std::count_if(scene.items.begin(), scene.items.end(), [&](const Drawable& item) {
        const auto* box = std::get_if<RectangleItem>(&item);
        return box && box->fill == colour && box->box.height < 3 && box->box.y > 24;
    });
}

} // namespace

class TokenStripViewTest : public QObject {
    Q_OBJECT

    QtTextService* m_text = nullptr;
    ParameterValues m_options{viewById("token_strip").card().options};

    /// High enough for the whole needle capture.
    Scene whole(const ViewInput& input, const ParameterValues& options, double width = 900) {
        return viewById("token_strip").buildScene(input, options, viewport(width, 4000, *m_text));
    }

private slots:
    void initTestCase() { m_text = new QtTextService; }
    void cleanupTestCase() { delete m_text; }

    void everyTokenStandsOnceInOrderWithoutOverlap() {
        for (const double width : {260.0, 900.0}) {
            const Scene scene =
                viewById("token_strip")
                    .buildScene(needleInput({"keydiff@0.1"}), m_options, viewport(width, 9000, *m_text));
            const auto boxes = tokenBoxes(scene);
            QCOMPARE(boxes.size(), std::size_t{1028});
            for (std::size_t i = 1; i < boxes.size(); ++i) {
                const Box &a = boxes[i - 1]->box, &b = boxes[i]->box;
                QCOMPARE(boxes[i]->pick.index, std::int64_t(i));
                QVERIFY(b.y > a.y || (b.y == a.y && b.x >= a.right() - 0.01));
                QVERIFY2(b.right() <= width + 0.01,
                         qPrintable(QString("token %1 ends at %2 of %3").arg(i).arg(b.right()).arg(width)));
            }
        }
    }

    void linesBreakBetweenWords() {
        const auto capture = needleCapture();
        for (const double width : {260.0, 620.0, 900.0}) {
            const auto layout = layoutStrip(*capture, width, *m_text);
            for (std::size_t line = 1; line + 1 < layout->lineStarts.size(); ++line) {
                const TokenIndex first = layout->lineStarts[line];
                const std::string_view bytes = capture->tokens().textOf(first),
                                       before = capture->tokens().textOf(first - 1);
                QVERIFY2(std::isspace(static_cast<unsigned char>(bytes.front())) ||
                             std::isspace(static_cast<unsigned char>(before.back())),
                         qPrintable(QString("%1 px: “%2|%3”")
                                        .arg(width)
                                        .arg(QString::fromUtf8(before.data(), int(before.size())),
                                             QString::fromUtf8(bytes.data(), int(bytes.size())))));
            }
        }
    }

    // Every bar ends inside the frame of a selection, however many panes there are.
    void framesDoNotRunThroughBars() {
        for (const std::size_t panes : {1, 3, 4}) {
            const std::vector<std::string> specs = {"exact", "keydiff@0.9", "snapkv@0.9", "uniform@0.9"};
            ViewInput input = needleInput({specs.begin(), specs.begin() + static_cast<std::ptrdiff_t>(panes)});
            const Scene scene = whole(input, m_options);
            std::vector<Box> frames, bars;
            for (const Drawable& item : scene.items)
                if (const auto* box = std::get_if<RectangleItem>(&item); box && box->stroke.width == 1.3)
                    frames.push_back(box->box);
                else if (box && box->box.height < 2.5 && box->box.y > 24)
                    bars.push_back(box->box);
            QVERIFY(!frames.empty() && !bars.empty());
            for (const Box& frame : frames)
                for (const Box& bar : bars)
                    if (bar.x < frame.right() && bar.right() > frame.x)
                        QVERIFY2(bar.bottom() <= frame.bottom() - 0.65 || bar.y >= frame.bottom() + 0.65,
                                 qPrintable(QString("bar to %1, frame to %2").arg(bar.bottom()).arg(frame.bottom())));
        }
    }

    void theColoursOfRanksAreInTheLegend() {
        ParameterValues options = m_options;
        options.setText("colour", "score");
        for (const double width : {300.0, 620.0, 900.0}) {
            const Scene scene = viewById("token_strip")
                                    .buildScene(needleInput({"keydiff@0.1"}), options, viewport(width, 420, *m_text));
            const auto bar = std::find_if(scene.items.begin(), scene.items.end(),
                                          [](const Drawable& d) { return std::holds_alternative<ImageItem>(d); });
            QVERIFY(bar != scene.items.end());
            const ImageItem& colours = std::get<ImageItem>(*bar);
            const auto pixel = [&](int i) {
                return Colour{(*colours.rgba)[size_t(4 * i)], (*colours.rgba)[size_t(4 * i + 1)],
                              (*colours.rgba)[size_t(4 * i + 2)], 255};
            };
            QCOMPARE(pixel(0), colourMap("viridis", 0));
            QCOMPARE(pixel(colours.width - 1), colourMap("viridis", 1));
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item);
                    text && (text->text == "worst" || text->text == "best"))
                    QVERIFY(text->text == "worst" ? text->position.x < colours.box.x
                                                  : text->position.x > colours.box.right() &&
                                                        textBounds(*text, *m_text).right() <= width);
        }
    }

    void aBarPerPaneAndKeptToken() {
        const ViewInput input = needleInput({"keydiff@0.1", "snapkv@0.2"});
        const Scene scene = whole(input, m_options);
        QCOMPARE(barsOf(scene, policyStyle("keydiff", ThemeId::Light).colour), std::int64_t{100});
        QCOMPARE(barsOf(scene, policyStyle("snapkv", ThemeId::Light).colour), std::int64_t{199});
    }

    void shownErrorsEndWithAFullStop() {
        QCOMPARE(withFullStop("no layer"), std::string("no layer."));
        for (const char* ended : {"No layer.", "Which one?", "Computing…", "cannot be read: /a/b.h5", ""})
            QCOMPARE(withFullStop(ended), std::string(ended));
    }

    void setsOfQueryHeadsAreDrawnAsTheirUnionAndSaidToBe() {
        const ViewInput own = needleInput({"snapkv:minference@0.1"}), shared = needleInput({"snapkv@0.1"});
        const HeadSelection& head = own.panes[0].result->selection.heads[1];
        QVERIFY(head.kept.size() > 100 && head.attendedTokens() == 100);
        QCOMPARE(barsOf(whole(own, m_options), policyStyle("snapkv", ThemeId::Light).colour),
                 std::int64_t(head.kept.size()));
        const auto said = [](const ViewInput& input) {
            return QString::fromStdString(provenance(input, {&input.panes[0]}));
        };
        QVERIFY(said(own).endsWith("kept: union of the group's query heads"));
        QVERIFY(!said(shared).contains("union"));
        const QString share = QString::fromStdString(keptShare(*own.panes[0].result, own.kvHead));
        QVERIFY2(share.startsWith("10.1 % per query head, ") && share.endsWith(" % in union"), qPrintable(share));
        QCOMPARE(keptShare(*shared.panes[0].result, shared.kvHead), std::string("10.1 %"));
        const ViewInput weighted = needleInput({"subgen@0.25"}); // a slot drawn twice is stored twice
        const QString both = QString::fromStdString(keptShare(*weighted.panes[0].result, weighted.kvHead));
        QVERIFY2(QRegularExpression("^[0-9.]+ %, stores [0-9.]+ %$").match(both).hasMatch(), qPrintable(both));
    }

    void aSelectionOfAnotherCutNamesItsOwn() {
        ViewInput input = needleInput({"snapkv@0.1"});
        const std::string own = input.cut.label;
        input.cut = Cut::resolve("500", *input.capture);
        const std::string said = provenance(input, {&input.panes[0]});
        QVERIFY2(said.ends_with("cut: " + input.cut.label + " · with its own cut: " + own), said.c_str());
    }

    void differencesShowWhatOnlyOnePaneKeeps() {
        const ViewInput input = needleInput({"keydiff@0.1", "snapkv@0.2"});
        const auto &a = input.panes[0].result->selection.heads[1].kept,
                   &b = input.panes[1].result->selection.heads[1].kept;
        std::vector<TokenIndex> onlyA, onlyB;
        std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(onlyA));
        std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(onlyB));
        ParameterValues options = m_options;
        options.setText("colour", "only_in_a");
        QCOMPARE(barsOf(whole(input, options), policyStyle("keydiff", ThemeId::Light).colour),
                 std::int64_t(onlyA.size()));
        options.setText("colour", "only_in_b");
        QCOMPARE(barsOf(whole(input, options), policyStyle("snapkv", ThemeId::Light).colour),
                 std::int64_t(onlyB.size()));
    }

    void scoresColourTheBestTokenBrightest() {
        const ViewInput input = needleInput({"keydiff@0.1"});
        ParameterValues options = m_options;
        options.setText("colour", "score");
        const Scene scene = whole(input, options);
        const auto boxes = tokenBoxes(scene);
        const HostTensor& scores = input.panes[0].result->scores;
        const float* head = scores.data.data() + scores.shape[1];
        const auto best = static_cast<std::size_t>(std::max_element(head, head + 995) - head);
        QCOMPARE(boxes[best]->fill, colourMap("viridis", 1));
        QCOMPARE(boxes[1000]->fill.a, std::uint8_t{0}); // after the cut there is no score
    }

    // The lower edge of a dock cuts no line of letters in two, wherever it is scrolled to.
    void noLineIsCutAtTheEdge() {
        const ViewInput input = needleInput({"keydiff@0.1"});
        for (const int height : {98, 112, 120, 150, 230, 301})
            for (const TokenIndex top : {0, 300, 1027}) {
                Viewport v = viewport(900, height, *m_text);
                v.top = top;
                const Scene scene = viewById("token_strip").buildScene(input, m_options, v);
                const auto boxes = tokenBoxes(scene);
                QVERIFY(!boxes.empty() && boxes.back()->box.bottom() <= height);
                QVERIFY(top < 1027 || boxes.back()->pick.index == 1027); // the end can be read
            }
    }

    // No policy evicted what follows the cut: other letters, on a ground that the legend names.
    void whatFollowsTheCutDoesNotLookEvicted() {
        ViewInput input = needleInput({"keydiff@0.1", "snapkv@0.2"});
        const Theme& theme = themeOf(ThemeId::Light);
        for (const char* mode : {"panes", "state", "score", "only_in_a", "only_in_b"}) {
            ParameterValues options = m_options;
            options.setText("colour", mode);
            const Scene scene = whole(input, options);
            const auto boxes = tokenBoxes(scene);
            std::vector<Box> grounds;
            for (const Drawable& item : scene.items)
                if (const auto* box = std::get_if<RectangleItem>(&item);
                    box && box->fill == theme.masked && box->box.y > 24)
                    grounds.push_back(box->box);
            const auto onGround = [&](std::size_t token) {
                const Point middle{boxes[token]->box.x + boxes[token]->box.width / 2, boxes[token]->box.y + 5};
                return std::any_of(grounds.begin(), grounds.end(),
                                   [&](const Box& ground) { return ground.contains(middle); });
            };
            for (std::size_t token = 0; token < boxes.size(); ++token)
                QVERIFY2(onGround(token) == (token >= 995), qPrintable(QString("%1: token %2").arg(mode).arg(token)));
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item);
                    text && text->style.size == kStripText.size && text->position.y > boxes.back()->box.y)
                    QVERIFY(text->colour == theme.text2); // evicted: text3
            QCOMPARE(std::count_if(scene.items.begin(), scene.items.end(),
                                   [&](const Drawable& item) {
                                       const auto* swatch = std::get_if<PolygonItem>(&item);
                                       return swatch && swatch->fill == theme.masked;
                                   }),
                     1);
            const auto texts = textsOf(scene);
            QVERIFY2(std::find(texts.begin(), texts.end(), "after the cut: not seen") != texts.end(), mode);
            QCOMPARE(overlappingTexts(scene, *m_text), QStringList());
        }
        input.cut = Cut::resolve("none", *input.capture);
        const auto texts = textsOf(whole(input, m_options));
        QVERIFY(std::find(texts.begin(), texts.end(), "after the cut: not seen") == texts.end());
    }

    void theCutIsAHandleAtItsToken() {
        const Scene scene = whole(needleInput({"keydiff@0.1"}), m_options);
        const auto boxes = tokenBoxes(scene);
        QCOMPARE(pickAt(scene, {boxes[995]->box.x, boxes[995]->box.y + 10}, 0), (PickId{PickId::Kind::Handle, 995}));
    }

    void onlyLinesInSightAreDrawnAndScrollReachesTheEnd() {
        const auto capture = makeRandomCapture(9, 100'000, 1, 2, 1, 4);
        const ViewInput input = makeInput(capture, {"uniform@0.1"}, 0, 0);
        Viewport v = viewport(900, 300, *m_text);
        Scene scene = viewById("token_strip").buildScene(input, m_options, v);
        QVERIFY(scene.items.size() < 2500);
        v.top = 99'999;
        scene = viewById("token_strip").buildScene(input, m_options, v);
        QCOMPARE(tokenBoxes(scene).back()->pick.index, std::int64_t{99'999});
        v.top = *viewById("token_strip").scrollTo(input, v, 50'000);
        scene = viewById("token_strip").buildScene(input, m_options, v);
        const auto boxes = tokenBoxes(scene);
        QVERIFY(boxes.front()->pick.index < 50'000 && boxes.back()->pick.index > 50'000);
    }

    void noScrollLeavesHalfALineAtTheTop() {
        const ViewInput input = needleInput({"keydiff@0.1", "snapkv@0.2"});
        for (TokenIndex top = 0; top < 400; top += 7) {
            Viewport v = viewport(700, 138, *m_text);
            v.top = top;
            const Scene scene = viewById("token_strip").buildScene(input, m_options, v);
            bool inText = false; // the legend stands above it
            for (const Drawable& item : scene.items) {
                inText = inText || std::holds_alternative<PushClipItem>(item);
                const auto* box = std::get_if<RectangleItem>(&item);
                if (inText && box && (box->pick.kind == PickId::Kind::Token || box->box.height < 4))
                    QVERIFY2(box->box.y >= scene.plot.y,
                             qPrintable(QString("token %1: a mark at y %2").arg(top).arg(box->box.y)));
            }
        }
    }

    void theFurthestScrollShowsTheLastLineWhole() {
        for (const double height : {97.0, 138.0, 203.0}) {
            Viewport v = viewport(700, height, *m_text);
            const ViewInput input = needleInput({"keydiff@0.1"});
            const auto last = [&](TokenIndex top) {
                v.top = top;
                const Scene scene = viewById("token_strip").buildScene(input, m_options, v);
                return std::pair(tokensInBoxes(scene)->second, tokenBoxes(scene).back()->box);
            };
            const auto [token, box] = last(1027);
            QCOMPARE(token, std::int64_t{1027});
            QVERIFY2(box.bottom() <= height, qPrintable(QString("%1 of %2").arg(box.bottom()).arg(height)));
            // One line up from there, the last one is out of sight.
            const auto first =
                static_cast<TokenIndex>(tokensInBoxes(viewById("token_strip").buildScene(input, m_options, v))->first);
            v.top = first;
            QVERIFY(last(*viewById("token_strip").scrollBy(input, v, -kStripLead)).first < 1027);
        }
    }

    void blanksAndBrokenBytesAreMadeVisible() {
        QCOMPARE(stripText(" word"), std::string(" word"));
        QCOMPARE(stripText(" "), std::string("␣"));
        QCOMPARE(stripText("\n\n"), std::string("↵↵"));
        QCOMPARE(stripText("\xE2"), std::string("\\xE2"));
        QCOMPARE(stripText("\xE2\x82\xAC"), std::string("€"));
        QCOMPARE(stripText("\xED\xA0\x80"), std::string("\\xED\\xA0\\x80")); // a surrogate is no character
        QCOMPARE(stripText("a\tb"), std::string("a⇥b"));
    }

    void textsOfLegendAndPositionsDoNotCollide() {
        for (const double width : {300.0, 640.0, 1400.0})
            for (const char* mode : {"panes", "state", "score", "only_in_a"}) {
                ParameterValues options = m_options;
                options.setText("colour", mode);
                const Scene scene = viewById("token_strip")
                                        .buildScene(needleInput({"keydiff@0.1", "snapkv@0.2", "streaming_llm@0.2"}),
                                                    options, viewport(width, 138, *m_text));
                Scene chrome = scene; // tokens follow each other without a gap by construction
                std::erase_if(chrome.items, [](const Drawable& d) {
                    const auto* t = std::get_if<TextItem>(&d);
                    return t && t->style == kStripText;
                });
                QCOMPARE(overlappingTexts(chrome, *m_text), QStringList());
            }
    }

    // A recorded list was made at another cut than the session's: the tokens that its policy saw count, in the finding
    // and wherever else kept tokens of a selection are counted.
    void keptTokensOfASelectionCountUpToThePanesOwnCut() {
        ViewInput input = needleInput({"keydiff@0.1"});
        auto own = std::make_shared<RunResult>(*input.panes[0].result);
        own->visible = 500;
        for (HeadSelection& head : own->selection.heads) head.kept = {100, 498, 499};
        input.panes[0].result = own;
        input.focus.selected = {99, 498, 499, 500, 994, 1000};
        const auto [kept, of] = keptAmong(input, input.panes[0], input.focus.selected);
        QVERIFY(kept == 2 && of == 3);
        const std::string finding = viewById("token_strip").finding(input, m_options);
        QVERIFY2(finding.find("keeps 2 of 3 ") != std::string::npos, finding.c_str());
        input.focus.selected = {1000};
        QVERIFY(viewById("token_strip").finding(input, m_options).find("keeps 3 of 500 seen") != std::string::npos);
    }

    void findingNamesEveryPane() {
        const std::string text =
            viewById("token_strip").finding(needleInput({"keydiff:kvpress@0.1", "snapkv@0.1"}), m_options);
        QCOMPARE(text, std::string("KeyDiff keeps 25 of 48 needle tokens at 99 tokens (9.9 %); SnapKV keeps 1 of 48 "
                                   "needle tokens at 100 tokens (10.1 %)"));
        QVERIFY(!viewById("token_strip").finding(ViewInput{}, m_options).empty());
    }

    void everyCardIsComplete() {
        std::set<std::string> ids;
        for (const View* view : allViews()) {
            const ViewCard& card = view->card();
            QVERIFY(ids.insert(card.id).second);
            QVERIFY(!card.name.empty() && !card.summary.empty() && !card.paper.empty() && card.help.size() > 100);
            for (const ParameterSpec& option : *card.options)
                QVERIFY(!option.help.empty() && !option.label.empty() && !option.source.empty());
        }
    }

    void pictureShowsBarsAndFrame() {
        const QImage image = renderScene(
            viewById("token_strip").buildScene(needleInput({"keydiff@0.3"}), m_options, viewport(900, 400, *m_text)),
            1);
        int teal = 0;
        for (int y = 24; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) teal += image.pixelColor(x, y) == QColor(0x03, 0x65, 0x69);
        QVERIFY2(teal > 1000, qPrintable(QString::number(teal)));
    }
};

KVSCOPE_OFFSCREEN_TEST(TokenStripViewTest)
#include "token_strip_view_test.moc"
