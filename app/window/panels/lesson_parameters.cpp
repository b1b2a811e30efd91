// The rows of the parameter panel with the few that a lesson names. The budget is a row, too: percent kept.
#include "app/window/panels/lesson_parameters.h"

#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/error.h"
#include "core/policies/policy.h"

#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr const char* kBudget = "budget";

const std::shared_ptr<const ParameterTable>& budgetTable() {
    static const auto table = std::make_shared<const ParameterTable>(ParameterTable{{.id = kBudget,
                                                                                     .label = "Budget",
                                                                                     .unit = "% kept",
                                                                                     .help = "Of the tokens before the "
                                                                                             "cut.",
                                                                                     .min = 0.1,
                                                                                     .max = 100,
                                                                                     .defaultValue = 25,
                                                                                     .step = 0.1}});
    return table;
}

} // namespace

LessonParameters::LessonParameters(Workbench& workbench, const Lesson& lesson, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_names(lesson.parameters), m_start(lesson.start) {
    setObjectName("lessonParameters");
    auto* column = makeLayout<QVBoxLayout>(this, {0, 6, 0, 0}, 2);
    column->addWidget(roleLabel(tr("TRY"), "section", this));
    connect(&m_workbench, &Workbench::sessionChanged, this, &LessonParameters::refresh);
    refresh();
}

ParameterValues LessonParameters::budgetValues(const Session& session) const {
    const std::int64_t tokens = m_workbench.cut() ? m_workbench.cut()->token : 0;
    const Budget budget = effectiveBudget(session, static_cast<std::size_t>(session.activePane));
    ParameterValues values(budgetTable());
    const double fraction = budget.unit == Budget::Unit::Tokens
                                ? budget.value / static_cast<double>(std::max<std::int64_t>(1, tokens))
                                : budget.value;
    values.set(kBudget, std::clamp(std::round(1000 * fraction) / 10, 0.1, 100.0));
    return values;
}

void LessonParameters::refresh() {
    const Session& session = m_workbench.session();
    const auto active = static_cast<std::size_t>(session.activePane);
    const bool runs = active < session.panes.size() && session.panes[active].recordedPath.empty();
    setVisible(runs && !m_names.empty());
    if (!runs) return;
    const PolicySpec& policy = session.panes[active].policy;
    const std::int64_t tokens = m_workbench.cut() ? m_workbench.cut()->token : 0;
    const auto& table = policyById(policy.policy).card().parameters;
    if (table.get() != m_table) {
        m_table = table.get();
        rebuild(*table, tokens);
        setVisible(!m_rows.empty());
    }
    const ParameterValues variant = specOfVariant(policy.policy, policy.variant).values;
    for (ParameterRow* row : m_rows) {
        if (row->id() == kBudget)
            row->showValue(budgetValues(session), budgetValues(m_start));
        else
            row->showValue(policy.values, variant);
    }
}

void LessonParameters::rebuild(const ParameterTable& table, std::int64_t tokens) {
    for (ParameterRow* row : m_rows) {
        row->hide();
        row->deleteLater();
    }
    m_rows.clear();
    for (const std::string& name : m_names) {
        const ParameterTable& from = name == kBudget ? *budgetTable() : table;
        const auto spec = std::ranges::find(from, name, &ParameterSpec::id);
        if (spec == from.end()) continue;
        auto* row = new ParameterRow(*spec, tokens, this);
        connect(row, &ParameterRow::edited, this,
                [this, spec = *spec](const QString& text, bool dragging) { edit(spec, text, dragging); });
        connect(row, &ParameterRow::editingEnded, this, [this] { m_workbench.endMerge(); });
        layout()->addWidget(row);
        m_rows.push_back(row);
    }
}

void LessonParameters::edit(const ParameterSpec& spec, const QString& text, bool dragging) {
    const auto row = std::ranges::find(m_rows, spec.id, &ParameterRow::id);
    const QString label = fromUtf8(spec.label), merge = dragging ? "parameter " + label : QString();
    try {
        if (spec.id == kBudget) {
            ParameterValues values(budgetTable());
            values.setText(kBudget, text.toStdString());
            const Budget budget{Budget::Unit::Fraction, values.real(kBudget) / 100};
            return m_workbench.change([&](Session& s) { setBudget(s, budget); }, label, merge);
        }
        const Session& session = m_workbench.session();
        ParameterValues values = session.panes[static_cast<std::size_t>(session.activePane)].policy.values;
        values.setText(spec.id, text.toStdString());
        m_workbench.change([&](Session& s) { s.panes[static_cast<std::size_t>(s.activePane)].policy.values = values; },
                           label, merge);
    } catch (const Error& error) {
        if (row != m_rows.end()) (*row)->showError(fromUtf8(error.what()));
    }
}

} // namespace kvscope
