// The one dialog that asks for a file to write.
#include "app/window/widgets/file_to_write.h"

#include <QFileDialog>

namespace kvscope {

QString fileToWrite(QWidget* parent, const QString& title, const QString& proposed, const QString& filter) {
    const QFileInfo file(proposed);
    QFileDialog dialog(parent, title, file.path(), filter);
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setDefaultSuffix(file.suffix());
    dialog.selectFile(file.fileName());
    return dialog.exec() == QDialog::Accepted ? dialog.selectedFiles().value(0) : QString();
}

} // namespace kvscope
