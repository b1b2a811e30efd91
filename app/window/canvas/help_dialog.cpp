// Not modal, so that the page can be read beside the view that it explains.
#include "app/window/canvas/help_dialog.h"

#include "app/window/style/appearance.h"
#include "app/window/style/trap_links.h"

#include <QTextBrowser>
#include <QVBoxLayout>

namespace kvscope {

HelpDialog::HelpDialog(const QString& title, const QString& markdown, QWidget* parent) : QDialog(parent) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(title);
    resize(px(520), px(420));
    auto* column = new QVBoxLayout(this);
    auto* page = new QTextBrowser(this);
    page->setOpenExternalLinks(true);
    page->setMarkdown(withTrapLinks(markdown));
    column->addWidget(page);
}

} // namespace kvscope
