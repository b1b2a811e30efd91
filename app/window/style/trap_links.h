#pragma once

#include <QString>

namespace kvscope {

/// Markdown in which every id such as B7 outside a listing links to its paragraph of the manual's page "Where papers
/// and code disagree": manual:disagreements.md#b7, which the main window opens.
QString withTrapLinks(const QString& markdown);

} // namespace kvscope
