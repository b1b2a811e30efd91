// One notation for the ticks of a colour bar and the ends with their digits: hand values, every size and span, and the
// bars of the views as they are drawn.
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/bar_labels.h"
#include "views/common/colour_scale.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <QRegularExpression>
#include <QSet>

#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// "2 decimals", "2 decimals e−4" (one power) or "decades": what all labels of a bar must share. 0 and 1 fit any.
QString notationOf(std::string label) {
    for (const char* mark : {"≤", "≥", "−"})
        if (label.starts_with(mark)) label = label.substr(std::string(mark).size());
    const std::size_t power = label.find('e'), point = label.find('.');
    const std::string mantissa = label.substr(0, power);
    const auto decimals = point == std::string::npos ? 0 : mantissa.size() - point - 1;
    return QString("%1 decimals%2")
        .arg(decimals)
        .arg(power == std::string::npos ? "" : QString::fromStdString(" " + label.substr(power)));
}

/// The value as it is written: "≤−6.47e−4" is -6.47e-4.
double valueOf(const std::string& label) {
    return QString::fromStdString(label).remove(QRegularExpression("[≤≥,]")).replace("−", "-").toDouble();
}

/// Digits from the first that is not 0; those behind the point are written for a reason.
int significantDigits(const std::string& label) {
    const QString mantissa = QString::fromStdString(label).section('e', 0, 0).remove(QRegularExpression("[^0-9]"));
    return int(mantissa.size() - mantissa.indexOf(QRegularExpression("[1-9]")));
}

ColourColumnSpec columnOf(std::vector<double> values, bool isSigned = false, const char* range = "auto") {
    return ValueScale(std::move(values), isSigned, "error", "heads", "magma", ValueRange::parse(range)).column();
}

int lettersOf(const std::string& label) { return int(QString::fromStdString(label).size()); }

} // namespace

class BarLabelsTest : public ViewTest {
    Q_OBJECT

public:
    BarLabelsTest() : ViewTest(viewById("head_grid")) {}

private slots:
    void handValues() {
        const auto ends = [](const ColourColumnSpec& column) { return column.lowLabel + " " + column.highLabel; };
        QCOMPARE(ends(columnOf({6.47e-4, 0.954})), std::string("6.47e−4 0.954"));
        QCOMPARE(columnOf({6.47e-4, 0.954}).ticks.front().label, std::string("0.2"));
        QCOMPARE(ends(columnOf({2.1e-5, 6.47e-4})), std::string("2.10e−5 6.47e−4"));
        QCOMPARE(columnOf({2.1e-5, 6.47e-4}).ticks.front().label, std::string("1e−4"));
        QCOMPARE(ends(columnOf({12, 1024})), std::string("12 1,024"));
        QCOMPARE(ends(columnOf({12.5, 1024.25})), std::string("12.5 1,024"));
        QCOMPARE(ends(columnOf({0.25, 3})), std::string("0.250 3.00"));
        QCOMPARE(columnOf({0.25, 3}).ticks.front().label, std::string("0.5"));
        QCOMPARE(ends(columnOf({-0.5, 2}, true)), std::string("−2 2"));
        QCOMPARE(ends(columnOf({1e6, 3.5e6})), std::string("1.00e6 3.50e6"));
        QCOMPARE(ends(columnOf({0.999, 0.9994})),
                 std::string("0.9990 0.9994")); // three digits would not tell them apart
        // Nobody's choice is rounded away while there is room for it.
        QCOMPARE(ends(columnOf({0, 0.954}, false, "0.0005..0.5")), std::string("≤5.00e−4 ≥0.500"));
        QCOMPARE(ends(columnOf({0, 0.954}, false, "0.1234..0.5")), std::string("≤0.1234 ≥0.500"));
        QCOMPARE(decadeLabel(1e-3) + decadeLabel(1) + decadeLabel(3.124e-5) + decadeLabel(0.25),
                 std::string("1e−313.12e−52.5e−1"));
    }

    // The power of ten is that of the rounded value.
    void noMantissaIsTen() {
        QCOMPARE(decadeLabel(9.996e-5) + " " + decadeLabel(999999.7), std::string("1e−4 1e6"));
        QCOMPARE(columnOf({1.2e-5, 9.996e-5}).highLabel, std::string("1.00e−4"));
        QCOMPARE(columnOf({0.25, 999999.7}).highLabel, std::string("1.00e6"));
        QCOMPARE(columnOf({9.996e-4, 0.954}).lowLabel, std::string("0.00100"));
        for (double exponent = -10; exponent < 9; ++exponent)
            for (const double mantissa : {9.994, 9.996, 9.9996, 9.96, 9.6}) {
                const double value = mantissa * std::pow(10, exponent);
                for (const std::string& label : {decadeLabel(value), columnOf({value / 3, value}).highLabel,
                                                 columnOf({-value / 3, value}, true).lowLabel}) {
                    const bool isPower = label.find('e') != std::string::npos; // 9.996 itself is 10.0
                    const double written = std::abs(valueOf(label.substr(0, label.find('e'))));
                    QVERIFY2((!isPower || written < 10) && lettersOf(label) <= 8, label.c_str());
                    QVERIFY2(std::abs(std::abs(valueOf(label)) / value - 1) < 0.06, label.c_str());
                }
            }
    }

    void everyBarsTicksHaveOneNotationAndItsEndsThreeDigits() {
        for (double size = 1e-12; size < 1e9; size *= 2.7)
            for (const double share : {0.001, 0.03, 0.4, 0.9, 1.0})
                for (const bool isSigned : {false, true}) {
                    const ColourColumnSpec column = columnOf({size * (1 - share), size}, isSigned);
                    QSet<QString> notations;
                    for (const Tick& tick : column.ticks) {
                        const QString where = QString("%1 of %2, %3: %4")
                                                  .arg(share)
                                                  .arg(size)
                                                  .arg(isSigned)
                                                  .arg(QString::fromStdString(tick.label));
                        QVERIFY2(lettersOf(tick.label) <= 8, qPrintable(where));
                        if (tick.label != "0") notations << notationOf(tick.label);
                    }
                    QVERIFY2(notations.size() <= 1, qPrintable(QStringList(notations.values()).join(", ")));
                    QVERIFY2(share < 0.1 || column.lowLabel != column.highLabel, column.lowLabel.c_str());
                    for (const auto& [label, value] :
                         {std::pair(column.lowLabel, isSigned ? -size : size * (1 - share)),
                          std::pair(column.highLabel, size)}) {
                        const bool hasRoom = lettersOf(label) < 7 &&
                                             label.find("e−1") == std::string::npos; // else digits may have had to go
                        QVERIFY2(lettersOf(label) <= 8 && (value == 0 || !hasRoom || significantDigits(label) >= 3),
                                 label.c_str());
                        const bool allAlike = size * share < 1e-12; // such a bar is one long
                        QVERIFY2(allAlike ||
                                     std::abs(valueOf(label) - value) <= (hasRoom ? 0.0051 : 0.51) * std::abs(value),
                                 label.c_str());
                    }
                }
    }

    // As drawn: the numbers right of the bar, the ends in a darker colour than the ticks.
    void theViewsDrawThem() {
        struct Case {
            const View* view;
            std::vector<std::pair<std::string, std::string>> set;
        };
        for (const Case& one :
             {Case{&viewById("head_grid"), {}}, Case{&viewById("head_grid"), {{"quantity", "kept_tokens"}}},
              Case{&viewById("phase_map"), {{"x", "budget=0.1,0.2,0.4"}, {"y", "window=8,64"}}}}) {
            const ParameterValues options = optionsOf(*one.view, one.set);
            const Scene scene = one.view->buildScene(inputFor(*one.view, {"pyramidkv@0.25"}, options), options,
                                                     viewport(700, 420, m_text));
            QSet<QString> notations;
            int numbers = 0, ends = 0;
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item);
                    text && text->position.x > 700 - kLabelledColumnWidth && text->style.face == FontFace::Monospace) {
                    const bool isTick = text->colour == themeOf(ThemeId::Light).text2;
                    if (isTick && text->text != "0") notations << notationOf(text->text);
                    ends += isTick ? 0 : 1;
                    ++numbers;
                }
            QVERIFY(numbers >= 3);
            QCOMPARE(ends, 2);
            QVERIFY2(notations.size() == 1, qPrintable(QStringList(notations.values()).join(", ")));
        }
    }
};

KVSCOPE_OFFSCREEN_TEST(BarLabelsTest)
#include "bar_labels_test.moc"
