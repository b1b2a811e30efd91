// Recomputes what the design promises about colours: WCAG contrasts and that states and identities stay apart.
#include "core/base/error.h"
#include "views/scene/theme.h"

#include <QtTest>

#include <array>
#include <cmath>

using namespace kvscope;

namespace {

double linear(std::uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double luminance(Colour c) { return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b); }

/// WCAG 2 contrast ratio.
double contrast(Colour a, Colour b) {
    const double la = luminance(a), lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

std::array<double, 3> oklab(Colour c) {
    const double r = linear(c.r), g = linear(c.g), b = linear(c.b);
    const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

double distance(Colour a, Colour b) {
    const auto x = oklab(a), y = oklab(b);
    return 100 * std::sqrt((x[0] - y[0]) * (x[0] - y[0]) + (x[1] - y[1]) * (x[1] - y[1]) + (x[2] - y[2]) * (x[2] - y[2]));
}

} // namespace

class ThemeTest : public QObject {
    Q_OBJECT

private slots:
    void contrastsAreThoseOfTheDesign() {
        const Theme& light = themeOf(ThemeId::Light);
        const Theme& dark = themeOf(ThemeId::Dark);
        const auto near = [](double value, double quoted) { return std::fabs(value - quoted) < 0.06; };
        QVERIFY(near(contrast(light.text1, light.canvas), 17.8));
        QVERIFY(near(contrast(light.text2, light.canvas), 8.4));
        QVERIFY(near(contrast(light.text3, light.canvas), 5.4));
        QVERIFY(near(contrast(light.axis, light.canvas), 3.9));
        QVERIFY(near(contrast(light.kept, light.canvas), 5.2));
        QVERIFY(near(contrast(light.evicted, light.canvas), 3.9));
        QVERIFY(near(contrast(dark.text1, dark.canvas), 16.5) || near(contrast(dark.text1, dark.canvas), 16.4));
        QVERIFY(near(contrast(dark.kept, dark.canvas), 8.2));
        QVERIFY(near(contrast(dark.evicted, dark.canvas), 8.4));
    }

    void textIsReadableOnEveryGround() {
        for (const ThemeId id : {ThemeId::Light, ThemeId::Dark, ThemeId::Paper}) {
            const Theme& t = themeOf(id);
            for (const Colour ground : {t.canvas, t.panel, t.raised})
                for (const Colour text : {t.text1, t.text2, t.text3})
                    QVERIFY2(contrast(text, ground) >= 4.5, qPrintable(QString("theme %1: %2").arg(static_cast<int>(id)).arg(contrast(text, ground))));
            QVERIFY(contrast(t.warning, t.warningGround) >= 4.5);
            QVERIFY(contrast(t.error, t.errorGround) >= 4.5);
        }
    }

    void statesAndFamiliesStayApart() {
        for (const ThemeId id : {ThemeId::Light, ThemeId::Dark}) {
            const Theme& t = themeOf(id);
            const std::array states = {t.kept, t.evicted, t.protectedToken, t.query};
            for (std::size_t a = 0; a < states.size(); ++a)
                for (std::size_t b = a + 1; b < states.size(); ++b)
                    QVERIFY(distance(states[a], states[b]) >= 18);
            const std::array families = {"keydiff", "snapkv", "compactor", "balancekv", "subgen", "h2o"};
            for (std::size_t a = 0; a < families.size(); ++a) {
                QVERIFY(contrast(policyStyle(families[a], id).colour, t.canvas) >= 3.0);
                for (std::size_t b = a + 1; b < families.size(); ++b)
                    QVERIFY2(distance(policyStyle(families[a], id).colour, policyStyle(families[b], id).colour) >= 11.7,
                             qPrintable(QString("%1 %2").arg(families[a], families[b])));
            }
        }
    }

    void mapsEndWhereTheyShouldAndNamesAreChecked() {
        QCOMPARE(colourMap("viridis", 0), (Colour{0x44, 0x01, 0x54, 255}));
        QCOMPARE(colourMap("viridis", 1), (Colour{0xFD, 0xE7, 0x25, 255}));
        QCOMPARE(colourMap("viridis", 1, true), colourMap("viridis", 0));
        QCOMPARE(colourMap("greys", 1), (Colour{0, 0, 0, 255}));
        QCOMPARE(colourMap("magma", -3), colourMap("magma", 0));
        for (const char* map : {"viridis", "cividis", "magma"}) // sequential: lightness rises
            for (int i = 1; i < 256; ++i)
                QVERIFY(oklab(colourMap(map, i / 255.0))[0] > oklab(colourMap(map, (i - 1) / 255.0))[0] - 0.004);
        QVERIFY(colourMap("rdbu", 0).b > colourMap("rdbu", 0).r); // negative is blue
        QVERIFY(colourMap("rdbu", 1).r > colourMap("rdbu", 1).b);
        QVERIFY_EXCEPTION_THROWN(colourMap("rainbow", 0.5), Error);
        QVERIFY_EXCEPTION_THROWN(themeByName("solarised"), Error);
    }

    void blendingIsStraight() {
        QCOMPARE(blend({255, 0, 0, 128}, {0, 0, 0, 255}), (Colour{128, 0, 0, 255}));
        QCOMPARE(withAlpha({1, 2, 3, 200}, 0.5).a, std::uint8_t{100});
    }
};

QTEST_APPLESS_MAIN(ThemeTest)
#include "theme_test.moc"
