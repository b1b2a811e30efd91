// The budget bar and the panel of parameters in the narrowest window and dock, at every interface scale: nothing is
// cut, and nothing lies over another part.
#include "app/window/panels/budget_bar.h"
#include "app/window/panels/capture_panel.h"
#include "app/window/panels/parameter_panel.h"
#include "app/window/panels/policy_panel.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/value_slider.h"
#include "core/policies/policy.h"
#include "tests/app/sample.h"
#include "tests/app/stepped_workbench.h"
#include "tests/support/test_program.h"

#include <QComboBox>

using namespace kvscope;

namespace {

QString nameOf(const QWidget* part) {
    const QVariant text = part->property("text");
    return QString("%1 “%2” in %3")
        .arg(part->metaObject()->className(), text.toString(), part->parentWidget()->objectName());
}

/// Each visible part that shows something itself.
std::vector<QWidget*> shownParts(const QWidget& panel) {
    std::vector<QWidget*> parts;
    for (QWidget* part : panel.findChildren<QWidget*>()) {
        const bool isPart = qobject_cast<QLabel*>(part) || qobject_cast<QAbstractButton*>(part) ||
                            qobject_cast<QLineEdit*>(part) || qobject_cast<QAbstractSlider*>(part) ||
                            qobject_cast<QComboBox*>(part);
        const bool isInner = qobject_cast<QLineEdit*>(part->parentWidget()); // the button that clears a field
        if (isPart && !isInner && part->isVisible()) parts.push_back(part);
    }
    return parts;
}

/// What is cut in `panel`, of which `room` is in sight, or lies over another part; empty: nothing.
QString faultOf(const QWidget& panel, int room) {
    const std::vector<QWidget*> parts = shownParts(panel);
    const auto place = [&](const QWidget* part) { return QRect(part->mapTo(&panel, QPoint()), part->size()); };
    for (const QWidget* part : parts) {
        if (place(part).left() < 0 || place(part).right() >= room) return nameOf(part) + " is cut";
        const bool isElided = qobject_cast<const QComboBox*>(part); // where it is narrow
        const int least = part->minimumWidth() > 0 ? part->minimumWidth() : part->minimumSizeHint().width();
        if (!isElided && part->width() < least) return nameOf(part) + " is narrower than its text";
        if (const auto* label = qobject_cast<const QLabel*>(part); label && label->wordWrap())
            if (label->height() < label->heightForWidth(label->width())) return nameOf(part) + " has lines cut";
        for (const QWidget* other : parts)
            if (other != part && place(other).intersects(place(part)))
                return nameOf(part) + " lies over " + nameOf(other);
    }
    return {};
}

void layOut() {
    for (int pass = 0; pass < 8; ++pass) QApplication::processEvents(); // each layout tells the one around it
}

} // namespace

class NarrowPanelsTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        m_bench.emplace(1);
        m_bench->bench.openCapture(kvscope::testing::kSample);
        m_bench->settle();
    }
    void cleanupTestCase() { m_bench.reset(); }

    void theBudgetBarFitsEveryWindow_data() {
        QTest::addColumn<double>("scale");
        QTest::addColumn<int>("width"); // of the window, in design pixels
        for (const double scale : {1.0, 1.5, 2.0})
            for (const int width : {1024, 1067, 1180, 1280, 1440, 1920})
                QTest::addRow("%g %d", scale, width) << scale << width;
    }

    void theBudgetBarFitsEveryWindow() {
        QFETCH(double, scale);
        QFETCH(int, width);
        setAppearance({ThemeId::Light, scale, false});
        QWidget window; // which takes the focus from the bar's fields while the bar still lives
        BudgetBar& bar = *new BudgetBar(m_bench->bench, &window);
        window.resize(px(width), bar.height());
        bar.resize(window.size());
        window.show();
        for (const std::string cut : {"default", "none", "last:256"}) {
            m_bench->bench.change([&](Session& s) { s.cut = cut; }, "Cut");
            layOut();
            QCOMPARE(bar.width(), px(width));
            QCOMPARE(faultOf(bar, bar.width()), QString());
            const auto* chip = bar.findChild<QPushButton*>("cutChip");
            const QString label = QString::fromStdString(m_bench->bench.cut()->label);
            QVERIFY2(chip->toolTip().startsWith("cut: " + label), qPrintable(chip->toolTip()));
            if (width >= 1280) QCOMPARE(chip->text(), "cut: " + label);
            if (width >= 1440) // room for all
                for (const QLabel* part : bar.findChildren<QLabel*>())
                    QVERIFY2(part->isVisible(), qPrintable(part->text()));
        }
    }

    void theParametersFitTheNarrowestDock_data() {
        QTest::addColumn<double>("scale");
        QTest::addColumn<int>("width"); // of the dock, in design pixels
        for (const double scale : {1.0, 1.5})
            for (const int width : {200, 288}) QTest::addRow("%g %d", scale, width) << scale << width;
    }

    void theParametersFitTheNarrowestDock() {
        QFETCH(double, scale);
        QFETCH(int, width);
        setAppearance({ThemeId::Light, scale, false});
        const std::unique_ptr<QScrollArea> area(scrollArea(nullptr)); // as a dock has it
        auto* panel = new PolicyPanel(m_bench->bench);
        area->setWidget(panel);
        area->resize(px(width), px(300)); // too low: the scroll bar takes some width
        area->show();
        bool areOpen = false;
        for (const Policy* policy : allPolicies()) {
            const PolicyCard& card = policy->card();
            const auto length = [](const PolicyVariant& variant) { return variant.label.size(); };
            const auto longest = std::ranges::max_element(card.variants, {}, length);
            const std::string variant = longest == card.variants.end() ? std::string() : longest->id;
            m_bench->bench.change(
                [&](Session& s) {
                    s.activePane = 0;
                    s.panes[0].policy = specOfVariant(card.id, variant);
                },
                "Policy");
            layOut();
            for (auto* fold : panel->findChildren<QPushButton*>("parameterFold"))
                if (!areOpen) fold->click();
            areOpen = true; // they stay so
            layOut();
            const QString fault = faultOf(*panel, area->viewport()->width());
            QVERIFY2(fault.isEmpty(), qPrintable(QString::fromStdString(card.id + ": ") + fault));
        }
    }

    /// The numbers under the heads' colours are the last line but one of a column that needs a little more room.
    void aLittleLowColumnShowsAllOfTheHeads() {
        setAppearance({ThemeId::Light, 1, false});
        const std::unique_ptr<QScrollArea> area(scrollArea(nullptr));
        auto* panel = new CapturePanel(m_bench->bench);
        area->setWidget(panel);
        area->resize(248, 900);
        area->show();
        layOut();
        area->resize(248, panel->sizeHint().height() - 30);
        layOut();
        QCOMPARE(panel->height(), area->viewport()->height());
    }

private:
    std::optional<kvscope::testing::SteppedWorkbench> m_bench;
};

KVSCOPE_OFFSCREEN_WIDGETS_TEST(NarrowPanelsTest)
#include "narrow_panels_test.moc"
