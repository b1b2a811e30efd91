// One notation for all numbers of a colour bar: hand values, every size and span, and the bars of the views as they are drawn.
#include "tests/support/offscreen_main.h"
#include "tests/support/scene_checks.h"
#include "tests/views/view_test.h"
#include "views/bar_labels.h"
#include "views/colour_scale.h"
#include "views/head_grid/head_grid_view.h"
#include "views/phase_map/phase_map_view.h"
#include "views/scene/axes.h"

#include <QSet>

#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

/// "2 decimals", "2 decimals e−4" (one power) or "decades": what all labels of a bar must share. 0 and 1 fit any.
QString notationOf(std::string label) {
    for (const char* mark : {"≤", "≥", "−"})
        if (label.starts_with(mark))
            label = label.substr(std::string(mark).size());
    const std::size_t power = label.find('e'), point = label.find('.');
    const std::string mantissa = label.substr(0, power);
    const auto decimals = point == std::string::npos ? 0 : mantissa.size() - point - 1;
    return QString("%1 decimals%2").arg(decimals).arg(power == std::string::npos ? "" : QString::fromStdString(" " + label.substr(power)));
}

std::vector<std::string> labelsOf(const ColourColumnSpec& column) {
    std::vector<std::string> labels = {column.lowLabel, column.highLabel};
    for (const Tick& tick : column.ticks)
        labels.push_back(tick.label);
    return labels;
}

ColourColumnSpec columnOf(std::vector<double> values, bool isSigned = false, const char* range = "auto") {
    return ValueScale(std::move(values), isSigned, "error", "heads", "magma", ValueRange::parse(range)).column();
}

int lettersOf(const std::string& label) {
    return int(QString::fromStdString(label).size());
}

} // namespace

class BarLabelsTest : public ViewTest {
    Q_OBJECT

public:
    BarLabelsTest() : ViewTest(headGridView()) {}

private slots:
    void handValues() {
        const auto ends = [](const ColourColumnSpec& column) { return column.lowLabel + " " + column.highLabel; };
        QCOMPARE(ends(columnOf({6.47e-4, 0.954})), std::string("0.001 0.954"));
        QCOMPARE(columnOf({6.47e-4, 0.954}).ticks.front().label, std::string("0.200"));
        QCOMPARE(ends(columnOf({2.1e-5, 6.47e-4})), std::string("0.21e−4 6.47e−4"));
        QCOMPARE(ends(columnOf({12, 1024})), std::string("12 1,024"));
        QCOMPARE(ends(columnOf({12.5, 1024.25})), std::string("13 1,024"));
        QCOMPARE(ends(columnOf({0.25, 3})), std::string("0.250 3.000"));
        QCOMPARE(ends(columnOf({-0.5, 2}, true)), std::string("−2 2"));
        QCOMPARE(ends(columnOf({1e6, 3.5e6})), std::string("1.00e6 3.50e6"));
        // Nobody's choice is rounded away while there is room for it.
        QCOMPARE(ends(columnOf({0, 0.954}, false, "0.0005..0.5")), std::string("≤0.0005 ≥0.5000"));
        QCOMPARE(decadeLabel(1e-3) + decadeLabel(1) + decadeLabel(3.124e-5) + decadeLabel(0.25), std::string("1e−313.12e−52.5e−1"));
    }

    void everyBarHasOneNotationAndRoomForIt() {
        for (double size = 1e-12; size < 1e9; size *= 2.7)
            for (const double share : {0.001, 0.03, 0.4, 0.9, 1.0})
                for (const bool isSigned : {false, true}) {
                    const ColourColumnSpec column = columnOf({size * (1 - share), size}, isSigned);
                    QSet<QString> notations;
                    for (const std::string& label : labelsOf(column)) {
                        const QString where = QString("%1 of %2, %3: %4").arg(share).arg(size).arg(isSigned).arg(QString::fromStdString(label));
                        QVERIFY2(lettersOf(label) <= 8, qPrintable(where));
                        if (label != "0")
                            notations << notationOf(label);
                    }
                    QVERIFY2(notations.size() == 1, qPrintable(QStringList(notations.values()).join(", ")));
                    QVERIFY2(share < 0.1 || column.lowLabel != column.highLabel, column.lowLabel.c_str());
                }
    }

    // As drawn: the numbers right of the bar.
    void theViewsDrawThem() {
        struct Case {
            const View* view;
            std::vector<std::pair<std::string, std::string>> set;
        };
        for (const Case& one : {Case{&headGridView(), {}}, Case{&headGridView(), {{"quantity", "kept_tokens"}}},
                                Case{&phaseMapView(), {{"x", "budget=0.1,0.2,0.4"}, {"y", "window=8,64"}}}}) {
            const ParameterValues options = optionsOf(*one.view, one.set);
            const Scene scene = one.view->buildScene(inputFor(*one.view, {"snapkv@0.25"}, options), options, viewport(700, 420, m_text));
            QSet<QString> notations;
            int numbers = 0;
            for (const Drawable& item : scene.items)
                if (const auto* text = std::get_if<TextItem>(&item); text && text->position.x > 700 - kLabelledColumnWidth && text->style.face == FontFace::Monospace) {
                    notations << notationOf(text->text);
                    ++numbers;
                }
            QVERIFY(numbers >= 3);
            QVERIFY2(notations.size() == 1, qPrintable(QStringList(notations.values()).join(", ")));
        }
    }
};

KVSCOPE_OFFSCREEN_TEST_MAIN(BarLabelsTest)
#include "bar_labels_test.moc"
