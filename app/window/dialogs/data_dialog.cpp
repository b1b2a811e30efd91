// Not modal, so that the table can be read beside the view.
#include "app/window/dialogs/data_dialog.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"

#include <QClipboard>
#include <QDialogButtonBox>
#include <QGuiApplication>
#include <QHeaderView>
#include <QPointer>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

#include <memory>
#include <utility>

namespace kvscope {

DataDialog::DataDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent) : QDialog(parent) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Data: %1").arg(fromUtf8(canvas.view().card().name)));
    resize(px(760), px(520));
    auto* column = new QVBoxLayout(this);
    auto* table = new QTableView(this);
    table->setAccessibleName(windowTitle());
    table->setAlternatingRowColors(true);
    table->setModel(&m_model);
    table->setFont(numberFont(12));
    table->verticalHeader()->setVisible(false);
    table->verticalHeader()->setDefaultSectionSize(px(22));
    column->addWidget(table);
    auto* buttons = new QDialogButtonBox(this);
    QPushButton* copy = buttons->addButton(tr("Copy all as TSV"), QDialogButtonBox::ActionRole);
    buttons->addButton(QDialogButtonBox::Close);
    column->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);

    const QPointer<ViewCanvas> source(&canvas);
    const auto follow = [this, source] {
        if (source) m_model.show(source->table());
    };
    connect(copy, &QPushButton::clicked, this, [source] {
        if (source) QGuiApplication::clipboard()->setText(tableAsTsv(source->table()));
    });
    connect(&canvas, &QObject::destroyed, this, &QDialog::reject);
    connect(&workbench, &Workbench::paneChanged, this, follow);
    connect(&workbench, &Workbench::sessionChanged, this, follow);
    // Progress alone is ignored: a new table would drop the selection many times a second.
    connect(&workbench, &Workbench::dataChanged, this,
            [follow, &workbench, &view = canvas.view(),
             seen = std::shared_ptr<const ViewData>()](const QString& viewId) mutable {
                if (viewId != fromUtf8(view.card().id)) return;
                const auto now = workbench.viewInput(view).data.value;
                if (std::exchange(seen, now) == now) return;
                follow();
            });
    follow();
    table->resizeColumnsToContents();
}

} // namespace kvscope
