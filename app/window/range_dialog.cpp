// For a figure that must show exactly the same part as another one.
#include "app/window/range_dialog.h"

#include "app/window/appearance.h"
#include "app/window/number_text.h"

#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

namespace kvscope {

RangeDialog::RangeDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent)
    : QDialog(parent), m_workbench(workbench), m_view(canvas.view().card().id) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Range: %1").arg(fromUtf8(canvas.view().card().name)));
    const Scene& scene = canvas.canvas()->scene();
    auto* grid = new QGridLayout(this);
    const auto field = [&](int row, int column, const QString& name, double value) {
        auto* edit = new QLineEdit(QString::number(value, 'g', 8), this);
        edit->setObjectName(name);
        edit->setAccessibleName(name);
        edit->setFont(numberFont(12));
        edit->setMinimumWidth(px(110));
        grid->addWidget(edit, row, column);
        return edit;
    };
    grid->addWidget(new QLabel(tr("from"), this), 0, 1);
    grid->addWidget(new QLabel(tr("to"), this), 0, 2);
    grid->addWidget(new QLabel(tr("Across"), this), 1, 0);
    grid->addWidget(new QLabel(scene.yDown ? tr("Down") : tr("Up"), this), 2, 0);
    m_xFrom = field(1, 1, "xFrom", scene.xMin);
    m_xTo = field(1, 2, "xTo", scene.xMax);
    m_yFrom = field(2, 1, "yFrom", scene.yMin);
    m_yTo = field(2, 2, "yTo", scene.yMax);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Apply | QDialogButtonBox::Close, this);
    grid->addWidget(buttons, 3, 0, 1, 3);
    connect(buttons->button(QDialogButtonBox::Apply), &QPushButton::clicked, this, &RangeDialog::apply);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

void RangeDialog::apply() {
    const auto read = [](const QLineEdit* from, const QLineEdit* to, double& low, double& high) {
        bool lowIsNumber = false, highIsNumber = false;
        low = from->text().toDouble(&lowIsNumber);
        high = to->text().toDouble(&highIsNumber);
        return lowIsNumber && highIsNumber && low < high;
    };
    const auto mark = [](QLineEdit* edit, bool good) {
        edit->setStyleSheet(good ? QString() : QString("border: 2px solid %1").arg(qColor(chrome().error).name()));
        edit->setToolTip(good ? QString() : tr("Two numbers, the first below the second"));
    };
    Viewport::Range range{};
    const bool x = read(m_xFrom, m_xTo, range.xMin, range.xMax), y = read(m_yFrom, m_yTo, range.yMin, range.yMax);
    for (QLineEdit* edit : {m_xFrom, m_xTo})
        mark(edit, x);
    for (QLineEdit* edit : {m_yFrom, m_yTo})
        mark(edit, y);
    if (x && y)
        m_workbench.change([&](Session& s) { s.look.ranges[m_view] = range; }, tr("Range"));
}

} // namespace kvscope
