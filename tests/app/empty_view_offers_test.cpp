// A view that is empty for want of a policy offers it: one press of its button, and the picture is there; one undo, and
// it is gone. The button stands below the sentence at every size of a dock.
#include "tests/app/one_view.h"
#include "tests/support/test_program.h"
#include "views/common/pane_offers.h"
#include "views/view.h"

#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

using namespace kvscope;
using kvscope::testing::OneView;

namespace {

using Panes = std::vector<std::string>;

QPushButton* buttonOf(const OneView& one) { return one.view->findChild<QPushButton*>("offer"); }

bool isEmpty(const OneView& one) {
    const Scene& scene = one.view->canvas()->scene();
    return std::all_of(scene.items.begin(), scene.items.end(),
                       [](const Drawable& item) { return std::holds_alternative<TextItem>(item); });
}

bool computed(OneView& one) {
    return QTest::qWaitFor(
        [&] {
            for (const PaneData& pane : one.bench.viewInput().panes)
                if (!pane.result || pane.computing) return false;
            return !one.bench.viewInput(one.view->view()).data.computing;
        },
        30000);
}

const View& viewNamed(const QString& id) { return viewById(id.toStdString()); }

} // namespace

class EmptyViewOffersTest : public QObject {
    Q_OBJECT

private slots:
    void onePressFillsTheView_data() {
        QTest::addColumn<QString>("view");
        QTest::addColumn<Panes>("panes");
        QTest::addColumn<QString>("label");
        QTest::addColumn<int>("panesAfter");
        QTest::addColumn<int>("active");
        QTest::addColumn<QString>("policy");
        QTest::newRow("a further pane") << "score_plane" << Panes{"keydiff"} << "Add a pane with Compactor" << 2 << 1
                                        << "compactor";
        QTest::newRow("a pane that has it")
            << "score_plane" << Panes{"keydiff", "snapkv", "compactor"} << "Show pane C" << 3 << 2 << "compactor";
        QTest::newRow("no room") << "score_plane" << Panes{"keydiff", "snapkv", "tova", "h2o"}
                                 << "Use Compactor in pane A" << 4 << 0 << "compactor";
        QTest::newRow("clusters") << "clustering" << Panes{"keydiff"} << "Add a pane with SubGen" << 2 << 1 << "subgen";
        QTest::newRow("a block") << "block_timeline" << Panes{"tova", "keydiff"} << "Set its prompt block to 128" << 2
                                 << 0 << "tova";
        QTest::newRow("blocks of another") << "block_timeline" << Panes{"balancekv_stream", "keydiff,prompt_block=128"}
                                           << "Show pane B" << 2 << 1 << "keydiff";
        QTest::newRow("a policy with blocks")
            << "block_timeline" << Panes{"balancekv_stream"} << "Add a pane with KeyDiff" << 2 << 1 << "keydiff";
    }
    void onePressFillsTheView() {
        QFETCH(QString, view);
        QFETCH(Panes, panes);
        QFETCH(QString, label);
        QFETCH(int, panesAfter);
        QFETCH(int, active);
        QFETCH(QString, policy);
        OneView one(viewNamed(view), panes, {});
        QVERIFY(computed(one));
        QPushButton* button = buttonOf(one);
        QTRY_VERIFY(button->isVisible());
        QVERIFY(isEmpty(one));
        QTRY_COMPARE(button->text(), label);
        const auto& sentence = std::get<TextItem>(one.view->canvas()->scene().items.front()).text;
        QVERIFY2(sentence.front() >= 'A' && sentence.front() <= 'Z',
                 sentence.c_str()); // errors begin small on the command line
        const Session before = one.bench.session();
        QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(one.bench.session().panes.size(), static_cast<std::size_t>(panesAfter));
        QCOMPARE(one.bench.session().activePane, active);
        QCOMPARE(QString::fromStdString(one.bench.session().panes[static_cast<std::size_t>(active)].policy.policy),
                 policy);
        QTRY_VERIFY_WITH_TIMEOUT(!isEmpty(one), 30000);
        QTRY_VERIFY(!button->isVisible());
        one.bench.undo();
        QVERIFY(one.bench.session().panes == before.panes);
        QTRY_VERIFY(isEmpty(one) && button->isVisible());
    }

    void whatNeedsNoPolicyOffersNone() {
        OneView one(viewById("clustering"), {"keydiff"}, {{"picture", "radius"}});
        QVERIFY(computed(one));
        QTRY_VERIFY_WITH_TIMEOUT(!isEmpty(one), 30000);
        QVERIFY(!buttonOf(one)->isVisible());
    }

    // Its error stands in place of the picture; the header of its dock does not say it again.
    void aPolicyThatCannotRunLeadsToItsParameters() {
        OneView one(viewById("token_profile"), {"imported", "keydiff"}, {});
        QSignalSpy wanted(one.view.get(), &ViewCanvas::parametersWanted);
        one.finish();
        QPushButton* button = buttonOf(one);
        QTRY_VERIFY(button->isVisible() && one.view->headerFinding().isEmpty());
        QCOMPARE(button->text(), QString("Show the parameters of pane A"));
        QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(wanted.count(), 1);
        one.bench.change([](Session& s) { s.activePane = 1; }, "Active pane");
        one.finish();
        QTRY_VERIFY(!button->isVisible() && !one.view->headerFinding().isEmpty());
        OneView alone(viewById("token_profile"), {"imported", "keydiff"}, {}); // as in a presentation
        alone.finish();
        QTRY_VERIFY(isEmpty(alone));
        QVERIFY(!buttonOf(alone)->isVisible());
    }

    void theKeyboardReachesIt() {
        OneView one(viewById("score_plane"), {"keydiff"}, {});
        QVERIFY(computed(one));
        QTRY_VERIFY(buttonOf(one)->isVisible());
        buttonOf(one)->setFocus(Qt::TabFocusReason);
        QTest::keyClick(buttonOf(one), Qt::Key_Space);
        QCOMPARE(one.bench.session().panes.size(), std::size_t{2});
    }

    void itStandsBelowTheSentenceAtEverySize_data() {
        QTest::addColumn<QSize>("size");
        for (const QSize size :
             {QSize(900, 600), QSize(940, 126), QSize(490, 150), QSize(345, 130), QSize(246, 176), QSize(900, 62)})
            QTest::addRow("%dx%d", size.width(), size.height()) << size;
    }
    void itStandsBelowTheSentenceAtEverySize() {
        QFETCH(QSize, size);
        for (const View* view : {&viewById("score_plane"), &viewById("clustering"), &viewById("block_timeline")}) {
            OneView one(*view, {"keydiff"}, {});
            one.view->resize(size);
            QVERIFY(computed(one));
            QPushButton* button = buttonOf(one);
            QTRY_VERIFY(button->isVisible());
            QTRY_VERIFY(one.view->rect().contains(button->geometry()));
            for (const Drawable& item : one.view->canvas()->scene().items)
                if (const auto* text = std::get_if<TextItem>(&item))
                    QTRY_VERIFY2((text->position.y + 6) * appearance().scale <= button->y(), view->card().id.c_str());
            QVERIFY(button->width() >= button->sizeHint().width());
        }
    }
};

KVSCOPE_WINDOW_TEST(EmptyViewOffersTest)
#include "empty_view_offers_test.moc"
