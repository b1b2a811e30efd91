#pragma once

#include <QSize>

namespace kvscope {

/// The widths of the design: below 1360, from 1920 on, and between.
enum class WindowSize { Narrow, Normal, Wide };

/// Of a window of this width at the present interface scale.
WindowSize sizeOf(int width);
/// Whether two rows of panes leave no room for two rows of docks below them, at the present interface scale.
bool isShort(int height);
/// Whether a window of this height has compact chrome at an interface scale.
bool isLow(int height, double scale);

/// The largest step of the interface scale up to the wanted one at which the whole window still has its least size of
/// the design (1024 x 640); below that docks would cover each other. At least 1.
double fittingScale(double wanted, QSize window);
/// The window that an interface scale needs.
QSize leastWindow(double scale);

} // namespace kvscope
