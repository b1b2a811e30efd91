// Values are checked against the table here; an invalid one stays in its row with the reason.
#include "app/window/panels/parameter_panel.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/choice_box.h"
#include "app/window/widgets/elided_button.h"
#include "app/window/widgets/name_value_line.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/error.h"

#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QRegularExpression>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::size_t kFewRows = 8; // so few rows need no search field

struct StageWords {
    QString name, help;
};

StageWords wordsOf(Stage stage) {
    switch (stage) {
    case Stage::Features: return {QObject::tr("Features"), QObject::tr("What is computed of keys, queries and values")};
    case Stage::Combine: return {QObject::tr("Score"), QObject::tr("How the features become one score a token")};
    case Stage::Select: break;
    }
    return {QObject::tr("Selection"), QObject::tr("Which tokens are kept by their scores")};
}

QString shortNumber(double value, ParameterKind kind) {
    return kind == ParameterKind::Integer ? QString::number(static_cast<qint64>(std::llround(value)))
                                          : QString::number(value, 'g', 4);
}

} // namespace

ParameterPanel::ParameterPanel(QWidget* parent)
    : QWidget(parent), m_search(named("parameterSearch", new ValueField(this))),
      m_nothing(wrappedLabel({}, "quiet", this)),
      m_layout(makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, appearance().compact ? 0 : 2)) {
    m_search->setPlaceholderText(tr("Find a parameter"));
    m_search->setAccessibleName(tr("Find a parameter"));
    m_search->setClearButtonEnabled(true);
    connect(m_search, &QLineEdit::textChanged, this, &ParameterPanel::arrange);
    auto* found = makeLayout<QVBoxLayout>(new QWidget(this), {9, 0, 0, 6}, 4);
    found->addWidget(m_search);
    found->addWidget(m_nothing);
    m_layout->addWidget(found->parentWidget());
}

void ParameterPanel::show(const std::shared_ptr<const ParameterTable>& table, const ParameterValues& values,
                          const ParameterValues& variant, std::int64_t tokens) {
    m_values = values;
    m_variant = variant;
    if (table != m_table) {
        m_table = table;
        rebuild();
    }
    for (ParameterRow* row : m_rows) {
        row->setTokens(tokens);
        row->showValue(values, variant);
    }
    arrange();
}

void ParameterPanel::rebuild() {
    dropTyped();
    for (QWidget* old : findChildren<QWidget*>(QRegularExpression("parameter(Row|Fold)"), Qt::FindDirectChildrenOnly)) {
        m_layout->removeWidget(old);
        discard(old);
        old->setObjectName({});
    }
    m_rows.clear();
    m_search->clear();
    if (!m_table) return;
    std::vector<const ParameterSpec*> few;
    for (const ParameterSpec& spec : *m_table)
        if (spec.place > 0) few.push_back(&spec);
    std::ranges::sort(few, {}, &ParameterSpec::place);
    for (const ParameterSpec* spec : few) addRow(*spec);
    for (const Stage stage : {Stage::Features, Stage::Combine, Stage::Select}) {
        addFold(stage);
        for (const ParameterSpec& spec : *m_table)
            if (spec.place == 0 && spec.stage == stage) addRow(spec);
    }
    QWidget* last = m_search;
    for (int i = 1; i < m_layout->count(); ++i) last = tabAfter(last, m_layout->itemAt(i)->widget()); // 0: the search
}

void ParameterPanel::addFold(Stage stage) {
    Fold& fold = m_folds[static_cast<std::size_t>(stage)];
    fold.head = new ElidedPushButton(this);
    fold.head->setObjectName("parameterFold");
    fold.head->setProperty("look", "fold");
    fold.head->setToolTip(wordsOf(stage).help);
    connect(fold.head, &QPushButton::clicked, this, [this, &fold] {
        fold.open = !fold.open;
        arrange();
    });
    m_layout->addWidget(fold.head);
}

void ParameterPanel::addRow(const ParameterSpec& spec) {
    auto* row = added(m_layout, named("parameterRow", new ParameterRow(spec, this)));
    for (const auto wanted : {&ParameterRow::edited, &ParameterRow::resetWanted})
        connect(row, wanted, this, [this, row](const QString& text, bool dragging) { tryEdit(row, text, dragging); });
    connect(row, &ParameterRow::editingEnded, this, &ParameterPanel::editingEnded);
    m_rows.push_back(row);
}

/// Shows the rows that match the search; without a search, the rows with a place and those of open folds. The head of a
/// fold tells how many rows it has and how many of them differ.
void ParameterPanel::arrange() {
    const QString wanted = m_search->text().trimmed();
    std::array<int, 3> rows{}, differing{};
    bool any = false;
    for (ParameterRow* row : m_rows) {
        const bool found = wanted.isEmpty() || row->isAbout(wanted), first = row->spec().place > 0;
        const auto stage = static_cast<std::size_t>(row->spec().stage);
        row->setVisible(found && (first || !wanted.isEmpty() || m_folds[stage].open));
        any = any || found;
        if (first || !found) continue;
        ++rows[stage];
        differing[stage] += row->differs() ? 1 : 0;
    }
    for (std::size_t stage = 0; stage < m_folds.size() && m_folds[stage].head; ++stage) {
        const bool open = m_folds[stage].open || !wanted.isEmpty();
        QString text =
            QString("%1  %2  %3").arg(open ? "▾" : "▸", wordsOf(static_cast<Stage>(stage)).name).arg(rows[stage]);
        if (differing[stage] > 0)
            text += "  · " + tr(differing[stage] == 1 ? "%1 differs" : "%1 differ").arg(differing[stage]);
        m_folds[stage].head->setText(text);
        m_folds[stage].head->setVisible(rows[stage] > 0);
        m_folds[stage].head->setEnabled(wanted.isEmpty());
    }
    m_search->setVisible(m_rows.size() > kFewRows);
    m_nothing->setText(tr("No parameter of this policy has “%1” in its name.").arg(wanted));
    m_nothing->setVisible(!any && !wanted.isEmpty());
}

void ParameterPanel::tryEdit(ParameterRow* row, const QString& text, bool dragging) {
    ParameterValues next = m_values;
    try {
        next.setText(row->id(), text.toStdString());
    } catch (const Error& error) { // the user sees the label, not the id that the error names
        row->showError(tr("'%1' is not a value of %2. %3")
                           .arg(text, fromUtf8(labelAndSymbol(row->spec())), fromUtf8(error.parts().remedy)));
        return;
    }
    if (next == m_values) {
        row->showValue(m_values, m_variant);
        return;
    }
    emit edited(next, fromUtf8(row->spec().label), dragging);
}

void ParameterPanel::dropTyped() {
    for (ParameterRow* row : m_rows) row->dropTyped();
}

ParameterRow* ParameterPanel::row(const std::string& id) const {
    const auto found = std::ranges::find_if(m_rows, [&](ParameterRow* row) { return row->id() == id; });
    return found == m_rows.end() ? nullptr : *found;
}

ParameterRow::ParameterRow(const ParameterSpec& spec, QWidget* parent) : QWidget(parent), m_spec(spec) {
    auto* grid = makeLayout<QGridLayout>(this, {0, 0, 0, appearance().compact ? 2 : 6});
    grid->setHorizontalSpacing(px(6));
    grid->setVerticalSpacing(0);
    grid->setColumnStretch(1, 1);
    m_changedBar = added(grid, new QFrame(this), 0, 0);
    m_changedBar->setFixedSize(px(3), px(16));
    m_reset = iconButton("reset", tr("Reset %1 to the variant's value").arg(fromUtf8(spec.label)), this);
    connect(m_reset, &QToolButton::clicked, this, [this] {
        emit resetWanted(m_reset->property("variant").toString(), false);
        emit editingEnded();
    });
    grid->addWidget(m_reset, 0, 3);
    if (spec.kind == ParameterKind::Choice)
        buildChoice();
    else if (spec.kind == ParameterKind::Flag)
        buildFlag();
    else if (spec.kind == ParameterKind::Text)
        buildText();
    else
        buildNumber();
    m_message = added(grid, wrappedLabel({}, "error", this), 2, 1, 1, 3);
    m_message->setVisible(false);
    setToolTip(helpText());
}

QString ParameterRow::helpText() const {
    QString text = "<p style='white-space:pre-wrap'><b>" + fromUtf8(m_spec.label).toHtmlEscaped() + "</b> <code>" +
                   fromUtf8(m_spec.id).toHtmlEscaped() + "</code><br>" + fromUtf8(m_spec.help).toHtmlEscaped();
    if (m_spec.kind == ParameterKind::Real || m_spec.kind == ParameterKind::Integer)
        text += "<br>" + tr("Range %1 to %2, default %3.")
                             .arg(shortNumber(m_spec.min, m_spec.kind), shortNumber(m_spec.max, m_spec.kind),
                                  shortNumber(m_spec.defaultValue, m_spec.kind));
    for (const ParameterChoice& choice : m_spec.choices)
        if (!choice.help.empty())
            text +=
                "<br><b>" + fromUtf8(choice.label).toHtmlEscaped() + "</b>: " + fromUtf8(choice.help).toHtmlEscaped();
    if (!m_spec.source.empty()) text += "<br><i>" + fromUtf8(m_spec.source).toHtmlEscaped() + "</i>";
    return text + "</p>";
}

/// Label and symbol; long ones wrap in a narrow panel.
QLabel* ParameterRow::nameLabel() {
    QString name = fromUtf8(m_spec.label).toHtmlEscaped();
    if (!m_spec.symbol.empty() && m_spec.symbol != m_spec.label)
        name += QString("&nbsp;<i style='color:%1; font-weight:400'>%2</i>") // never alone on a line
                    .arg(qColor(chrome().text3).name(), fromUtf8(m_spec.symbol).toHtmlEscaped())
                    .replace(QRegularExpression("_(\\w+)"), "<sub>\\1</sub>");
    QLabel* label = wrappedLabel(name, "label", this);
    label->setTextFormat(Qt::RichText);
    return label;
}

void ParameterRow::addLine(QWidget* control) {
    static_cast<QGridLayout*>(layout())->addLayout(new NameValueLine(nameLabel(), control, px(6)), 0, 1, 1, 2);
}

void ParameterRow::buildNumber() {
    auto* grid = static_cast<QGridLayout*>(layout());
    auto* fieldBox = makeLayout<QHBoxLayout>(new QWidget(this), {}, 4);
    m_field = added(fieldBox, numberField(74, fromUtf8(m_spec.label), this));
    if (const std::string unit = unitBeside(m_spec); !unit.empty())
        fieldBox->addWidget(roleLabel(unit == "tokens" ? "tok" : fromUtf8(unit), "quiet", this));
    addLine(fieldBox->parentWidget());
    connect(m_field, &QLineEdit::editingFinished, this, [this] {
        try {
            if (m_field->isModified()) proposeTyped(withoutThousands(m_field->text()));
        } catch (const Error& error) {
            m_field->setModified(false);
            showError(fromUtf8(error.what()));
        }
    });

    m_slider = added(grid, new ValueSlider(this), 1, 1, 1, 2);
    m_slider->setAccessibleName(fromUtf8(m_spec.label));
    connect(m_slider, &ValueSlider::edited, this, [this](double value) {
        emit edited(shortNumber(value, m_spec.kind), true); // until the slider says that the step has ended
    });
    connect(m_slider, &ValueSlider::released, this, &ParameterRow::editingEnded);
    connect(m_slider, &ValueSlider::resetRequested, this, [this] { // one undo step with the first click
        if (differs()) emit resetWanted(m_reset->property("variant").toString(), true);
    });
}

// A text field takes the whole width below its name, because formulas and paths are long.
void ParameterRow::buildText() {
    auto* grid = static_cast<QGridLayout*>(layout());
    grid->addWidget(nameLabel(), 0, 1, 1, 2);
    m_field = added(grid, new ValueField(this), 1, 1, 1, 3);
    m_field->setAccessibleName(fromUtf8(m_spec.label));
    connect(m_field, &QLineEdit::editingFinished, this, [this] { proposeTyped(m_field->text().trimmed()); });
}

void ParameterRow::proposeTyped(const QString& text) {
    if (!m_field->isModified()) return;
    m_field->setModified(false);
    emit edited(text, false);
    emit editingEnded();
}

void ParameterRow::buildChoice() {
    m_choices = new ChoiceBox(this);
    m_choices->setAccessibleName(fromUtf8(m_spec.label));
    m_choices->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_choices->setMinimumWidth(px(84));
    m_choices->setMaximumWidth(px(150));
    m_choices->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    for (const ParameterChoice& choice : m_spec.choices) {
        m_choices->addItem(fromUtf8(choice.label), fromUtf8(choice.id));
        m_choices->setItemData(m_choices->count() - 1, fromUtf8(choice.help), Qt::ToolTipRole);
    }
    addLine(m_choices);
    connect(m_choices, &QComboBox::activated, this, [this](int index) {
        emit edited(m_choices->itemData(index).toString(), false);
        emit editingEnded();
    });
}

void ParameterRow::buildFlag() {
    auto* grid = static_cast<QGridLayout*>(layout());
    m_flag = added(grid, new ElidedCheckBox(fromUtf8(m_spec.label), this), 0, 1, 1, 2);
    connect(m_flag, &QCheckBox::clicked, this, [this](bool on) {
        emit edited(on ? "true" : "false", false);
        emit editingEnded();
    });
}

void ParameterRow::setTokens(std::int64_t tokens) {
    if (m_slider) m_slider->setScale(SliderScale::of(m_spec, tokens));
}

bool ParameterRow::differs() const { return m_reset->isEnabled(); }

bool ParameterRow::isAbout(const QString& text) const {
    const auto has = [&](const std::string& words) { return fromUtf8(words).contains(text, Qt::CaseInsensitive); };
    return has(m_spec.label) || has(m_spec.id) || (!m_spec.symbol.empty() && has(m_spec.symbol)) ||
           std::ranges::any_of(m_spec.choices, has, &ParameterChoice::label);
}

void ParameterRow::showValue(const ParameterValues& values, const ParameterValues& variant) {
    const QString text = fromUtf8(values.text(m_spec.id)), reset = fromUtf8(variant.text(m_spec.id));
    m_reset->setProperty("variant", reset);
    const bool changed = text != reset;
    m_reset->setEnabled(changed);
    if (m_slider) m_slider->setDefault(variant.real(m_spec.id));
    const QString bar = changed ? QString("background: %1; border-radius: 1px;").arg(qColor(chrome().ink).name())
                                : QString("background: transparent;");
    if (m_changedBar->styleSheet() != bar) m_changedBar->setStyleSheet(bar); // which repaints the row
    if (m_field && !(m_field->hasFocus() && m_field->isModified())) {
        m_field->setText(text);
        setWrong(m_field, false);
    }
    if (m_slider && !m_slider->isSliderDown()) m_slider->showValue(values.real(m_spec.id));
    if (m_choices) {
        m_choices->setCurrentIndex(m_choices->findData(text));
        m_choices->setToolTip(m_choices->currentText());
    }
    if (m_flag) m_flag->setChecked(values.flag(m_spec.id));
    m_message->setVisible(false);
}

void ParameterRow::dropTyped() {
    if (m_field) m_field->setModified(false);
}

void ParameterRow::showError(const QString& message) {
    if (m_field) setWrong(m_field, true);
    m_message->setText(message);
    m_message->setVisible(true);
}

QString ParameterRow::errorMessage() const { return m_message->isVisibleTo(this) ? m_message->text() : QString(); }

} // namespace kvscope
