#pragma once

#include <QString>

class QWidget;

namespace kvscope {

/// Asks where to write a file; empty: nowhere. A name without a suffix gets that of `proposed` before the dialog asks
/// whether an existing file is to be replaced.
QString fileToWrite(QWidget* parent, const QString& title, const QString& proposed, const QString& filter);

} // namespace kvscope
