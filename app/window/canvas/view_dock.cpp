// The options of a view come from the same tables as the parameters of a policy.
#include "app/window/canvas/view_dock.h"

#include "app/window/appearance.h"
#include "app/window/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QVBoxLayout>

namespace kvscope {

namespace {

QString chipText(const ParameterSpec& spec, const ParameterValues& values) {
    if (spec.kind == ParameterKind::Flag)
        return fromUtf8(spec.label) + (values.flag(spec.id) ? QObject::tr(": on") : QObject::tr(": off"));
    const std::string chosen = values.choice(spec.id);
    for (const ParameterChoice& choice : spec.choices)
        if (choice.id == chosen)
            return fromUtf8(choice.label) + " ▾";
    return fromUtf8(chosen);
}

void fillChoices(QMenu* menu, Workbench& workbench, const View& view, const ParameterSpec& spec) {
    for (const ParameterChoice& choice : spec.choices) {
        QAction* action = menu->addAction(fromUtf8(choice.label));
        action->setToolTip(fromUtf8(choice.help));
        QObject::connect(action, &QAction::triggered, menu, [&workbench, &view, id = spec.id, text = choice.id, label = spec.label] {
            workbench.change([&](Session& s) { setViewOption(s, view.card().id, id, text); }, fromUtf8(label));
        });
    }
}

} // namespace

void addOptionChips(Workbench& workbench, const View& view, QHBoxLayout* row, QWidget* parent, int limit) {
    for (const ParameterSpec& spec : *view.card().options) {
        if ((spec.kind != ParameterKind::Choice && spec.kind != ParameterKind::Flag) || limit-- <= 0)
            continue;
        QPushButton* chip = chipButton({}, "plain", parent);
        chip->setToolTip(fromUtf8(spec.help));
        chip->setAccessibleName(fromUtf8(spec.label));
        const auto follow = [chip, &workbench, &view, spec] { chip->setText(chipText(spec, viewOptions(workbench.session(), view))); };
        if (spec.kind == ParameterKind::Choice) {
            chip->setMenu(new QMenu(chip));
            fillChoices(chip->menu(), workbench, view, spec);
        } else {
            QObject::connect(chip, &QPushButton::clicked, parent, [&workbench, &view, spec] {
                const bool on = viewOptions(workbench.session(), view).flag(spec.id);
                workbench.change([&](Session& s) { setViewOption(s, view.card().id, spec.id, on ? "false" : "true"); },
                                 fromUtf8(spec.label));
            });
        }
        QObject::connect(&workbench, &Workbench::sessionChanged, chip, follow);
        follow();
        row->addWidget(chip);
    }
}

ViewDock::ViewDock(Workbench& workbench, const View& view, const TextService& text, QWidget* parent)
    : QFrame(parent), m_workbench(workbench), m_canvas(new ViewCanvas(workbench, view, 0, text, this)),
      m_finding(new ElidedLabel("quiet", Qt::ElideRight, this)) {
    setObjectName("viewDock");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 1, 1, 1);
    column->setSpacing(0);
    auto* header = new QWidget(this);
    header->setObjectName("dockHeader");
    header->setAttribute(Qt::WA_StyledBackground);
    header->setFixedHeight(px(28));
    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(px(10), 0, px(4), 0);
    row->setSpacing(px(6));
    row->addWidget(roleLabel(fromUtf8(view.card().name), "dockTitle", header));
    addOptionChips(workbench, view, row, header, 1);
    row->addWidget(m_finding, 1);
    auto* data = iconButton("table", tr("Show the data of this view"), header);
    auto* exportButton = iconButton("export", tr("Export this view"), header);
    row->addWidget(data);
    row->addWidget(exportButton);
    column->addWidget(header);
    column->addWidget(m_canvas, 1);
    connect(data, &QToolButton::clicked, m_canvas, &ViewCanvas::dataWanted);
    connect(exportButton, &QToolButton::clicked, m_canvas, &ViewCanvas::exportWanted);
    connect(&m_workbench, &Workbench::sessionChanged, this, &ViewDock::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, &ViewDock::refresh);
    refresh();
}

void ViewDock::refresh() {
    m_finding->setFullText(m_canvas->finding());
}

} // namespace kvscope
