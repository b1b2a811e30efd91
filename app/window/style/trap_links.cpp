// Links from the ids of disagreements between papers and code in help texts to the manual.
#include "app/window/style/trap_links.h"

#include <QRegularExpression>
#include <QStringList>

namespace kvscope {

QString withTrapLinks(const QString& markdown) {
    static const QRegularExpression kId(R"(\b([ABCKLSX][0-9]{1,2})\b(?! norm))"); // the L2 norm is no id
    QStringList lines = markdown.split('\n');
    for (QString& line : lines)
        if (!line.startsWith("    ")) line.replace(kId, R"([\1](manual:disagreements.md#\1))");
    return lines.join('\n');
}

} // namespace kvscope
