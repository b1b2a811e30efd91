#pragma once

#include <QString>
#include <QStringList>

namespace kvscope {

/// Formulas of a listing, set in so many columns. A listing that fits stays as it is. Else what stands side by side
/// stands below each other, and a formula that is still too long goes on with an indent: between sentences, before a
/// relation or an operator, and only then inside its brackets. An operator is never left without what follows it.
QStringList formulaLines(const QStringList& listing, int columns);

/// A page of Markdown whose indented listings are set in so many columns.
QString withFormulaLines(const QString& markdown, int columns);

/// A page of Markdown in whose running text no line ends at the bars of a norm or between "Eq." and its number.
QString withUnbrokenNorms(const QString& markdown);

} // namespace kvscope
