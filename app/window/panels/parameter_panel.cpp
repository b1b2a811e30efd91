// Values are checked against the table here; an invalid one stays in its row with the reason.
#include "app/window/panels/parameter_panel.h"

#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/error.h"

#include <QRegularExpression>
#include <QVBoxLayout>

#include <algorithm>

namespace kvscope {

namespace {

constexpr std::size_t kFewRows = 8; // are found without a search

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

} // namespace

ParameterPanel::ParameterPanel(QWidget* parent)
    : QWidget(parent), m_search(new QLineEdit(this)), m_nothing(wrappedLabel({}, "quiet", this)),
      m_layout(new QVBoxLayout(this)) {
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(px(appearance().compact ? 0 : 2));
    m_search->setObjectName("parameterSearch");
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
        rebuild(tokens);
    }
    for (ParameterRow* row : m_rows) {
        row->setTokens(tokens);
        row->showValue(values, variant);
    }
    arrange();
}

/// Made in the order in which they stand, which is that of the Tab key.
void ParameterPanel::rebuild(std::int64_t tokens) {
    for (QWidget* old : findChildren<QWidget*>(QRegularExpression("parameter(Row|Fold)"), Qt::FindDirectChildrenOnly)) {
        m_layout->removeWidget(old);
        old->hide();
        old->deleteLater();
        old->setObjectName({});
    }
    m_rows.clear();
    m_search->clear();
    if (!m_table) return;
    std::vector<const ParameterSpec*> few;
    for (const ParameterSpec& spec : *m_table)
        if (spec.place > 0) few.push_back(&spec);
    std::ranges::sort(few, {}, &ParameterSpec::place);
    for (const ParameterSpec* spec : few) addRow(*spec, tokens);
    for (const Stage stage : {Stage::Features, Stage::Combine, Stage::Select}) {
        addFold(stage);
        for (const ParameterSpec& spec : *m_table)
            if (spec.place == 0 && spec.stage == stage) addRow(spec, tokens);
    }
}

void ParameterPanel::addFold(Stage stage) {
    Fold& fold = m_folds[static_cast<std::size_t>(stage)];
    fold.head = new QPushButton(this);
    fold.head->setObjectName("parameterFold");
    fold.head->setProperty("look", "fold");
    fold.head->setToolTip(wordsOf(stage).help);
    connect(fold.head, &QPushButton::clicked, this, [this, &fold] {
        fold.open = !fold.open;
        arrange();
    });
    m_layout->addWidget(fold.head);
}

void ParameterPanel::addRow(const ParameterSpec& spec, std::int64_t tokens) {
    auto* row = new ParameterRow(spec, tokens, this);
    row->setObjectName("parameterRow");
    connect(row, &ParameterRow::edited, this,
            [this, row](const QString& text, bool dragging) { tryEdit(row, text, dragging); });
    connect(row, &ParameterRow::editingEnded, this, &ParameterPanel::editingEnded);
    m_layout->addWidget(row);
    m_rows.push_back(row);
}

/// Shows what is found, or the few rows and those of open folds, and tells of each fold what is in it.
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
    } catch (const Error& error) {
        row->showError(fromUtf8(error.what()));
        return;
    }
    if (next == m_values) {
        row->showValue(m_values, m_variant);
        return;
    }
    emit edited(next, fromUtf8(row->spec().label), dragging);
}

ParameterRow* ParameterPanel::row(const std::string& id) const {
    const auto found = std::ranges::find_if(m_rows, [&](ParameterRow* row) { return row->id() == id; });
    return found == m_rows.end() ? nullptr : *found;
}

} // namespace kvscope
