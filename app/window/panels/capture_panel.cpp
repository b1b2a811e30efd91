// The facts of the open capture, and the heads of its layers coloured by a measure.
#include "app/window/panels/capture_panel.h"

#include "app/window/panels/head_picker.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/choice_box.h"
#include "app/window/widgets/small_widgets.h"
#include "views/common/measure_options.h"

#include <QGridLayout>
#include <QVBoxLayout>

namespace kvscope {

CapturePanel::CapturePanel(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("panelBody");
    auto* column = makeLayout<QVBoxLayout>(this, {8, 8, 8, 6}, 4);
    auto* facts = innerLayout<QGridLayout>(column, {8, 0, 8, 0});
    facts->setVerticalSpacing(px(appearance().compact ? 1 : 3));
    m_name = added(facts, new ElidedLabel("title", Qt::ElideMiddle, this), 1, 0, 1, 2);
    m_model = added(facts, new ElidedLabel("quiet", Qt::ElideRight, this), 2, 0, 1, 2);
    m_tokens = addFact(facts, tr("Tokens n"));
    m_layers = addFact(facts, tr("Layers"));
    m_heads = addFact(facts, tr("Query / KV heads"));
    m_dim = addFact(facts, tr("Head dim d"));
    m_stored = addFact(facts, tr("Stored as"));
    m_size = addFact(facts, tr("File"));
    m_check = addFact(facts, tr("Self-check"));
    column->addSpacing(px(4));
    column->addWidget(separatorLine(this));
    column->addSpacing(px(4));
    auto* headsBox = innerLayout<QVBoxLayout>(column, {8, 0, 8, 0});
    auto* heading = innerLayout<QHBoxLayout>(headsBox, {}, 8);
    heading->addWidget(roleLabel(tr("HEADS"), "section", this));
    heading->addWidget(makeMeasureBox(), 1);
    headsBox->addWidget(new HeadPicker(workbench, this));
    // A wrapped label would keep the cells from yielding: its height depends on its width, and so would the panel's.
    added(headsBox, new ElidedLabel("quiet", Qt::ElideRight, this))->setFullText(tr("rows: layers, columns: KV heads"));
    column->addStretch();
    connect(&m_workbench, &Workbench::captureChanged, this, &CapturePanel::refreshFacts);
    refreshFacts();
}

/// The measure shown in the cells of the head picker: any measure with one number per head.
QWidget* CapturePanel::makeMeasureBox() {
    m_measure = named("headMeasure", new ChoiceBox(this));
    m_measure->setAccessibleName(tr("Heads by"));
    m_measure->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed); // takes the panel's width
    std::string group;
    for (const ParameterChoice& choice : measureChoices()) {
        if (choice.group != group) m_measure->addHeading(fromUtf8(group = choice.group));
        m_measure->addItem(fromUtf8(choice.label), fromUtf8(choice.id));
        m_measure->setItemData(m_measure->count() - 1, fromUtf8(choice.help), Qt::ToolTipRole);
    }
    connect(m_measure, &QComboBox::activated, this, [this](int index) {
        const std::string id = m_measure->itemData(index).toString().toStdString();
        m_workbench.change([&](Session& s) { s.look.headMeasure = id; }, tr("Heads by"));
    });
    connect(&m_workbench, &Workbench::sessionChanged, this, &CapturePanel::refreshMeasure);
    refreshMeasure();
    return m_measure;
}

void CapturePanel::refreshMeasure() {
    const MeasureCard& measure = measureById(m_workbench.session().look.headMeasure);
    m_measure->setCurrentIndex(m_measure->findData(fromUtf8(measure.id)));
    m_measure->setToolTip(fromUtf8(measure.help));
}

QLabel* CapturePanel::addFact(QGridLayout* grid, const QString& name) {
    const int row = grid->rowCount();
    grid->addWidget(roleLabel(name, "fact", this), row, 0);
    return added(grid, numberLabel(12, QFont::Normal, this), row, 1);
}

void CapturePanel::refreshFacts() {
    const auto& capture = m_workbench.capture();
    if (!capture) {
        m_name->setFullText(tr("No capture is open"));
        m_model->setFullText(tr("Open one with Ctrl+O, or drop a file here"));
        for (QLabel* label : {m_tokens, m_layers, m_heads, m_dim, m_stored, m_size, m_check}) label->setText("–");
        return;
    }
    const CaptureInfo& info = capture->info();
    m_name->setFullText(fromUtf8(info.fileName));
    m_model->setFullText(fromUtf8(info.modelId));
    m_tokens->setText(countText(info.numTokens));
    const auto stored = static_cast<std::int64_t>(info.layers.size());
    m_layers->setText(stored == info.numLayers ? countText(stored)
                                               : tr("%1 of %2").arg(countText(stored), countText(info.numLayers)));
    m_heads->setText(QString("%1 / %2").arg(info.numQueryHeads).arg(info.numKvHeads));
    m_dim->setText(info.headDim == info.valueDim ? QString::number(info.headDim)
                                                 : QString("%1 (v %2)").arg(info.headDim).arg(info.valueDim));
    m_stored->setText(info.layers.empty() ? QString()
                                          : QString::fromUtf8(storedTypeName(info.layers.front().storedType).data()));
    m_size->setText(info.path.empty() ? tr("none: live") : bytesText(info.fileBytes));
    QStringList checks;
    for (const CaptureCheck& check : info.checks) checks += fromUtf8(checkText(check));
    m_check->setText(checks.isEmpty() ? tr("none") : info.checkWarning().empty() ? tr("passed") : tr("FAILED"));
    m_check->setToolTip(checks.isEmpty() ? tr("This capture was not compared with its model") : checks.join('\n'));
}

} // namespace kvscope
