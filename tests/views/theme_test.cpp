// Recomputes what the design promises about colours: WCAG contrasts and that states and identities stay apart.
#include "core/base/error.h"
#include "core/policies/policy.h"
#include "tests/support/test_program.h"
#include "views/common/policy_style.h"
#include "views/scene/theme.h"

#include <QtTest>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

using namespace kvscope;

namespace {

double linear(std::uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double wcagLuminance(Colour c) { return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b); }

/// WCAG 2 contrast ratio.
double contrast(Colour a, Colour b) {
    const double la = wcagLuminance(a), lb = wcagLuminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

using Rgb = std::array<double, 3>; ///< linear light

Rgb linearLight(Colour c) { return {linear(c.r), linear(c.g), linear(c.b)}; }

enum class Vision { Normal, Deutan, Protan, Tritan };

/// What dichromats see: Machado, Oliveira and Fernandes (2009), severity 1, on linear light, cut to the gamut.
Rgb seen(const Rgb& c, Vision vision) {
    using Matrix = std::array<Rgb, 3>;
    static const std::map<Vision, Matrix> matrices = {
        {Vision::Deutan,
         {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
        {Vision::Protan,
         {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
        {Vision::Tritan,
         {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}}};
    if (vision == Vision::Normal) return c;
    Rgb out{};
    for (std::size_t i = 0; i < 3; ++i) {
        const Rgb& row = matrices.at(vision)[i];
        out[i] = std::clamp(row[0] * c[0] + row[1] * c[1] + row[2] * c[2], 0.0, 1.0);
    }
    return out;
}

Rgb oklab(Colour colour, Vision vision = Vision::Normal) {
    const auto [r, g, b] = seen(linearLight(colour), vision);
    const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

double distance(Colour a, Colour b, Vision vision) {
    const auto x = oklab(a, vision), y = oklab(b, vision);
    return 100 *
           std::sqrt((x[0] - y[0]) * (x[0] - y[0]) + (x[1] - y[1]) * (x[1] - y[1]) + (x[2] - y[2]) * (x[2] - y[2]));
}

double leastDistance(const std::vector<Colour>& colours, Vision vision) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t a = 0; a < colours.size(); ++a)
        for (std::size_t b = a + 1; b < colours.size(); ++b)
            least = std::min(least, distance(colours[a], colours[b], vision));
    return least;
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
        QVERIFY(near(contrast(light.text3, light.canvas), 5.7));
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
            for (const Colour ground : {t.canvas, t.panel, t.raised, t.sunken, t.hover})
                for (const Colour text : {t.text1, t.text2, t.text3})
                    QVERIFY2(contrast(text, ground) >= 4.5,
                             qPrintable(QString("theme %1: %2").arg(static_cast<int>(id)).arg(contrast(text, ground))));
            for (const Colour ground : {t.canvas, t.panel, t.raised, t.hover}) // outlines of fields, tracks of sliders
                QVERIFY(contrast(t.control, ground) >= 3);
            QVERIFY(contrast(t.axis, t.canvas) >= 3);
            QVERIFY(contrast(t.warning, t.warningGround) >= 4.5);
            QVERIFY(contrast(t.error, t.errorGround) >= 4.5);
        }
    }

    // The smallest distances that the design quotes, for each kind of vision.
    void statesStayApartForEveryVision_data() {
        QTest::addColumn<int>("vision");
        QTest::addColumn<double>("light");
        QTest::addColumn<double>("dark");
        QTest::newRow("normal") << int(Vision::Normal) << 18.5 << 20.9;
        QTest::newRow("deutan") << int(Vision::Deutan) << 13.1 << 15.5;
        QTest::newRow("protan") << int(Vision::Protan) << 9.2 << 20.3;
        QTest::newRow("tritan") << int(Vision::Tritan) << 13.9 << 15.4;
    }

    void statesStayApartForEveryVision() {
        QFETCH(int, vision);
        QFETCH(double, light);
        QFETCH(double, dark);
        for (const auto& [id, least] : {std::pair{ThemeId::Light, light}, {ThemeId::Dark, dark}}) {
            const Theme& t = themeOf(id);
            const double found = leastDistance({t.kept, t.evicted, t.protectedToken, t.query}, Vision(vision));
            QVERIFY2(std::fabs(found - least) < 0.06, qPrintable(QString::number(found)));
        }
    }

    void familiesStayApartForEveryVision() {
        for (const auto& [id, least] : {std::pair{ThemeId::Light, 11.75}, {ThemeId::Dark, 12.25}}) {
            std::vector<Colour> families;
            for (const char* policy : {"keydiff", "snapkv", "compactor", "balancekv", "subgen", "h2o"})
                families.push_back(policyStyle(policy, id).colour);
            for (const Colour colour : families) QVERIFY(contrast(colour, themeOf(id).canvas) >= 3.0);
            for (const Vision vision : {Vision::Normal, Vision::Deutan, Vision::Protan, Vision::Tritan}) {
                const double found = leastDistance(families, vision);
                QVERIFY2(found >= least,
                         qPrintable(QString("theme %1 vision %2: %3").arg(int(id)).arg(int(vision)).arg(found)));
            }
        }
    }

    // Overlaps, rails and strips tell policies apart by colour alone, so relatives differ too.
    void everyPolicyHasAColourOfItsOwn() {
        for (const auto& [id, least] : {std::pair{ThemeId::Light, 6.5}, {ThemeId::Dark, 7.4}, {ThemeId::Paper, 6.5}}) {
            std::vector<Colour> colours;
            const auto add = [&](const PolicyStyle& style) {
                if (std::find(colours.begin(), colours.end(), style.colour) == colours.end()) // a spare one may repeat
                    colours.push_back(style.colour);
            };
            for (const Policy* policy : allPolicies()) {
                const PolicyStyle style = policyStyle(policy->card().id, id);
                QVERIFY2(style.colour != policyStyle("somebody's list", id).colour, policy->card().id.c_str());
                QVERIFY2(contrast(style.colour, themeOf(id).canvas) >= 3.0, policy->card().id.c_str());
                if (style.colour != themeOf(id).ink) // as thick as no other line
                    add(style);
            }
            for (std::size_t i = 0; i < kSpareColours; ++i) {
                add(spareStyle(i, id));
                QVERIFY(contrast(spareStyle(i, id).colour, themeOf(id).canvas) >= 3.0);
            }
            QVERIFY(colours.size() >= 16 + kSpareColours);
            for (const Vision vision : {Vision::Normal, Vision::Deutan, Vision::Protan, Vision::Tritan}) {
                const double found = leastDistance(colours, vision);
                QVERIFY2(found >= least,
                         qPrintable(QString("theme %1 vision %2: %3").arg(int(id)).arg(int(vision)).arg(found)));
            }
        }
    }

    // A reader who changes the theme, or prints, finds the policies again: their hues stay, greys excepted.
    void aPolicyHasOneHueInBothThemes() {
        const double degrees = 180 / std::acos(-1.0);
        int compared = 0;
        for (const Policy* policy : allPolicies()) {
            const Rgb light = oklab(policyStyle(policy->card().id, ThemeId::Light).colour),
                      dark = oklab(policyStyle(policy->card().id, ThemeId::Dark).colour);
            if (std::hypot(light[1], light[2]) < 0.055 || std::hypot(dark[1], dark[2]) < 0.055) continue;
            const double turn = degrees * (std::atan2(light[2], light[1]) - std::atan2(dark[2], dark[1]));
            QVERIFY2(std::fabs(std::remainder(turn, 360)) <= 40, policy->card().id.c_str());
            ++compared;
        }
        QVERIFY2(compared >= 12, qPrintable(QString::number(compared))); // the others are nearly grey
    }

    // However many there are, with or without a chosen style.
    void noTwoPoliciesLookAlike() {
        std::set<QString> looks;
        std::size_t count = 0;
        const auto look = [&](const PolicyStyle& style) {
            QString text = QString("%1 %2 %3 %4").arg(style.colour.r).arg(style.colour.g).arg(style.colour.b);
            text = text.arg(static_cast<int>(style.marker));
            for (const double length : style.dash) text += QString(" %1").arg(length);
            looks.insert(text);
            ++count;
        };
        for (const Policy* policy : allPolicies()) look(policyStyle(policy->card().id, ThemeId::Light));
        QCOMPARE(looks.size(), count);
        looks.clear();
        count = 0;
        for (std::size_t i = 0; i < 24; ++i) look(spareStyle(i, ThemeId::Dark));
        QCOMPARE(looks.size(), count);
    }

    void categoriesStayApartForEveryVision() {
        for (const auto& [id, least, six] :
             {std::tuple{ThemeId::Light, 8.8, 10.0}, {ThemeId::Dark, 9.7, 12.5}, {ThemeId::Paper, 8.8, 10.0}}) {
            std::vector<Colour> colours;
            for (std::size_t i = 0; i < kCategoryColours; ++i) {
                colours.push_back(categoryColour(i, id));
                QVERIFY(contrast(colours.back(), themeOf(id).canvas) >= 3.0);
            }
            QCOMPARE(categoryColour(kCategoryColours + 3, id), colours[3]);
            for (const Vision vision : {Vision::Normal, Vision::Deutan, Vision::Protan, Vision::Tritan}) {
                QVERIFY2(leastDistance(colours, vision) >= least, qPrintable(QString("theme %1 vision %2: %3")
                                                                                 .arg(int(id))
                                                                                 .arg(int(vision))
                                                                                 .arg(leastDistance(colours, vision))));
                QVERIFY(leastDistance({colours.begin(), colours.begin() + 6}, vision) >=
                        six); // few groups: farther apart
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
        QVERIFY_THROWS_EXCEPTION(Error, colourMap("rainbow", 0.5));
        QVERIFY_THROWS_EXCEPTION(Error, themeByName("solarised"));
    }

    void blendingIsStraight() {
        QCOMPARE(blend({255, 0, 0, 128}, {0, 0, 0, 255}), (Colour{128, 0, 0, 255}));
        QCOMPARE(withAlpha({1, 2, 3, 200}, 0.5).a, std::uint8_t{100});
    }
};

KVSCOPE_TEST(ThemeTest)
#include "theme_test.moc"
