// The fields of the dialog, from top to bottom.
#include "app/window/dialogs/from_text_dialog.h"

#include "app/window/style/appearance.h"
#include "app/window/widgets/choice_box.h"
#include "app/window/widgets/small_widgets.h"

#include <QCheckBox>
#include <QPlainTextEdit>
#include <QSpinBox>

namespace kvscope {

QLabel* FromTextDialog::addRow(const QString& label, QWidget* field, QWidget* beside, const char* said) {
    const int row = m_grid->rowCount();
    field->setAccessibleName(label);
    m_grid->addWidget(roleLabel(label, "fact", this), row, 0, label == tr("Text") ? Qt::AlignTop : Qt::Alignment());
    m_grid->addWidget(field, row, 1, 1, beside ? 1 : 2);
    if (beside) m_grid->addWidget(beside, row, 2);
    if (auto* button = qobject_cast<QPushButton*>(beside)) button->setAutoDefault(false);
    if (!said) return nullptr;
    return added(m_grid, named(said, wrappedLabel({}, "quiet", this)), row + 1, 1, 1, 2);
}

QWidget* FromTextDialog::buildRun() {
    auto* box = new QWidget(this);
    auto* row = makeLayout<QHBoxLayout>(box, {0, 0, 0, 0}, 8);
    m_device = named("liveDevice", new QComboBox(box));
    m_device->setEditable(true);
    m_device->addItem("cpu");
    m_device->setAccessibleName(tr("Device"));
    m_dtype = named("liveDtype", new ChoiceBox(box));
    m_dtype->setAccessibleName(tr("Type"));
    for (const auto& [text, data] :
         {std::pair{tr("fp32"), "f32"}, {tr("bf16"), "bf16"}, {tr("fp16"), "f16"}, {tr("as stored"), "auto"}})
        m_dtype->addItem(text, data);
    m_chat = named("liveChat", new QCheckBox(tr("Chat template"), box));
    m_bos = named("liveBos", new QCheckBox(tr("Begin with BOS"), box));
    m_bos->setToolTip(tr("Though the tokenizer writes none; the chat template has its own."));
    row->addWidget(roleLabel(tr("on"), "fact", box));
    row->addWidget(m_device, 1);
    row->addWidget(roleLabel(tr("in"), "fact", box));
    row->addWidget(m_dtype, 1);
    row->addWidget(m_chat);
    row->addWidget(m_bos);
    connect(m_chat, &QCheckBox::toggled, m_bos, &QWidget::setDisabled);
    return box;
}

QWidget* FromTextDialog::buildText() {
    auto* box = new QWidget(this);
    auto* row = makeLayout<QHBoxLayout>(box, {0, 0, 0, 0}, 6);
    m_text = added(row, named("liveText", new QPlainTextEdit(box)), 1);
    m_text->setTabChangesFocus(true);
    m_text->setMinimumHeight(px(64));
    m_text->setAccessibleName(tr("Text"));
    m_text->setPlaceholderText(tr("The context whose cache is compressed: type or paste it"));
    auto* file = added(row, named("textFile", new QPushButton(tr("From a file…"), box)), 0, Qt::AlignTop);
    file->setAutoDefault(false);
    connect(file, &QPushButton::clicked, this, &FromTextDialog::readTextFile);
    return box;
}

QWidget* FromTextDialog::buildCut() {
    auto* box = new QWidget(this);
    auto* row = makeLayout<QHBoxLayout>(box, {0, 0, 0, 0}, 8);
    m_cut = named("liveCut", new ChoiceBox(box));
    m_cut->setAccessibleName(tr("Cut"));
    for (const auto& [text, data] : {std::pair{tr("behind the text: policies do not see the question"), "default"},
                                     {tr("behind the question: policies see it"), "question"},
                                     {tr("before the last tokens:"), "last:"},
                                     {tr("at token:"), ""}})
        m_cut->addItem(text, data);
    m_cutNumber = named("liveCutNumber", new QSpinBox(box));
    m_cutNumber->setRange(1, 1'000'000);
    m_cutNumber->setValue(64);
    m_cutNumber->setAccessibleName(tr("Tokens"));
    const auto follow = [this] { m_cutNumber->setVisible(m_cut->currentIndex() > 1); };
    connect(m_cut, &QComboBox::currentIndexChanged, this, follow);
    follow();
    row->addWidget(m_cut, 1);
    row->addWidget(m_cutNumber);
    return box;
}

} // namespace kvscope
