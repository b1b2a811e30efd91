// The window shows numbers with commas between thousands, and reads them back.
#include "app/window/style/typed_number.h"

#include "core/base/error.h"

#include <QRegularExpression>

namespace kvscope {

QString withoutThousands(const QString& typed) {
    static const QRegularExpression kThousands("^[+-]?[1-9]\\d{0,2}(,\\d{3})+(\\.\\d*)?%?$");
    const QString text = typed.trimmed();
    if (text.contains(',') && !kThousands.match(text).hasMatch())
        throw Error({"A comma stands only between thousands", text.toStdString(),
                     "write 0.25 with a point, 1,024 with a comma"});
    return QString(text).remove(',');
}

} // namespace kvscope
