// Figures and pages as their readers see them: in a browser and in librsvg, on a machine that has none of the program's
// fonts. What is missing there would be set in DejaVu Sans, the only font that these programs are given.
#include "app/export/painter_scene.h"
#include "app/export/scene_export.h"
#include "app/report/headless.h"
#include "app/report/report.h"
#include "app/study/session_file.h"
#include "app/text/qt_text_service.h"
#include "core/capture/open_capture.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"
#include "views/scene/scene_builder.h"

#include <QFontDatabase>
#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QXmlStreamReader>

using namespace kvscope;

namespace {

/// Darkness 0..255 of a pixel against white, averaged with its neighbours: smoothing differs between programs.
double inkAt(const QImage& image, int x, int y) {
    double sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            sum += image.valid(x + dx, y + dy) ? 255 - qGray(image.pixel(x + dx, y + dy)) : 0;
    return sum / 9;
}

QRect boxOf(const TextItem& item) {
    const QTransform place = QTransform::fromTranslate(item.position.x, item.position.y).rotate(item.angleDegrees);
    return place.mapRect(outlinesOf(item).boundingRect()).toAlignedRect().adjusted(-3, -3, 3, 3);
}

/// The ink that lies elsewhere, as a share of the ink there is, in the box of a text.
double differenceIn(const QRect& box, const QImage& expected, const QImage& seen) {
    double differs = 0, ink = 1;
    for (int y = box.top(); y <= box.bottom(); ++y)
        for (int x = box.left(); x <= box.right(); ++x) {
            differs += std::abs(inkAt(expected, x, y) - inkAt(seen, x, y));
            ink += inkAt(expected, x, y);
        }
    return differs / ink;
}

/// Texts that look otherwise than in the program's own picture.
QStringList misdrawnTexts(const Scene& scene, const QImage& seen) {
    constexpr double kSmoothing = 0.4; // another font has 0.6 and more
    const QImage expected = renderScene(scene, 1);
    if (seen.size() != expected.size()) return {QString("%1 x %2 pixels").arg(seen.width()).arg(seen.height())};
    QStringList wrong;
    for (const Drawable& drawable : scene.items)
        if (const auto* text = std::get_if<TextItem>(&drawable); text && !text->text.empty())
            if (const double share = differenceIn(boxOf(*text), expected, seen); share > kSmoothing)
                wrong << QString("\"%1\" %2").arg(text->text.c_str()).arg(share);
    return wrong;
}

/// First and last column with ink in a band of rows.
std::pair<int, int> inkColumns(const QImage& image, int top, int bottom) {
    int first = image.width(), last = -1;
    for (int x = 0; x < image.width(); ++x)
        for (int y = top; y < bottom; ++y)
            if (qGray(image.pixel(x, y)) < 128) {
                first = std::min(first, x);
                last = std::max(last, x);
            }
    return {first, last};
}

} // namespace

class FigureRenderingTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    QtTextService m_text;
    const std::shared_ptr<const CaptureReader> m_capture =
        openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
    const LayerRunner m_runner = kvscope::testing::cpuRunner(2);

    QString at(const QString& name) const { return m_folder.filePath(name); }

    bool run(const QString& program, const QStringList& words) {
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("FONTCONFIG_FILE", at("fonts.conf"));
        environment.insert("HOME", m_folder.path());
        process.setProcessEnvironment(environment);
        process.start(program, words);
        return process.waitForFinished(120'000) && process.exitCode() == 0;
    }

    static QString browser() {
        const QString shell = QStandardPaths::findExecutable("chromium-headless-shell");
        return shell.isEmpty() ? QStandardPaths::findExecutable("chromium") : shell;
    }

    QImage inBrowser(const QString& file, QSize size, const QStringList& words = {}) {
        QFile::remove(at("seen.png"));
        const bool done =
            run(browser(), QStringList{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                                       "--force-device-scale-factor=1", "--screenshot=" + at("seen.png"),
                                       QString("--window-size=%1,%2").arg(size.width()).arg(size.height())} +
                               words + QStringList{"file://" + file});
        return done ? QImage(at("seen.png")).copy({QPoint(), size}) : QImage();
    }

    QImage inLibrsvg(const QString& file) {
        return run("rsvg-convert", {file, "-o", at("seen.png")}) ? QImage(at("seen.png")) : QImage();
    }

    /// The figure of a view, zoomed in where it can be: marks beyond the range must be cut.
    Scene figure(const std::string& view) {
        Session session = firstSession(*m_capture);
        session.look.ranges["key_projection"] = {-4, 4, -4, 4};
        FigureRequest request;
        request.viewId = view;
        request.height = 420;
        return drawFigure(session, request, figureInput(session, m_capture, request, m_runner, {}), m_text).scene;
    }

    void write(const QString& name, const QByteArray& content) {
        QFile file(at(name));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(content) == content.size());
    }

private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid() && QDir(m_folder.path()).mkdir("fonts"));
        write("fonts/DejaVuSans.ttf", contentOf(fontOfSigns()));
        write("fonts.conf", "<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM \"fonts.dtd\"><fontconfig><dir>" +
                                at("fonts").toUtf8() + "</dir><cachedir>" + at("cache").toUtf8() +
                                "</cachedir></fontconfig>");
    }

    void figuresLookTheSame_data() {
        QTest::addColumn<QString>("view");
        for (const char* view : {"curves", "key_projection", "token_strip", "token_profile"})
            QTest::newRow(view) << view;
    }

    void figuresLookTheSame() {
        QFETCH(QString, view);
        const Scene scene = figure(view.toStdString());
        const QSize size(static_cast<int>(scene.width), static_cast<int>(scene.height));
        exportScene(scene, at("figure.svg").toStdString(), {});
        exportScene(scene, at("shapes.svg").toStdString(), {.outlines = true});
        if (QStandardPaths::findExecutable("rsvg-convert").isEmpty())
            qWarning("rsvg-convert is not installed (package librsvg2-bin): not looked at");
        else {
            const QStringList wrong = misdrawnTexts(scene, inLibrsvg(at("shapes.svg")));
            QVERIFY2(wrong.isEmpty(), qPrintable("librsvg: " + wrong.join(", ")));
        }
        if (browser().isEmpty()) QSKIP("No browser is installed: apt-get install chromium-headless-shell");
        const QImage seen = inBrowser(at("figure.svg"), size);
        const QStringList wrong = misdrawnTexts(scene, seen);
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join(", ")));
        const double all = differenceIn({QPoint(), size}, renderScene(scene, 1), seen); // marks and clips too
        QVERIFY2(all < 0.15, qPrintable(QString::number(all)));
    }

    // Labels stay where they belong even in a program that ignores the fonts in the file.
    void labelsKeepTheirPlaceInAnyFont() {
        if (QStandardPaths::findExecutable("rsvg-convert").isEmpty())
            QSKIP("rsvg-convert is not installed: apt-get install librsvg2-bin");
        Scene scene;
        scene.width = 400, scene.height = 90;
        scene.background = {255, 255, 255, 255};
        SceneBuilder builder(scene, m_text);
        const char* words = "Relative output error of SnapKV";
        builder.text({200, 20}, words, {FontFace::Interface, 12}, {0, 0, 0, 255}, HorizontalAlign::Centre);
        builder.text({390, 50}, words, {FontFace::Interface, 12}, {0, 0, 0, 255}, HorizontalAlign::Right);
        builder.text({10, 80}, words, {FontFace::Monospace, 12}, {0, 0, 0, 255});
        exportScene(scene, at("labels.svg").toStdString(), {});
        const QImage seen = inLibrsvg(at("labels.svg"));
        QCOMPARE(seen.size(), QSize(400, 90));
        const auto [left, right] = inkColumns(seen, 5, 26);
        QVERIFY2(std::abs(left + right - 400) <= 4, qPrintable(QString("%1 %2").arg(left).arg(right)));
        QVERIFY2(std::abs(inkColumns(seen, 35, 56).second - 389) <= 2, "right");
        QVERIFY2(std::abs(inkColumns(seen, 65, 86).first - 11) <= 2, "left");
    }

    void charactersThatXmlForbidsAreLeftOut() {
        Scene scene;
        scene.width = 200, scene.height = 40;
        SceneBuilder builder(scene, m_text);
        builder.text({10, 20},
                     "a\xEF\xBF\xBE"
                     "b\xEF\xBF\xBF"
                     "c\x01"
                     "d\xEF\xBF\xBD"
                     "e",
                     {}, {0, 0, 0, 255});
        const std::string words = "x\xEF\xBF\xBE"
                                  "y";
        exportScene(scene, at("forbidden.svg").toStdString(), {.command = words, .title = words});
        QFile file(at("forbidden.svg"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray svg = file.readAll();
        QXmlStreamReader reader(svg);
        while (!reader.atEnd()) reader.readNext();
        QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
        QVERIFY(!svg.contains("\xEF\xBF\xBE") && !svg.contains("\xEF\xBF\xBF") && !svg.contains('\x01'));
        QVERIFY(svg.contains("<desc>xy</desc>"));
    }

    void charactersOfNoBundledFontAreShapes() {
        Scene scene;
        scene.width = 200, scene.height = 40;
        SceneBuilder builder(scene, m_text);
        builder.text({10, 20}, "score −cos(μ, k) ≤ ⌈x⌉", {FontFace::Monospace, 12}, {0, 0, 0, 255});
        builder.text({10, 35}, "漢字", {FontFace::Interface, 12}, {0, 0, 0, 255});
        exportScene(scene, at("signs.svg").toStdString(), {});
        QFile file(at("signs.svg"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray svg = file.readAll();
        QCOMPARE(svg.count("<text"), 1);
        QVERIFY(svg.contains("@font-face{font-family:Noto Sans Mono;"));
        QVERIFY(svg.size() < 60'000);
        if (QFontDatabase::families(QFontDatabase::SimplifiedChinese).isEmpty())
            QSKIP("No font with Chinese characters is installed (package fonts-noto-cjk)");
        QVERIFY(svg.contains("aria-label=\"漢字\""));
    }

    void theReportLooksTheSameAndFollowsTheReadersTheme() {
        if (browser().isEmpty()) QSKIP("No browser is installed: apt-get install chromium-headless-shell");
        const Session session = firstSession(*m_capture);
        const std::string page = reportPage(session, m_capture, m_runner, {{"curves"}, {}}, {});
        write("page.html", QByteArray::fromStdString(page));
        const auto ground = [&](const QStringList& words) {
            return QColor(inBrowser(at("page.html"), {1280, 400}, words).pixel(2, 2));
        };
        QCOMPARE(ground({"--blink-settings=preferredColorScheme=1"}), QColor(0xE9, 0xEB, 0xEE));
        QCOMPARE(ground({"--blink-settings=preferredColorScheme=0"}), QColor(0x09, 0x0B, 0x0E));

        // Its figure with the page's fonts, alone.
        const QString text = QString::fromStdString(page);
        const auto dots = QRegularExpression::DotMatchesEverythingOption;
        const QString fonts = QRegularExpression("(@font-face.*?):root", dots).match(text).captured(1),
                      svg =
                          QRegularExpression("<div class=\"light\">\\s*(<svg.*?</svg>)", dots).match(text).captured(1);
        QVERIFY(!fonts.isEmpty() && !svg.isEmpty() && !svg.contains("@font-face"));
        write("alone.html", ("<!DOCTYPE html><meta charset=utf-8><style>" + fonts +
                             "body{margin:0}svg{display:block}</style><body>" + svg)
                                .toUtf8());
        FigureRequest request;
        request.viewId = "curves";
        request.height = 520;
        request.scale = 2;
        const Scene scene =
            drawFigure(session, request, figureInput(session, m_capture, request, m_runner, {}), m_text).scene;
        const QStringList wrong = misdrawnTexts(scene, inBrowser(at("alone.html"), {900, 520}));
        QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join(", ")));
    }
};

KVSCOPE_OFFSCREEN_TEST(FigureRenderingTest)
#include "figure_rendering_test.moc"
