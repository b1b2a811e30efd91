// Exported files hold real text, the bundled fonts and the command that makes them again; a failed export leaves
// nothing.
#include "app/export/scene_export.h"
#include "app/text/qt_text_service.h"
#include "core/base/error.h"
#include "core/metrics/measure_values.h"
#include "tests/support/error_message.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "views/scene/axes.h"
#include "views/scene/theme.h"

#include <QProcess>
#include <QTemporaryDir>

using namespace kvscope;

namespace {

Scene sampleScene(std::size_t marks = 3) {
    Scene scene;
    scene.width = 300;
    scene.height = 120;
    scene.background = {255, 255, 255, 255};
    static const QtTextService text;
    SceneBuilder builder(scene, text);
    builder.text({10, 20}, "Retained mass 0.896", {FontFace::Interface, 12}, {0, 0, 0, 255});
    builder.text({10, 40}, "1,024 tokens", {FontFace::Monospace, 12, FontWeight::Bold}, {0, 0, 0, 255});
    builder.text({290, 110}, "PC 2", {FontFace::Interface, 11}, {0, 0, 0, 255}, HorizontalAlign::Left,
                 VerticalAlign::Baseline, -90);
    PointCloudItem cloud;
    auto points = std::make_shared<std::vector<Point>>();
    for (std::size_t i = 0; i < marks; ++i)
        points->push_back({20.0 + static_cast<double>(i % 250), 60.0 + static_cast<double>(i / 250 % 50)});
    cloud.points = points;
    cloud.fill = {0, 0x72, 0xB2, 255};
    builder.points(cloud);
    return scene;
}

QByteArray run(const QString& program, const QStringList& arguments) {
    QProcess process;
    process.start(program, arguments);
    process.waitForFinished();
    return process.readAllStandardOutput();
}

const std::string kCommand = "kvscope plot key_projection 'my capture.h5' --policy keydiff@0.1 --out keys.pdf";

} // namespace

class SceneExportTest : public QObject {
    Q_OBJECT
    QTemporaryDir m_folder;
    std::string file(const char* name) const { return m_folder.filePath(name).toStdString(); }

private slots:
    void pngKeepsScaleAndCommand() {
        exportScene(sampleScene(), file("a.png"), {.scale = 2, .command = kCommand});
        const QImage image(QString::fromStdString(file("a.png")));
        QCOMPARE(image.size(), QSize(600, 240));
        QCOMPARE(image.text("Comment").toStdString(), kCommand);
        QCOMPARE(QColor(image.pixel(2 * 20, 2 * 60)), QColor(0x00, 0x72, 0xB2));
    }

    // Plus and cross have no inside: their arms are drawn in the fill's colour where no stroke is given.
    void everyMarkerIsSeenInItsColour() {
        const Colour blue{0, 0x72, 0xB2, 255};
        for (const Marker marker : {Marker::Circle, Marker::Square, Marker::Diamond, Marker::TriangleUp,
                                    Marker::TriangleDown, Marker::Hexagon, Marker::Star, Marker::Plus, Marker::Cross}) {
            Scene scene = sampleScene(0);
            const QtTextService text;
            SceneBuilder builder(scene, text);
            PointCloudItem cloud;
            cloud.points = std::make_shared<std::vector<Point>>(std::vector<Point>{{100, 80}});
            cloud.marker = marker;
            cloud.radius = 6;
            cloud.fill = blue;
            builder.points(cloud);
            drawLegend(builder, {150, 80}, 100, {{"", marker, blue, {}, 6}}, themeOf(ThemeId::Light));
            exportScene(scene, file("marker.png"), {.scale = 4, .command = kCommand});
            const QImage image(QString::fromStdString(file("marker.png")));
            const auto painted = [&](int centre) {
                int count = 0;
                for (int x = 4 * (centre - 8); x < 4 * (centre + 8); ++x)
                    for (int y = 4 * 72; y < 4 * 88; ++y)
                        count += QColor(image.pixel(x, y)) == QColor(0x00, 0x72, 0xB2);
                return count;
            };
            QVERIFY2(
                painted(100) > 150 && painted(156) > 150,
                qPrintable(
                    QString("marker %1: %2, %3").arg(static_cast<int>(marker)).arg(painted(100)).arg(painted(156))));
            if (marker == Marker::Plus || marker == Marker::Cross) QVERIFY(painted(100) < 700); // lines, no disc
        }
    }

    void pdfHasFontsTextAndCommand() {
        if (QStandardPaths::findExecutable("pdftotext").isEmpty()) QFAIL("pdftotext is missing: install poppler-utils");
        exportScene(sampleScene(), file("a.pdf"), {.command = kCommand});
        const QString path = QString::fromStdString(file("a.pdf"));
        const QByteArray text = run("pdftotext", {path, "-"});
        QVERIFY2(text.contains("Retained mass 0.896") && text.contains("1,024 tokens"), text);
        const QByteArray fonts = run("pdffonts", {path});
        QVERIFY2(fonts.contains("Inter") && fonts.contains("Mono"), fonts);
        QVERIFY2(run("pdfinfo", {"-meta", path}).contains("keydiff@0.1"), run("pdfinfo", {"-meta", path}));
        QVERIFY(run("pdfinfo", {path}).contains("225 x 90 pts")); // 300 x 120 logical pixels at 96 dpi
    }

    // A contextual form of a glyph has no character of its own: copied and searched text would lose it.
    void textOfPdfKeepsItsSigns() {
        const std::string signs = "(PC 2) 3-4: 7 = 3 + 4 < 8 [0-5] {6} 2*3 A@0.1 K-V";
        Scene scene = sampleScene(0);
        const QtTextService text;
        SceneBuilder builder(scene, text);
        double y = 60;
        for (const FontWeight weight :
             {FontWeight::Regular, FontWeight::Medium, FontWeight::SemiBold, FontWeight::Bold})
            builder.text({10, y += 12}, signs, {FontFace::Interface, 8, weight}, {0, 0, 0, 255});
        exportScene(scene, file("signs.pdf"), {});
        const QByteArray copied = run("pdftotext", {"-layout", QString::fromStdString(file("signs.pdf")), "-"});
        QVERIFY2(copied.count(signs.c_str()) == 4, copied);
    }

    void svgHasTextFontsAndCommand() {
        exportScene(sampleScene(), file("a.svg"), {.command = kCommand});
        QFile svg(QString::fromStdString(file("a.svg")));
        QVERIFY(svg.open(QIODevice::ReadOnly));
        const QByteArray text = svg.readAll();
        QVERIFY(text.contains("<text") && text.contains("Retained mass 0.896"));
        QVERIFY(text.contains("font-family=\"Inter") && text.contains("font-family=\"Noto Sans Mono"));
        QVERIFY(text.contains("keydiff@0.1"));
    }

    void crowdedLayersBecomeOneImageByChoice() {
        exportScene(sampleScene(30'000), file("raster.pdf"), {});
        exportScene(sampleScene(30'000), file("vector.pdf"), {.rasteriseAbove = 0});
        QVERIFY(QFileInfo(QString::fromStdString(file("raster.pdf"))).size() * 3 <
                QFileInfo(QString::fromStdString(file("vector.pdf"))).size());
        QVERIFY(run("pdftotext", {QString::fromStdString(file("raster.pdf")), "-"}).contains("Retained mass"));
    }

    void footerPrintsTheCommand() {
        exportScene(sampleScene(), file("footer.pdf"), {.command = kCommand, .footer = true});
        QVERIFY(run("pdftotext", {QString::fromStdString(file("footer.pdf")), "-"})
                    .contains("kvscope plot key_projection"));
    }

    void failuresAreNamedAndLeaveNothing() {
        QVERIFY_THROWS_EXCEPTION(Error, exportScene(sampleScene(), file("a.gif"), {}));
        QVERIFY(errorText([&] {
                    exportScene(sampleScene(), file("missing/folder/a.png"), {});
                }).contains("missing/folder/a.png"));
        const QStringList before = QDir(m_folder.path()).entryList(QDir::Files);
        QVERIFY_THROWS_EXCEPTION(Error, exportScene(sampleScene(), "/proc/kvscope.svg", {}));
        QCOMPARE(QDir(m_folder.path()).entryList(QDir::Files), before);
    }

    void invisibleMarksAreGatheredWhenOneIsLookedFor() {
        Scene scene = sampleScene();
        int gathered = 0;
        const auto gather = [&] {
            ++gathered;
            GatheredMarks marks;
            marks.add({-40, -30}, 7);
            return marks;
        };
        scene.items.push_back(GatheredMarks::later(gather, "far", PickId::Kind::Token, Marker::Circle, 2));
        for (const char* name : {"far.svg", "far.png", "far.pdf"}) exportScene(scene, file(name), {});
        QCOMPARE(gathered, 0);
        const Scene copy = scene;
        QCOMPARE(pickAt(copy, {-40, -29}, 1), (PickId{PickId::Kind::Token, 7}));
        QCOMPARE(pickAt(scene, {-40, -31}, 1), (PickId{PickId::Kind::Token, 7}));
        QCOMPARE(gathered, 1);
    }

    // A PNG that cannot be painted is refused; the image inside a vector file takes the finest raster that can.
    void imagesTooLargeAreRefusedOrCoarser() {
        Scene large = sampleScene(30'000);
        large.width = 15'000;
        large.height = 9000;
        QVERIFY_THROWS_EXCEPTION(Error, exportScene(large, file("large.png"), {.scale = 2}));
        QVERIFY(!QFile::exists(QString::fromStdString(file("large.png"))));
        checkImageSize(large.width, large.height, 1.4);
        QVERIFY_THROWS_EXCEPTION(Error, checkImageSize(large.width, large.height, 1.5)); // 2^28 pixels
        QVERIFY_THROWS_EXCEPTION(Error, checkImageSize(20'000, 200, 1.7));               // 32767 a side
        exportScene(large, file("large.svg"), {});
        QFile svg(QString::fromStdString(file("large.svg")));
        QVERIFY(svg.open(QIODevice::ReadOnly));
        QVERIFY(svg.readAll().contains("<image"));
    }

    void textServiceMeasuresWhatItRasterises() {
        const QtTextService text;
        const TextStyle style{FontFace::Interface, 13};
        for (const char* word : {"attention", "Ωλ ≤ 0.5", "注意", "W"}) {
            const TextExtent extent = text.measure(word, style);
            const TextBitmap bitmap = text.rasterise(word, style, 2);
            QVERIFY(std::abs(bitmap.width / 2.0 - extent.width) < 5);
            QVERIFY(std::any_of(bitmap.coverage.begin(), bitmap.coverage.end(), [](auto c) { return c > 200; }));
        }
        // At fractional scales too: 13 at 1.5 is 19.5 pixels high, and words that stand side by side would run together
        // at 20.
        const std::string line = "certain man seeks his brethren, feeding their flocks in Dothan";
        for (const double scale : {1.0, 1.25, 1.5, 1.75, 2.0}) {
            const TextBitmap bitmap = text.rasterise(line, style, scale);
            const double drawn = bitmap.width / scale, measured = text.measure(line, style).width;
            QVERIFY2(std::abs(drawn - measured) < 5,
                     qPrintable(QString("%1 of %2 at %3").arg(drawn).arg(measured).arg(scale)));
            for (int y = 0; y < bitmap.height; ++y) // no letter is cut off at the end
                QCOMPARE(int(bitmap.coverage[static_cast<std::size_t>((y + 1) * bitmap.width - 1)]), 0);
        }
        QCOMPARE(text.measure("111", {FontFace::Monospace, 12}).width,
                 text.measure("888", {FontFace::Monospace, 12}).width);
        QVERIFY(text.measure("bold", {FontFace::Interface, 12, FontWeight::Bold}).width >
                text.measure("bold", {FontFace::Interface, 12}).width);
    }
};

KVSCOPE_OFFSCREEN_TEST(SceneExportTest)
#include "scene_export_test.moc"
