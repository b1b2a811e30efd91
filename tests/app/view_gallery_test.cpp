// The gallery: every view has a picture of this session or says why not, is found by typing and opened by Enter or a
// click; the menus that it replaces are short.
#include "app/window/actions/window_actions.h"
#include "app/window/dialogs/thumbnail_sheet.h"
#include "app/window/docks/dock_layout.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QSettings>

#include <algorithm>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class ViewGalleryTest : public QObject {
    Q_OBJECT

    static ViewGallery* shownGallery(OpenWindow& open) {
        open.window.actions()->byName("views")->trigger(); // a key, where the window is active
        auto* gallery = open.window.findChild<ViewGallery*>();
        return gallery && gallery->isVisible() ? gallery : nullptr;
    }
    static int coloursOf(const QImage& image) {
        QSet<QRgb> colours;
        for (int y = 0; y < image.height(); y += 2)
            for (int x = 0; x < image.width(); x += 2) colours.insert(image.pixel(x, y));
        return static_cast<int>(colours.size());
    }
    static QStringList idsOf(const ViewGallery& gallery) {
        QStringList ids;
        for (const ViewThumbnail* card : gallery.shown()) ids += card->objectName();
        return ids;
    }

private slots:
    void initTestCase() {
        QApplication::setStyle(makeChromeStyle()); // as the program does
    }
    void init() { QSettings().clear(); }

    void everyViewHasAPictureOrSaysWhyNot() {
        OpenWindow open({1440, 900});
        ViewGallery* gallery = shownGallery(open);
        QVERIFY(gallery);
        QVERIFY(open.window.actions()->byName("views")->shortcut() == QKeySequence("V"));
        open.settle();
        QCOMPARE(gallery->shown().size(), allViews().size());
        int pictures = 0;
        for (const ViewThumbnail* card : gallery->shown()) {
            const QString which = card->objectName() + ": " + card->reason();
            QVERIFY2(!card->picture().isNull() || card->reason().endsWith('.'), qPrintable(which));
            if (card->picture().isNull()) continue;
            ++pictures;
            QVERIFY2(coloursOf(card->picture()) >= 4, qPrintable(which)); // no empty sheet
            QVERIFY2(!card->toolTip().isEmpty(), qPrintable(which));
        }
        QVERIFY2(pictures >= 15, qPrintable(QString::number(pictures)));
        for (const char* id : {"token_strip", "attention_map", "head_grid", "curves", "key_projection"})
            QVERIFY2(!gallery->findChild<ViewThumbnail*>(id)->picture().isNull(), id);
        QTest::keyClick(gallery, Qt::Key_Escape);
        QVERIFY(!gallery->isVisible());
    }

    void picturesAreOfThisSession() {
        OpenWindow open({1440, 900});
        ViewGallery* gallery = shownGallery(open);
        QVERIFY(gallery);
        open.settle();
        const auto pictureOf = [&](const char* id) { return gallery->findChild<ViewThumbnail*>(id)->picture(); };
        const QImage grid = pictureOf("head_grid"), strip = pictureOf("token_strip");
        gallery->hide();
        open.settle();
        QVERIFY(shownGallery(open));
        open.settle();
        QVERIFY(pictureOf("head_grid") == grid && pictureOf("token_strip") == strip);
        gallery->hide();
        open.bench.change([](Session& s) { s.panes.resize(1); }, "Panes");
        open.settle();
        QVERIFY(shownGallery(open));
        open.settle();
        QVERIFY(pictureOf("token_strip") != strip);
    }

    void typingFindsAndEnterOpens() {
        OpenWindow open({1440, 900});
        ViewGallery* gallery = shownGallery(open);
        QVERIFY(gallery);
        auto* search = gallery->findChild<QLineEdit*>("searchViews");
        QCOMPARE(gallery->focusWidget(), static_cast<QWidget*>(search));
        QTest::keyClicks(search, "tree");
        QCOMPARE(idsOf(*gallery), QStringList{"merge_tree"});
        search->clear();
        QTest::keyClicks(search, "no view says so");
        QVERIFY(gallery->shown().empty());
        QTest::keyClick(search, Qt::Key_Return); // opens nothing
        QVERIFY(gallery->isVisible());
        search->clear();
        QTest::keyClicks(search, "does it cost");
        const QStringList cost = idsOf(*gallery);
        QVERIFY2(cost.contains("curves") && !cost.contains("overlap"), qPrintable(cost.join(' ')));
        search->clear();
        QTest::keyClicks(search, "variant");
        QTest::keyClick(search, Qt::Key_Return);
        QVERIFY(!gallery->isVisible());
        open.arrange();
        const PanelDock* opened = open.window.docks()->dock("variant_diff");
        QVERIFY(!opened->visibleRegion().isEmpty() && opened->height() >= 200);
    }

    void arrowsAndClicksOpen() {
        OpenWindow open({1440, 900});
        ViewGallery* gallery = shownGallery(open);
        QVERIFY(gallery);
        const auto cards = gallery->shown();
        auto* search = gallery->findChild<QLineEdit*>("searchViews");
        QTest::keyClick(search, Qt::Key_Down);
        QCOMPARE(gallery->focusWidget(), static_cast<QWidget*>(cards[0]));
        QTest::keyClick(cards[0], Qt::Key_Right);
        QCOMPARE(gallery->focusWidget(), static_cast<QWidget*>(cards[1]));
        QTest::keyClick(cards[1], Qt::Key_Down);
        const auto* below = static_cast<QWidget*>(gallery->focusWidget());
        QVERIFY(below->y() > cards[1]->y());
        QTest::keyClick(gallery->focusWidget(), Qt::Key_Up);
        QTest::keyClick(gallery->focusWidget(), Qt::Key_Up);
        QCOMPARE(gallery->focusWidget(), static_cast<QWidget*>(search));
        QTest::mouseClick(gallery->findChild<ViewThumbnail*>("theory"), Qt::LeftButton);
        open.arrange();
        QVERIFY(!gallery->isVisible() && !open.window.docks()->dock("theory")->visibleRegion().isEmpty());
        QVERIFY(shownGallery(open)); // what the panes show has a layout of its own
        QTest::mouseClick(gallery->findChild<ViewThumbnail*>("key_projection"), Qt::LeftButton);
        QVERIFY(open.bench.session().layout == WindowLayout::ExploreHead);
    }

    void oneViewForAllHeadsOpensTheHeadThatIsClicked() {
        OpenWindow open({1440, 900});
        const int kvHeads = open.bench.capture()->info().numKvHeads,
                  queryHeads = open.bench.capture()->info().numQueryHeads;
        open.pane(1)->canvas()->canvas()->setFocus();
        QTest::keyClick(open.pane(1)->canvas()->canvas(), Qt::Key_H);
        auto* heads = open.window.findChild<HeadGallery*>();
        QVERIFY(heads && heads->isVisible());
        open.settle();
        QCOMPARE(static_cast<int>(heads->shown().size()), kvHeads);
        QCOMPARE(open.bench.session().activePane, 1);
        for (const ViewThumbnail* card : heads->shown())
            QVERIFY2(!card->picture().isNull() && coloursOf(card->picture()) >= 4, qPrintable(card->reason()));
        QVERIFY(heads->shown()[0]->picture() != heads->shown()[1]->picture());
        QVERIFY(open.bench.session().kvHead.value != 0);
        QTest::mouseClick(heads->shown().front(), Qt::LeftButton);
        QVERIFY(!heads->isVisible());
        QCOMPARE(open.bench.session().kvHead.value, 0);
        open.bench.change([](Session& s) { s.layout = WindowLayout::ExploreHead; }, "Layout");
        open.settle();
        for (const ViewDock* dock : open.window.canvases()->docks())
            if (dock->canvas()->view().card().id == "attention_map") emit dock->canvas()->headsWanted();
        heads = open.window.findChild<HeadGallery*>();
        open.settle();
        QCOMPARE(static_cast<int>(heads->shown().size()), queryHeads);
        QTest::keyClicks(heads->findChild<QLineEdit*>("searchViews"), "head 3");
        QCOMPARE(static_cast<int>(heads->shown().size()), 1);
    }

    /// What does not fit ends with an ellipsis; half a line said nothing.
    void aLongFindingEndsWithAWholeLine() {
        OpenWindow open({1440, 900});
        for (const ViewDock* dock : open.window.canvases()->docks())
            if (dock->canvas()->view().card().id == "token_strip") emit dock->canvas()->headsWanted();
        open.settle();
        const ViewThumbnail* card = open.window.findChild<HeadGallery*>()->shown().back();
        QVERIFY2(card->toolTip().size() > 120, qPrintable(card->toolTip())); // three lines have about 35 letters each
        const QImage image = const_cast<ViewThumbnail*>(card)->grab().toImage();
        const QRect belowTheText(12, image.height() - 5, image.width() - 24, 3);
        QVERIFY(coloursOf(image.copy(10, image.height() - 24, image.width() - 20, 20)) > 4); // the third line
        QCOMPARE(coloursOf(image.copy(belowTheText)), 1);
    }

    void theMenusAreShort() {
        OpenWindow open({1440, 900});
        for (const QAction* title : open.window.findChild<QMenuBar*>()->actions())
            for (const QAction* entry : title->menu()->actions()) {
                QVERIFY2(title->menu()->actions().size() <= 18, qPrintable(title->text()));
                for (const View* view : allViews())
                    QVERIFY2(entry->text() != QString::fromStdString(view->card().name), qPrintable(entry->text()));
            }
    }
};

KVSCOPE_WINDOW_TEST(ViewGalleryTest)
#include "view_gallery_test.moc"
