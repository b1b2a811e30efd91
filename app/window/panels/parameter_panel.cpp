// Values are checked against the table here; an invalid one stays in its row with the reason.
#include "app/window/panels/parameter_panel.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "core/base/error.h"

#include <QVBoxLayout>

#include <algorithm>

namespace kvscope {

ParameterPanel::ParameterPanel(QWidget* parent) : QWidget(parent), m_layout(new QVBoxLayout(this)) {
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(px(appearance().compact ? 0 : 2));
}

void ParameterPanel::show(const std::shared_ptr<const ParameterTable>& table, const ParameterValues& values,
                          std::int64_t tokens) {
    m_values = values;
    if (table != m_table) {
        m_table = table;
        rebuild(tokens);
    }
    for (ParameterRow* row : m_rows) {
        row->setTokens(tokens);
        row->showValue(values);
    }
}

void ParameterPanel::rebuild(std::int64_t tokens) {
    for (ParameterRow* row : m_rows) {
        m_layout->removeWidget(row);
        row->hide();
        row->deleteLater();
    }
    m_rows.clear();
    if (!m_table) return;
    for (const ParameterSpec& spec : *m_table) {
        auto* row = new ParameterRow(spec, tokens, this);
        connect(row, &ParameterRow::edited, this,
                [this, row](const QString& text, bool dragging) { tryEdit(row, text, dragging); });
        connect(row, &ParameterRow::editingEnded, this, &ParameterPanel::editingEnded);
        m_layout->addWidget(row);
        m_rows.push_back(row);
    }
}

void ParameterPanel::tryEdit(ParameterRow* row, const QString& text, bool dragging) {
    ParameterValues next = m_values;
    try {
        next.setText(row->id(), text.toStdString());
    } catch (const Error& error) {
        row->showError(fromUtf8(error.what()));
        return;
    }
    const auto spec = std::ranges::find(*m_table, row->id(), &ParameterSpec::id);
    if (next == m_values) {
        row->showValue(m_values);
        return;
    }
    emit edited(next, fromUtf8(spec->label), dragging);
}

ParameterRow* ParameterPanel::row(const std::string& id) const {
    const auto found = std::ranges::find_if(m_rows, [&](ParameterRow* row) { return row->id() == id; });
    return found == m_rows.end() ? nullptr : *found;
}

} // namespace kvscope
