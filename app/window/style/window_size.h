#pragma once

#include <QSize>

#include <array>

namespace kvscope {

inline constexpr std::array kInterfaceScales = {1.0, 1.25, 1.5, 2.0}; ///< the steps of Ctrl+plus and minus

/// Widths below 1360 design pixels, between, and from 2240 on.
enum class WindowSize { Narrow, Normal, Wide };

WindowSize sizeOf(int width);
/// Whether the rows of panes, one or two, leave no room for two rows of docks, at the current interface scale.
bool isShort(int height, bool twoRows);
/// Whether a window of this height has compact chrome at an interface scale.
bool isLow(int height, double scale);

/// The largest interface scale up to the wanted one at which the window still has the design's least size (1024 x 640);
/// below that docks would overlap. At least 1.
double fittingScale(double wanted, QSize window);
/// The smallest window for an interface scale.
QSize leastWindow(double scale);

} // namespace kvscope
