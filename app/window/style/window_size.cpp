// How the design fits into a window: the width folds panels, the height makes the chrome compact, and an interface
// scale that leaves too little room is reduced.
#include "app/window/style/window_size.h"

#include "app/window/style/appearance.h"

#include <algorithm>

namespace kvscope {

constexpr int kFoldBelow = 1360, kWideFrom = 2240; // from there on the pictures have room beside one more column
constexpr int kCompactBelowHeight = 820, kShortBelowHeight = 760, kShortForTwoRows = 1000;
constexpr QSize kLeast(1024, 640);

WindowSize sizeOf(int width) {
    return width < px(kFoldBelow) ? WindowSize::Narrow : width >= px(kWideFrom) ? WindowSize::Wide : WindowSize::Normal;
}

bool isShort(int height, bool twoRows) { return height < px(twoRows ? kShortForTwoRows : kShortBelowHeight); }

bool isLow(int height, double scale) { return height < kCompactBelowHeight * scale; }

QSize leastWindow(double scale) { return kLeast * scale; }

double fittingScale(double wanted, QSize window) {
    const auto fits = [&](double scale) {
        const QSize least = leastWindow(scale);
        return window.width() >= least.width() && window.height() >= least.height();
    };
    if (fits(wanted)) return wanted;
    double best = std::min(wanted, 1.0);
    for (const double scale : kInterfaceScales)
        if (scale < wanted && fits(scale)) best = std::max(best, scale);
    return best;
}

} // namespace kvscope
