// The manual inside the program: all pages are there, links lead from page to page, pictures are drawn.
#include "app/window/actions/window_actions.h"
#include "app/window/dialogs/manual_window.h"
#include "tests/app/window_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QAbstractTextDocumentLayout>
#include <QAction>
#include <QDesktopServices>
#include <QDir>
#include <QImage>
#include <QLabel>
#include <QRegularExpression>
#include <QScrollBar>
#include <QSettings>
#include <QTextBlock>

#include <cmath>

using namespace kvscope;
using kvscope::testing::OpenWindow;

class ManualWindowTest : public QObject {
    Q_OBJECT

    static QPoint placeOfLink(const ManualPage& page, const QString& target) {
        for (int y = 0; y < page.viewport()->height(); y += 4)
            for (int x = 0; x < page.viewport()->width(); x += 8)
                if (page.anchorAt({x, y}).endsWith(target)) return {x, y};
        return {};
    }

private slots:
    void init() { QSettings().clear(); }

    void opensOnTheContents() {
        ManualWindow window;
        window.setAttribute(Qt::WA_DeleteOnClose, false);
        const auto* page = window.findChild<ManualPage*>("manualPage");
        QVERIFY(page);
        QVERIFY(page->toPlainText().contains("Capture your model"));
    }

    void showsEveryPageWithItsPictures() {
        ManualPage page;
        const QDir folder(QString::fromStdString(kvscope::testing::sourceDir() + "/resources/manual"));
        int pictures = 0;
        for (const QString& name : folder.entryList({"*.md"}, QDir::Files)) {
            page.setSource(QUrl("qrc:/manual/" + name), QTextDocument::MarkdownResource);
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::ReadOnly));
            const QString text = QString::fromUtf8(file.readAll());
            QVERIFY2(page.toPlainText().size() > text.size() / 3, qPrintable(name));
            auto found = QRegularExpression(R"re(\]\((pictures/[^)]+)\))re").globalMatch(text);
            while (found.hasNext()) {
                const auto image =
                    page.loadResource(QTextDocument::ImageResource, QUrl(found.next().captured(1))).value<QImage>();
                QVERIFY2(!image.isNull() && image.width() > 200, qPrintable(name));
                ++pictures;
            }
        }
        QVERIFY(pictures >= 5);
    }

    void picturesGrowWithTheInterface() {
        const auto widthAt = [](double scale, const char* picture) {
            setAppearance({ThemeId::Light, scale, false});
            ManualPage page;
            page.setSource(QUrl("qrc:/manual/compare.md"), QTextDocument::MarkdownResource);
            return page.loadResource(QTextDocument::ImageResource, QUrl(picture))
                .value<QImage>()
                .deviceIndependentSize();
        };
        for (const char* picture : {"pictures/overlap.svg", "pictures/grid.svg"}) {
            const QSizeF usual = widthAt(1, picture), large = widthAt(1.5, picture);
            setAppearance({});
            QVERIFY2(std::abs(large.width() - 1.5 * usual.width()) <= 2, picture);
            QVERIFY2(std::abs(large.height() - 1.5 * usual.height()) <= 2, picture);
        }
    }

    void anOpenPageFollowsTheScale() {
        ManualWindow window;
        window.setAttribute(Qt::WA_DeleteOnClose, false);
        auto* page = window.findChild<ManualPage*>("manualPage");
        page->setSource(QUrl("compare.md"));
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        page->verticalScrollBar()->setValue(40);
        QCOMPARE(page->verticalScrollBar()->value(), 40);
        const auto heightOfPictures = [&] {
            double height = 0;
            for (QTextBlock block = page->document()->begin(); block.isValid(); block = block.next())
                for (auto at = block.begin(); !at.atEnd(); ++at)
                    if (at.fragment().charFormat().isImageFormat())
                        height += page->document()->documentLayout()->blockBoundingRect(block).height();
            return height;
        };
        const double usual = heightOfPictures();
        QVERIFY(usual > 200);
        setAppearance({ThemeId::Light, 1.5, false});
        QCoreApplication::processEvents();
        const double large = heightOfPictures();
        const int scrolled = page->verticalScrollBar()->value(), cutOff = page->horizontalScrollBar()->maximum();
        setAppearance({});
        QVERIFY2(large > 1.4 * usual, qPrintable(QString("%1 from %2").arg(large).arg(usual)));
        QVERIFY(page->toPlainText().contains("What the lists share")); // still the page that was open
        QVERIFY(scrolled > 0);
        QCOMPARE(cutOff, 0); // the window has grown too
        QCOMPARE(window.size(), QSize(720, 760));
    }

    void linksAreSeenAndCommandsStandApart() {
        ManualPage page;
        page.setSource(QUrl("qrc:/manual/read_a_head.md"), QTextDocument::MarkdownResource);
        int links = 0, commands = 0;
        for (QTextBlock block = page.document()->begin(); block.isValid(); block = block.next()) {
            commands +=
                block.text().startsWith("kvscope ") && block.blockFormat().background().style() == Qt::SolidPattern;
            for (auto at = block.begin(); !at.atEnd(); ++at)
                if (at.fragment().charFormat().isAnchor()) {
                    ++links;
                    QVERIFY2(at.fragment().charFormat().fontUnderline(), qPrintable(at.fragment().text()));
                }
        }
        QCOMPARE(links, 2);
        QCOMPARE(commands, 2);
    }

    void theHelpMenuOpensItBesideTheWindow() {
        OpenWindow open;
        QAction* manual = open.window.actions()->byName("manual");
        QVERIFY(manual);
        manual->trigger();
        manual->trigger(); // to the front, not a second one
        const auto windows = [&] { return open.window.findChildren<ManualWindow*>(); };
        QCOMPARE(windows().size(), 1);
        QTRY_COMPARE(QApplication::activeWindow(), windows()[0]); // qWaitForWindowActive is content with its parent
        auto* page = windows()[0]->findChild<ManualPage*>("manualPage");
        const QPoint link = placeOfLink(*page, "read_a_head.md");
        QVERIFY(!link.isNull());
        QTest::mouseClick(page->viewport(), Qt::LeftButton, {}, link);
        QVERIFY2(page->toPlainText().contains("Open the sample"), qPrintable(page->toPlainText().left(200)));
        QCOMPARE(page->horizontalScrollBar()->maximum(), 0);                              // nothing is cut off
        open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Dark; }, "Theme"); // while it is open
        QCOMPARE(windows().size(), 1);
        QCOMPARE(QApplication::activeWindow(), windows()[0]);
        QTest::keyClick(page, Qt::Key_Escape);
        QTRY_COMPARE(windows().size(), 0);
    }

    void aLinkInAHelpTextOpensItsParagraph() {
        OpenWindow open;
        QVERIFY(QDesktopServices::openUrl(QUrl("manual:disagreements.md#B7"))); // as explanations and help pages do
        const auto* manual = open.window.findChild<ManualWindow*>("manualWindow");
        QVERIFY(manual);
        const auto* page = manual->findChild<ManualPage*>("manualPage");
        QCOMPARE(page->cursorForPosition({4, 4}).block().text(), QString("B7"));
        open.bench.change([](Session& s) { s.panes = {{specOfVariant("streaming_llm", {}), {}, {}}}; }, "Policy");
        const auto* explanation = open.window.findChild<QLabel*>("explanation");
        QVERIFY(explanation && explanation->openExternalLinks());
        QVERIFY2(explanation->text().contains("manual:disagreements.md#L6"),
                 qPrintable(explanation->text().right(300)));
    }

    void goesForthAndBack() {
        ManualWindow window;
        window.setAttribute(Qt::WA_DeleteOnClose, false);
        auto* page = window.findChild<ManualPage*>("manualPage");
        page->setSource(QUrl("compare.md")); // as a click on a link does
        QVERIFY2(page->toPlainText().contains("What the lists share"), qPrintable(page->toPlainText().left(200)));
        page->backward();
        QVERIFY(page->toPlainText().contains("Capture your model"));
    }
};

KVSCOPE_WINDOW_TEST(ManualWindowTest)
#include "manual_window_test.moc"
