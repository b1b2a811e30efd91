// Pictures of the window for eyes: every layout and, in it, every panel behind a tab and every view that can be called
// into it, at the sizes, interface scales and themes that the design promises. Texts of the pictures that leave them or
// lie over each other are named as well. Usage: window-gallery FOLDER [CAPTURE [PART]] (where there is a display of
// 2560 x 1440 or more; under xvfb-run otherwise); PART takes only pictures with it in their name, for example
// compare-1280x800. PART "readme" takes the README's instead: the first screen, and a drag of the budget frame by
// frame.
#include "app/window/canvas_area.h"
#include "app/window/docks/dock_layout.h"
#include "app/window/style/appearance.h"
#include "app/window/widgets/value_slider.h"
#include "tests/app/window_parts.h"
#include "tests/support/scene_checks.h"
#include "tests/support/source_dir.h"

#include <QAction>
#include <QApplication>
#include <QDir>
#include <QSettings>
#include <QStandardPaths>

#include <array>
#include <cstdio>
#include <utility>

namespace {

using namespace kvscope;

constexpr std::array kLayouts = {std::pair{"explore", WindowLayout::ExploreHead},
                                 std::pair{"compare", WindowLayout::ComparePolicies},
                                 std::pair{"teach", WindowLayout::Teach}, std::pair{"model", WindowLayout::WholeModel}};
constexpr std::array kThemes = {std::pair{"light", ThemeChoice::Light}, std::pair{"dark", ThemeChoice::Dark}};

struct Place {
    QSize size;
    double scale;
};
const std::array kPlaces = {Place{{1280, 800}, 1},  Place{{1440, 900}, 1},    Place{{1920, 1080}, 1.5},
                            Place{{2560, 1440}, 1}, Place{{2560, 1440}, 1.5}, Place{{2560, 1440}, 2}};

class Gallery : kvscope::testing::WindowParts {
public:
    Gallery(QString folder, const QString& capture, QString part)
        : WindowParts(0), m_folder(std::move(folder)), m_part(std::move(part)) {
        window.setAnimated(false); // a dock on its way to its place is no picture
        window.show();
        window.openPath(capture);
        settle();
    }

    void paintAll() {
        for (const Place& place : kPlaces)
            for (const auto& [theme, choice] : kThemes)
                for (const auto& [layout, chosen] : kLayouts)
                    paint(place, choice, chosen,
                          QString("%1-%2x%3-%4-%5")
                              .arg(layout)
                              .arg(place.size.width())
                              .arg(place.size.height())
                              .arg(place.scale)
                              .arg(theme));
    }

    /// From a half down to a twentieth of the tokens, as a hand does it, and to a quarter.
    void paintDrag() {
        QSettings().clear();
        window.resize(1280, 800);
        settle();
        window.grab().save(m_folder + "/window.png");
        auto* slider = window.findChild<ValueSlider*>();
        const std::array shares = {0.25, 0.28, 0.33, 0.39, 0.45, 0.5,  0.46, 0.41, 0.36, 0.31, 0.27, 0.23, 0.2,
                                   0.17, 0.14, 0.12, 0.1,  0.08, 0.06, 0.05, 0.05, 0.07, 0.1,  0.14, 0.19, 0.25};
        for (std::size_t i = 0; i < shares.size(); ++i) {
            slider->setSliderDown(i > 0 && i + 1 < shares.size());
            bench.change([&](Session& s) { s.budget = {Budget::Unit::Fraction, shares[i]}; }, "Budget", "budget");
            settle();
            window.grab().save(m_folder + QString("/drag-%1.png").arg(i, 2, 10, QChar('0')));
        }
    }

private:
    void paint(const Place& place, ThemeChoice theme, WindowLayout layout, const QString& name) {
        if (!name.contains(m_part)) return;
        QSettings().clear(); // every arrangement from its default
        window.resize(place.size);
        bench.change(
            [&](Session& s) {
                s.layout = layout;
                s.look.theme = theme;
                s.look.scale = place.scale;
            },
            "Gallery");
        window.resize(place.size); // the layout before may have needed more
        settle();
        save(window, name);
        for (PanelDock* dock : window.docks()->all()) {
            const bool isTabbed = dock->toggleViewAction()->isChecked();
            if (!dock->visibleRegion().isEmpty() || (!isTabbed && !dock->findChild<ViewCanvas*>()))
                continue; // in the picture above, or a panel of other layouts
            dock->present();
            settle();
            save(*dock, name + "-" + dock->id());
            dock->setVisible(isTabbed);
        }
    }

    void save(QWidget& widget, const QString& name) {
        widget.grab().save(m_folder + "/" + name + ".png");
        for (const ViewCanvas* canvas : window.findChildren<ViewCanvas*>()) {
            if (canvas->visibleRegion().isEmpty()) continue;
            const Scene& scene = canvas->canvas()->scene();
            if (canvas->view().card().id == "token_strip") continue; // scrolls: the last line goes on below
            for (const QString& fault :
                 scene_checks::clippedTexts(scene, text) + scene_checks::overlappingTexts(scene, text))
                std::printf("%s: %s: %s\n", qPrintable(name), canvas->view().card().id.c_str(), qPrintable(fault));
        }
        std::fflush(stdout);
    }

    QString m_folder, m_part;
};

} // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 4 || !QDir().mkpath(argv[1])) {
        std::fprintf(stderr, "usage: window-gallery FOLDER [CAPTURE [PART]]\n");
        return 2;
    }
    QStandardPaths::setTestModeEnabled(true); // the user's settings stay as they are
    QCoreApplication::setOrganizationName("KVScope gallery");
    kvscope::testing::useFormatOfTheProgram();
    QApplication application(argc, argv);
    QApplication::setStyle(makeChromeStyle());
    Gallery gallery(QString::fromLocal8Bit(argv[1]),
                    argc > 2 ? QString::fromLocal8Bit(argv[2])
                             : QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5"),
                    argc > 3 ? QString::fromLocal8Bit(argv[3]) : QString());
    if (argc > 3 && QByteArray(argv[3]) == "readme")
        gallery.paintDrag();
    else
        gallery.paintAll();
}
