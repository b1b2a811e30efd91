#pragma once

#include <QString>

namespace kvscope {

/// "1,024" without the commas between its thousands; a text without commas as it is. Throws Error for a comma
/// elsewhere: without it "0,25" would be another number.
QString withoutThousands(const QString& typed);

} // namespace kvscope
