// The prompt is read as a text: selected in reading order by the mouse, copied, scrolled, and it follows other views.
#include "app/study/prompt_text.h"
#include "app/text/qt_text_service.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"
#include "views/token_strip/strip_picture.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QMouseEvent>
#include <QSettings>
#include <QStyleHints>
#include <QWheelEvent>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

struct OpenText : OpenWindow {
    ViewCanvas* const view = strip();
    CanvasWidget* const canvas = view->canvas();

    const TokenTable& tokens() const { return bench.capture()->tokens(); }
    const std::vector<TokenIndex>& selected() const { return bench.session().selected; }
    std::optional<Box> boxOf(const PickId& pick) const { return boxOfPick(canvas->scene(), pick); }
    QPoint pixel(Point p) const {
        return {static_cast<int>(p.x * appearance().scale), static_cast<int>(p.y * appearance().scale)};
    }
    QPoint middleOf(TokenIndex token) const {
        const auto box = boxOf({PickId::Kind::Token, token});
        return box ? pixel(box->centre()) : QPoint(-1, -1);
    }
    /// The first and the last token that are seen.
    std::pair<TokenIndex, TokenIndex> seen() const {
        const auto ends = tokensInBoxes(canvas->scene()).value_or(std::pair(-1, -1));
        return {static_cast<TokenIndex>(ends.first), static_cast<TokenIndex>(ends.second)};
    }
    void drag(QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = {}) const {
        QTest::mousePress(canvas, Qt::LeftButton, modifiers, from);
        for (int step = 1; step <= 5; ++step) QTest::mouseMove(canvas, from + (to - from) * step / 5);
        QTest::mouseRelease(canvas, Qt::LeftButton, modifiers, to);
    }
    void click(QEvent::Type type, QPoint at, quint64 time) const {
        QMouseEvent event(type, at, canvas->mapToGlobal(at), Qt::LeftButton, Qt::LeftButton, {});
        event.setTimestamp(time);
        QCoreApplication::sendEvent(canvas, &event);
    }
    void turnWheel(QPoint at, int notches) const {
        QWheelEvent event(at, canvas->mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, {}, Qt::NoScrollPhase,
                          false);
        QCoreApplication::sendEvent(canvas, &event);
    }
    std::vector<TokenIndex> run(TokenIndex from, TokenIndex to) const { return tokensOf({{from, to + 1}}); }
    QString clipboard() const { return QGuiApplication::clipboard()->text(); }
};

} // namespace

class WindowTextTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    // Over the ends of lines, forwards and backwards: what lies between in the text, one step of undo, no scrolling.
    void aDragSelectsInReadingOrder() {
        OpenText open;
        const auto before = open.selected();
        const TokenIndex top = open.bench.session().look.stripTop;
        const auto [first, last] = open.seen();
        const TokenIndex from = first + 3, to = last - 4;
        const auto boxFrom = open.boxOf({PickId::Kind::Token, from}), boxTo = open.boxOf({PickId::Kind::Token, to});
        QVERIFY(boxFrom && boxTo && boxTo->y > boxFrom->y); // of two lines
        open.drag(open.middleOf(from), open.middleOf(to));
        QCOMPARE(open.selected(), open.run(from, to));
        QCOMPARE(open.bench.session().look.stripTop, top);
        QTest::mouseClick(open.canvas, Qt::LeftButton, Qt::ShiftModifier, open.middleOf(to - 2)); // the anchor stays
        QCOMPARE(open.selected(), open.run(from, to - 2));
        open.bench.undo();
        open.bench.undo();
        QCOMPARE(open.selected(), before);
        open.drag(open.middleOf(to), open.middleOf(from));
        QCOMPARE(open.selected(), open.run(from, to));
    }

    void theSelectedTextAndItsPositionsAreCopied() {
        OpenText open;
        const auto [first, last] = open.seen();
        open.drag(open.middleOf(first + 1), open.middleOf(first + 6));
        QTest::keyClick(open.canvas, Qt::Key_C, Qt::ControlModifier);
        std::string text;
        QStringList positions;
        for (TokenIndex token = first + 1; token <= first + 6; ++token) {
            text += open.tokens().textOf(token);
            positions += QString::number(token);
        }
        QCOMPARE(open.clipboard(), QString::fromStdString(text));
        QTest::keyClick(open.canvas, Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(open.clipboard(), positions.join(", "));
        QTest::keyClick(open.canvas, Qt::Key_A, Qt::ControlModifier);
        QCOMPARE(open.selected().size(), open.tokens().ids.size());
    }

    void clicksSelectWordAndSentence() {
        OpenText open;
        const auto before = open.selected();
        const auto asked = *askedNeedle(open.tokens());
        const TokenIndex token = asked.begin + 5;
        const QPoint at = open.middleOf(token); // the text shows the needle
        open.click(QEvent::MouseButtonPress, at, 1000);
        open.click(QEvent::MouseButtonRelease, at, 1050);
        open.click(QEvent::MouseButtonDblClick, at, 1150);
        open.click(QEvent::MouseButtonRelease, at, 1200);
        QCOMPARE(open.selected(), tokensOf({wordAround(open.tokens(), token)}));
        QVERIFY(!open.view->readOut()->isPinned());
        QVERIFY(!open.bench.session().look.ranges.contains("token_strip"));
        open.click(QEvent::MouseButtonPress, at, 1300);
        open.click(QEvent::MouseButtonRelease, at, 1350);
        QCOMPARE(open.selected(), tokensOf({sentenceAround(open.tokens(), token)}));
        open.bench.undo(); // both in one step
        QCOMPARE(open.selected(), before);
        const auto late = static_cast<quint64>(QGuiApplication::styleHints()->mouseDoubleClickInterval()) + 3000;
        open.click(QEvent::MouseButtonDblClick, at, 2000);
        open.click(QEvent::MouseButtonRelease, at, 2010);
        open.click(QEvent::MouseButtonPress, at, late); // a click of its own
        open.click(QEvent::MouseButtonRelease, at, late + 10);
        QCOMPARE(open.selected(), tokensOf({wordAround(open.tokens(), token)}));
    }

    // One thing at a time: the pinned read-out, then the selection.
    void escReleasesThePinFirst() {
        OpenText open;
        const auto before = open.selected();
        QTest::mouseClick(open.canvas, Qt::LeftButton, {}, open.middleOf(open.seen().first + 2));
        QVERIFY(open.view->readOut()->isPinned());
        QTest::keyClick(open.canvas, Qt::Key_Escape);
        QVERIFY(!open.view->readOut()->isVisible());
        QCOMPARE(open.selected(), before);
        QTest::keyClick(open.canvas, Qt::Key_Escape);
        QVERIFY(open.selected().empty());
    }

    void theScrollBarGoesThroughTheText() {
        OpenText open;
        const auto track = open.boxOf(kScrollBar);
        QVERIFY(track);
        const auto at = [&](double share) { return open.pixel({track->centre().x, track->y + share * track->height}); };
        const auto selection = open.selected();
        open.drag(at(0.5), at(0.99));
        QCOMPARE(open.seen().second, static_cast<TokenIndex>(open.tokens().ids.size()) - 1);
        QCOMPARE(open.bench.session().look.stripTop, open.seen().first);
        QTest::mouseClick(open.canvas, Qt::LeftButton, {}, at(0.02));
        QCOMPARE(open.seen().first, 0);
        QCOMPARE(open.selected(), selection);
    }

    // The wheel moves the text under the pointer: hover and read-out go with it, and a pinned one with its token.
    void theReadOutGoesWithTheWheel() {
        OpenText open;
        const TokenIndex under = open.seen().first + 8;
        const QPoint at = open.middleOf(under);
        QTest::mouseMove(open.canvas, at);
        QTRY_COMPARE(open.view->readOut()->token(), under);
        open.turnWheel(at, -1);
        const PickId now = pickAt(open.canvas->scene(), {at.x() / appearance().scale, at.y() / appearance().scale}, 4);
        QVERIFY(now.index != under);
        QCOMPARE(open.view->readOut()->token(), now.kind == PickId::Kind::Token ? TokenIndex(now.index) : -1);
        const TokenIndex pinned = open.seen().first + 3;
        QTest::mouseClick(open.canvas, Qt::LeftButton, {}, open.middleOf(pinned));
        QVERIFY(open.view->readOut()->isPinned());
        open.turnWheel(at, -9);
        QVERIFY(!open.view->readOut()->isPinned() && open.view->readOut()->token() != pinned); // out of sight
    }

    // What is read stays in sight: the top line holds the same token, however the lines break.
    void anotherWidthKeepsThePlaceInTheText() {
        OpenText open;
        open.bench.change([](Session& s) { s.selected.clear(); }, "Clear");
        open.turnWheel(open.canvas->rect().center(), 100);
        open.turnWheel(open.canvas->rect().center(), -5);
        const TokenIndex top = open.seen().first;
        QVERIFY(top > 50);
        for (const int width : {2000, 1100, 1440}) {
            const int before = open.canvas->width();
            open.window.resize(width, 900);
            QTRY_VERIFY(open.canvas->width() != before);
            open.arrange();
            const auto seen = open.seen();
            QVERIFY2(seen.first <= top && top < seen.first + 60,
                     qPrintable(QString("%1 from %2").arg(top).arg(seen.first)));
        }
        QCOMPARE(open.seen().first, top);
    }

    // A touch pad turns by less than a line; over a picture the wheel leaves the text where it is.
    void smallTurnsAddUpAndOtherViewsLeaveTheText() {
        OpenText open;
        open.bench.change([](Session& s) { s.selected.clear(); }, "Clear");
        const auto turn = [](CanvasWidget* over, int eighths) {
            const QPoint at = over->rect().center();
            QWheelEvent event(at, over->mapToGlobal(at), {}, {0, eighths}, Qt::NoButton, {}, Qt::NoScrollPhase, false);
            QCoreApplication::sendEvent(over, &event);
        };
        turn(open.canvas, 120 * 100);
        QCOMPARE(open.seen().first, 0);
        const QtTextService text;
        const double width = open.canvas->width() / appearance().scale - kStripGutter - 14 - kScrollBarWidth;
        const auto layout = layoutStrip(*open.bench.capture(), width, text);
        const auto lineOf = [&](TokenIndex token) { return static_cast<int>(layout->lineOf(token)); };
        // Pixels of a turn, turns, and lines of 27 pixels.
        for (const auto& [pixels, turns, lines] : {std::array{6, 5, 1}, {26, 10, 9}, {60, 4, 8}}) {
            const auto before = lineOf(open.seen().first);
            for (int i = 0; i < turns; ++i) turn(open.canvas, -2 * pixels);
            QCOMPARE(lineOf(open.seen().first) - before, lines);
            turn(open.canvas, 12); // back by less than a line: what comes is counted from here
        }
        const TokenIndex second = open.seen().first;
        QVERIFY(second > 0 && open.bench.session().look.stripTop == second);
        for (ViewDock* dock : open.window.canvases()->docks())
            if (dock->canvas() != open.view) turn(dock->canvas()->canvas(), -120);
        QCOMPARE(open.bench.session().look.stripTop, second);
        turn(open.canvas, -120 * 100);
        QCOMPARE(open.bench.session().look.stripTop, open.seen().first); // at the end, too
    }

    // A token that is pointed at elsewhere is shown as long as it is, a locked cell's key stays.
    void theTextFollowsOtherViews() {
        OpenText open;
        const TokenIndex top = open.bench.session().look.stripTop;
        const auto before = open.seen();
        open.bench.setHovered(5);
        QVERIFY(before.first > 5 && open.seen().first <= 5);
        open.bench.setHovered(900);
        QVERIFY(open.seen().first <= 900 && open.seen().second >= 900);
        const auto peeked = open.seen(); // the wheel goes on from there
        open.turnWheel(open.canvas->rect().center(), -1);
        QVERIFY(open.seen().first > peeked.first && open.seen().first < 1000);
        open.bench.change([&](Session& s) { s.look.stripTop = top; }, "Scroll");
        open.bench.setHovered(-1);
        QCOMPARE(open.seen(), before);
        QCOMPARE(open.bench.session().look.stripTop, top);
        open.bench.change(
            [](Session& s) {
                s.layout = WindowLayout::ExploreHead;
                setViewOption(s, "attention_map", "cell", "900,20");
            },
            "Cell");
        open.arrange();
        open.finish();
        QTRY_VERIFY_WITH_TIMEOUT(open.boxOf({PickId::Kind::Token, 20}), 20000);
        int ringed = 0; // as under the pointer
        for (const Drawable& item : open.canvas->scene().items)
            if (const auto* box = std::get_if<RectangleItem>(&item))
                ringed += box->stroke.width == 2 && box->box.contains(open.boxOf({PickId::Kind::Token, 20})->centre());
        QCOMPARE(ringed, 1);
    }

    // N takes the needle that is asked for, then the next ones.
    void nTakesTheNeedleThatIsAskedFor() {
        OpenText open;
        open.bench.change([](Session& s) { select(s, {3}); }, "Selection");
        open.canvas->setFocus();
        const auto asked = tokensOf({*askedNeedle(open.tokens())});
        QTest::keyClick(open.canvas, Qt::Key_N);
        QCOMPARE(open.selected(), asked);
        QTest::keyClick(open.canvas, Qt::Key_N);
        QVERIFY(open.selected().front() > asked.front());
        QTest::keyClick(open.canvas, Qt::Key_N);
        QVERIFY(open.selected().front() < asked.front());
        QTest::keyClick(open.canvas, Qt::Key_N);
        QCOMPARE(open.selected(), asked);
    }
};

KVSCOPE_WINDOW_TEST(WindowTextTest)
#include "window_text_test.moc"
