#pragma once

#include <QString>
#include <QStringList>

namespace kvscope {

/// Fits the formulas of a listing into a number of columns. A listing that fits stays as it is. Otherwise columns are
/// stacked, and a formula that is still too long continues with an indent: broken between sentences, before a relation
/// or an operator, and last inside brackets. A line never ends in an operator.
QStringList formulaLines(const QStringList& listing, int columns);

/// Markdown whose indented listings are fitted into so many columns.
QString withFormulaLines(const QString& markdown, int columns);

/// Markdown in which no line breaks between "Eq." and its number.
QString withUnbrokenNumbers(const QString& markdown);

} // namespace kvscope
