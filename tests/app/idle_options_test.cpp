// Options that wait for others, in the window: grey and with a reason while they change nothing, back as soon as they
// do. A colour that shows what other panes keep follows them, however late they come.
#include "app/window/canvas/view_options.h"
#include "app/window/style/appearance.h"
#include "tests/app/click_entry.h"
#include "tests/app/one_view.h"
#include "tests/support/test_program.h"
#include "views/scene/theme.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QStyle>
#include <QTimer>

#include <algorithm>

using namespace kvscope;
using kvscope::testing::OneView;

namespace {

/// Evicted marks of the first of two panes without the colour of the number of panes that keep the token; -1: no mark.
int wronglyColoured(const OneView& one) {
    const ViewInput now = one.bench.viewInput();
    const auto isKept = [&](std::size_t pane, std::int64_t token) {
        const auto& kept = now.panes[pane].result->selection.heads[now.kvHead.value].kept;
        return std::ranges::binary_search(kept, static_cast<TokenIndex>(token));
    };
    int wrong = 0;
    bool isMarked = false;
    for (const Drawable& item : one.view->canvas()->scene().items)
        if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == "evicted")
            for (const std::int64_t token : *cloud->ids) {
                const int step = isKept(1, token) ? 12 : 0; // of 24, half of the panes or none
                wrong += isKept(0, token) || !(cloud->stroke.colour == colourMap("viridis", (step + 0.5) / 24)) ? 1 : 0;
                isMarked = true;
            }
    return isMarked ? wrong : -1;
}

QAction* entryOf(const QMenu& menu, const QString& start) {
    for (QAction* action : menu.actions())
        if (action->text().startsWith(start)) return action;
    return nullptr;
}

/// A click on an entry of the view's menu, as it is when it opens.
void clickEntry(OneView& one, const QString& text) {
    QMenu menu(one.view.get());
    addOptionEntries(&menu, one.bench, one.view->view());
    menu.popup(one.view->mapToGlobal(QPoint(20, 20)));
    QVERIFY(QTest::qWaitForWindowExposed(&menu));
    QAction* entry = entryOf(menu, text);
    QVERIFY(entry);
    testing::clickEntry(menu, entry);
}

QPushButton* chipOf(const QWidget& row, const QString& name) {
    for (QPushButton* chip : row.findChildren<QPushButton*>())
        if (chip->accessibleName() == name) return chip;
    return nullptr;
}

/// Opens a chip's menu with the mouse and clicks an entry.
void chooseWithChip(QPushButton* chip, const QString& text) {
    bool clicked = false;
    QTimer::singleShot(0, chip, [&] {
        QMenu* menu = chip->menu();
        QAction* entry = QTest::qWaitForWindowExposed(menu) ? entryOf(*menu, text) : nullptr;
        if (entry) {
            testing::clickEntry(*menu, entry);
            clicked = true;
        }
        menu->close();
    });
    QTest::mouseClick(chip, Qt::LeftButton);
    QTRY_VERIFY(clicked);
}

} // namespace

class IdleOptionsTest : public QObject {
    Q_OBJECT

private slots:
    void coloursByPanesFollowASlowerPane() {
        OneView one(viewById("key_projection"), {"keydiff@0.25", "balancekv@0.25"}, {{"colour_by", "panes"}});
        QVERIFY(one.ready());
        QCOMPARE(wronglyColoured(one), 0);
        one.bench.change([](Session& s) { s.panes[1].policy = PolicySpec::parse("uniform@0.5"); }, "Policy");
        one.arrange(); // drawn while that pane's choice is on its way
        QVERIFY(one.bench.viewInput().panes[1].computing);
        one.finish();
        QVERIFY(one.ready());
        QCOMPARE(wronglyColoured(one), 0);
    }

    void aGreyEntryDoesNothingAndSaysWhy() {
        const View& view = viewById("key_projection");
        OneView one(view, {"keydiff@0.25"}, {{"source", "values"}});
        const auto shown = [&] { return viewOptions(one.bench.session(), view).flag("show_queries"); };
        clickEntry(one, "Queries");
        QVERIFY(!shown());
        {
            QMenu menu;
            addOptionEntries(&menu, one.bench, view);
            QVERIFY(menu.toolTipsVisible());
            QVERIFY(!entryOf(menu, "Queries")->isEnabled());
            QCOMPARE(entryOf(menu, "Queries")->toolTip(),
                     QString("Matters only while Source is keys after RoPE or keys before RoPE"));
            QVERIFY(!entryOf(menu, "t-SNE perplexity")->isEnabled());
            QVERIFY(entryOf(menu, "Horizontal component")->isEnabled() && entryOf(menu, "Source")->isEnabled());
        }
        one.bench.change([&](Session& s) { setViewOption(s, view.card().id, "source", "keys"); }, "Source");
        clickEntry(one, "Queries");
        QVERIFY(shown());
    }

    void aChipGreysAndComesBack() {
        const View& view = viewById("attention_map");
        OneView one(view, {"keydiff@0.25"}, {});
        QWidget row;
        auto* layout = new QHBoxLayout(&row);
        addOptionChips(one.bench, view, layout, &row);
        row.show();
        QVERIFY(QTest::qWaitForWindowExposed(&row));
        QPushButton *map = chipOf(row, "Map"), *heads = chipOf(row, "Heads");
        QVERIFY(map && heads && heads->isEnabled());
        const QString help = heads->toolTip();
        chooseWithChip(map, "Cosine of keys");
        QCOMPARE(viewOptions(one.bench.session(), view).choice("map"), std::string("cosine"));
        QVERIFY(!heads->isEnabled() && map->isEnabled());
        QCOMPARE(heads->toolTip(), QString("Matters only while Map is Causal, Non-causal, Chunks or Logits"));
        chooseWithChip(map, "Logits");
        QVERIFY(heads->isEnabled());
        QCOMPARE(heads->toolTip(), help);
    }

    /// A menu of many measures has headings, and a field that finds one by a part of its name.
    void aLongMenuIsGroupedAndSearched() {
        const View& view = viewById("head_grid");
        OneView one(view, {"keydiff@0.25", "snapkv@0.25"}, {});
        QWidget row;
        auto* layout = new QHBoxLayout(&row);
        addOptionChips(one.bench, view, layout, &row);
        row.show();
        QVERIFY(QTest::qWaitForWindowExposed(&row));
        QPushButton *chip = chipOf(row, "Quantity"), *first = chipOf(row, "First pane"), *map = chipOf(row, "Colours");
        QVERIFY(chip && first && map && first->isHidden() && map->isVisible());
        QStringList headings, found, headingsLeft;
        bool scrolls = false;
        QTimer::singleShot(0, chip, [&] {
            QMenu* menu = chip->menu();
            if (!QTest::qWaitForWindowExposed(menu)) return;
            for (const QLabel* label : menu->findChildren<QLabel*>()) headings += label->text();
            QTest::keyClicks(menu->findChild<QLineEdit*>("menuSearch"), "entropy");
            for (const QAction* action : menu->actions())
                if (action->isVisible() && action->isCheckable()) found += action->text();
            for (const QLabel* label : menu->findChildren<QLabel*>())
                if (label->isVisible()) headingsLeft += label->text();
            // A second column would begin with entries that have no heading.
            menu->setStyleSheet(styleSheetOf(themeOf(ThemeId::Light), 1));
            scrolls = menu->style()->styleHint(QStyle::SH_Menu_Scrollable, nullptr, menu) != 0;
            QTest::keyClick(menu->findChild<QLineEdit*>("menuSearch"), Qt::Key_Return);
            menu->close();
        });
        QTest::mouseClick(chip, Qt::LeftButton);
        QTRY_COMPARE(found, QStringList("Attention entropy, nat"));
        QCOMPARE(headingsLeft, QStringList("EXACT ATTENTION")); // the others lay over the entries
        QVERIFY(scrolls);
        QVERIFY(headings.contains("ATTENTION OUTPUT ERROR") && headings.contains("TWO PANES"));
        QCOMPARE(viewOptions(one.bench.session(), view).choice("quantity"), std::string("entropy"));
        one.bench.change([&](Session& s) { setViewOption(s, "head_grid", "quantity", "error_difference"); }, "Compare");
        QVERIFY(first->isVisible() && first->text().startsWith("A KeyDiff"));
        QVERIFY(map->isHidden()); // blue and red, whatever the map
    }
};

KVSCOPE_WINDOW_TEST(IdleOptionsTest)
#include "idle_options_test.moc"
