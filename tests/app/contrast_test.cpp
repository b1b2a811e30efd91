// Contrasts as people see them (WCAG 2, AA): texts 4.5 : 1, outlines of controls 3 : 1, in both themes, from the style
// sheet, from widgets and from the pictures of every view. Labels of 10 pixels have 7 : 1, since thin strokes of that
// size lose a third of their contrast to smoothing.
#include <QtTest>

#include "app/report/headless.h"
#include "app/study/session_file.h"
#include "app/text/qt_text_service.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/value_slider.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "core/engine/score_arithmetic.h"
#include "tests/support/cpu_runner.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"
#include "views/scene/theme.h"
#include "views/view.h"

#include <QLineEdit>

using namespace kvscope;

namespace {

double contrast(Colour a, Colour b) {
    const double la = luminance(a), lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

Colour colourOf(const QColor& c) {
    return {static_cast<std::uint8_t>(c.red()), static_cast<std::uint8_t>(c.green()),
            static_cast<std::uint8_t>(c.blue()), static_cast<std::uint8_t>(c.alpha())};
}

/// What stands in a rule of the style sheet: the colours of its properties.
struct Rule {
    QString selector;
    std::map<QString, Colour> colours;
};

std::vector<Rule> rulesOf(const QString& sheet) {
    static const QRegularExpression rule("([^{}]+)\\{([^}]*)\\}"),
        property("(?<![-a-z])(background|color|border|border-color)\\s*:[^;#]*(#[0-9a-f]{6})");
    std::vector<Rule> rules;
    for (auto found = rule.globalMatch(sheet); found.hasNext();) {
        const auto match = found.next();
        Rule one{match.captured(1).simplified(), {}};
        for (auto colours = property.globalMatch(match.captured(2)); colours.hasNext();) {
            const auto colour = colours.next();
            one.colours[colour.captured(1)] = colourOf(QColor(colour.captured(2)));
        }
        rules.push_back(one);
    }
    return rules;
}

/// Texts of a scene that lie on its background, not on a filled shape or an image.
QStringList faintTexts(const Scene& scene) {
    QStringList faint;
    std::vector<Box> filled;
    for (const Drawable& item : scene.items) {
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->fill.a != 0) filled.push_back(box->box);
        if (const auto* image = std::get_if<ImageItem>(&item)) filled.push_back(image->box);
        const auto* text = std::get_if<TextItem>(&item);
        if (!text || std::ranges::any_of(filled, [&](const Box& b) { return b.grown(8).contains(text->position); }))
            continue;
        const double ratio = contrast(blend(text->colour, scene.background), scene.background);
        const bool isPlain = text->colour.r - text->colour.b < 40 && text->colour.b - text->colour.r < 40;
        if (ratio < (isPlain && text->style.size <= 10 ? 7 : isPlain ? 4.5 : 3))
            faint << QString("\"%1\" of %2 px has %3").arg(text->text.c_str()).arg(text->style.size).arg(ratio);
    }
    return faint;
}

} // namespace

class ContrastTest : public QObject {
    Q_OBJECT

private slots:
    void rulesOfTheStyleSheet_data() {
        QTest::addColumn<bool>("dark");
        QTest::newRow("light") << false;
        QTest::newRow("dark") << true;
    }

    void rulesOfTheStyleSheet() {
        QFETCH(bool, dark);
        const Theme& theme = themeOf(dark ? ThemeId::Dark : ThemeId::Light);
        const auto rules = rulesOf(styleSheetOf(theme, 1));
        QVERIFY(rules.size() > 60);
        int controls = 0;
        for (const Rule& rule : rules) {
            if (rule.selector.contains(":disabled")) continue;
            const auto has = [&](const char* name) { return rule.colours.contains(name); };
            const auto say = [&](double ratio) { return qPrintable(QString("%1: %2").arg(rule.selector).arg(ratio)); };
            if (has("color")) {
                const Colour text = rule.colours.at("color");
                const double ratio = has("background")
                                         ? contrast(text, rule.colours.at("background"))
                                         : std::min(contrast(text, theme.panel), contrast(text, theme.canvas));
                const bool isInverse = text == theme.paper && !has("background");
                QVERIFY2(ratio >= 4.5 || isInverse, say(ratio));
            }
            static const QRegularExpression control(
                "^(QPushButton|QLineEdit, QAbstractSpinBox, QPlainTextEdit|QComboBox|QRadioButton::indicator|"
                "QCheckBox::indicator)$");
            if (!control.match(rule.selector).hasMatch()) continue;
            ++controls;
            QVERIFY(has("border") && has("background"));
            for (const Colour ground : {rule.colours.at("background"), theme.panel})
                QVERIFY2(contrast(rule.colours.at("border"), ground) >= 3,
                         say(contrast(rule.colours.at("border"), ground)));
        }
        QCOMPARE(controls, 5);
    }

    void placeholdersAndTracks_data() { rulesOfTheStyleSheet_data(); }

    void placeholdersAndTracks() {
        QFETCH(bool, dark);
        Appearance look = appearance();
        look.theme = dark ? ThemeId::Dark : ThemeId::Light;
        setAppearance(look);
        QLineEdit field;
        field.ensurePolished();
        const QColor hint = field.palette().color(QPalette::PlaceholderText);
        const double ratio = contrast(blend(colourOf(hint), chrome().canvas), chrome().canvas);
        QVERIFY2(ratio >= 4.5, qPrintable(hint.name(QColor::HexArgb) + QString(": %1").arg(ratio)));

        ValueSlider slider;
        slider.resize(200, 24);
        slider.showValue(0);
        QImage image(slider.size(), QImage::Format_ARGB32_Premultiplied);
        image.fill(qColor(chrome().panel));
        slider.render(&image, {}, {}, QWidget::DrawChildren);
        const double track = contrast(colourOf(image.pixelColor(150, 12)), chrome().panel);
        QVERIFY2(track >= 3, qPrintable(QString::number(track)));
    }

    void textsOfEveryView_data() { rulesOfTheStyleSheet_data(); }

    void textsOfEveryView() {
        QFETCH(bool, dark);
        const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
        const LayerRunner runner = kvscope::testing::cpuRunner(2);
        Session session = firstSession(*capture);
        session.panes.push_back({PolicySpec::parse("balancekv_stream"), {}, {}});
        const QtTextService text;
        ViewInput input = headlessInput(session, capture, {}, runner, {});
        QStringList faint;
        int drawn = 0;
        for (const View* view : allViews()) {
            FigureRequest figure;
            figure.viewId = view->card().id;
            figure.theme = dark ? "dark" : "light";
            try {
                input.data = headlessData(session, figure, input, runner, {});
                for (const QString& one : faintTexts(drawFigure(session, figure, input, text).scene))
                    faint << QString::fromStdString(view->card().id) + ": " + one;
                ++drawn;
            } catch (const Error&) { // a view without something to show here
            }
        }
        QVERIFY2(drawn >= 15, qPrintable(QString::number(drawn)));
        faint.removeDuplicates();
        QVERIFY2(faint.isEmpty(), qPrintable(faint.join('\n')));
    }
};

KVSCOPE_OFFSCREEN_WIDGETS_TEST(ContrastTest)
#include "contrast_test.moc"
