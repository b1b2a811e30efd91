// The rows of the parameter panel with the few that a lesson names. The budget is a row, too: percent kept.
#include "app/window/panels/lesson_parameters.h"

#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/error.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/policy.h"
#include "views/common/view_facts.h"

#include <QVBoxLayout>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

namespace {

constexpr const char* kBudget = "budget";

const std::shared_ptr<const ParameterTable>& budgetTable() {
    static const auto table = [] {
        ParameterSpec row =
            realRow(kBudget, "Budget", "", {0.1, 100, 25, 0.1}, Stage::Features, "Of the tokens before the cut.", "");
        row.unit = "% kept";
        return std::make_shared<const ParameterTable>(ParameterTable{row});
    }();
    return table;
}

} // namespace

LessonParameters::LessonParameters(Workbench& workbench, const Lesson& lesson, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_names(lesson.parameters), m_start(lesson.start) {
    setObjectName("lessonParameters");
    auto* column = makeLayout<QVBoxLayout>(this, {0, 6, 0, 0}, 2);
    column->addWidget(roleLabel(tr("TRY"), "section", this));
    connect(&m_workbench, &Workbench::sessionChanged, this, &LessonParameters::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, [this](int pane) {
        const Session& session = m_workbench.session();
        if (pane == session.activePane && std::size_t(pane) < session.panes.size() &&
            effectiveBudget(session, std::size_t(pane)).unit == Budget::Unit::Quality)
            refresh();
    });
    refresh();
}

std::optional<double> LessonParameters::percentOf(const Budget& budget) const {
    const std::int64_t tokens = m_workbench.cut() ? m_workbench.cut()->token : 0;
    double fraction = budget.value;
    if (budget.unit == Budget::Unit::Tokens) fraction /= static_cast<double>(std::max<std::int64_t>(1, tokens));
    if (budget.unit == Budget::Unit::Quality) { // only the result tells what it keeps
        const ViewInput input = m_workbench.viewInput();
        const PaneData* pane = activePane(input);
        if (!pane || !pane->result || !pane->result->calibrated || pane->outdated) return std::nullopt;
        fraction = pane->result->calibrated->retention;
    }
    return std::clamp(std::round(1000 * fraction) / 10, 0.1, 100.0);
}

Budget LessonParameters::startBudget() const {
    const auto pane = static_cast<std::size_t>(m_start.activePane);
    return pane < m_start.panes.size() ? effectiveBudget(m_start, pane) : m_start.budget;
}

/// Until a quality is computed the row shows the last known percentage, or is hidden if there is none.
void LessonParameters::showBudget(ParameterRow& row) {
    const Session& session = m_workbench.session();
    const Budget now = effectiveBudget(session, static_cast<std::size_t>(session.activePane)), start = startBudget();
    const std::optional<double> known = percentOf(now);
    if (start.unit != Budget::Unit::Quality)
        m_startPercent = percentOf(start);
    else if (known && now == start)
        m_startPercent = known;
    if (known)
        m_percent = known;
    else if (now == start && m_startPercent)
        m_percent = m_startPercent;
    row.setVisible(m_percent.has_value());
    if (!m_percent) return;
    ParameterValues values(budgetTable()), before(budgetTable());
    values.set(kBudget, *m_percent);
    before.set(kBudget, now == start ? *m_percent : m_startPercent.value_or(100));
    row.showValue(values, before);
}

const PolicySpec* LessonParameters::activePolicy() const {
    const Session& session = m_workbench.session();
    const auto active = static_cast<std::size_t>(session.activePane);
    const bool runs = active < session.panes.size() && session.panes[active].recordedPath.empty();
    return runs ? &session.panes[active].policy : nullptr;
}

void LessonParameters::refresh() {
    setVisible(activePolicy() && !m_names.empty());
    if (!activePolicy()) return;
    const PolicySpec policy = *activePolicy(); // a copy: hiding a row may apply its typed value to the session
    const std::int64_t tokens = m_workbench.cut() ? m_workbench.cut()->token : 0;
    const auto& table = policyById(policy.policy).card().parameters;
    if (table.get() != m_table) {
        m_table = table.get();
        rebuild(*table);
        setVisible(!m_rows.empty());
    }
    const int pane = m_workbench.session().activePane;
    const bool isOther = std::exchange(m_pane, pane) != pane;
    const ParameterValues variant = specOfVariant(policy.policy, policy.variant).values;
    for (ParameterRow* row : m_rows) {
        row->setTokens(tokens);
        if (isOther) row->dropTyped();
        if (row->id() == kBudget)
            showBudget(*row);
        else
            row->showValue(policy.values, variant);
    }
}

void LessonParameters::rebuild(const ParameterTable& table) {
    for (ParameterRow* row : m_rows) {
        row->dropTyped();
        discard(row);
    }
    m_rows.clear();
    for (const std::string& name : m_names) {
        const ParameterTable& from = name == kBudget ? *budgetTable() : table;
        const auto spec = std::ranges::find(from, name, &ParameterSpec::id);
        if (spec == from.end()) continue;
        auto* row = new ParameterRow(*spec, this);
        connect(row, &ParameterRow::edited, this,
                [this, spec = *spec](const QString& text, bool dragging) { edit(spec, text, dragging); });
        connect(row, &ParameterRow::resetWanted, this,
                [this, spec = *spec](const QString& text, bool dragging) { reset(spec, text, dragging); });
        connect(row, &ParameterRow::editingEnded, this, [this] { m_workbench.endMerge(); });
        layout()->addWidget(row);
        m_rows.push_back(row);
    }
}

/// Resets to the start's budget itself: the percentage that a quality keeps would be another budget.
void LessonParameters::reset(const ParameterSpec& spec, const QString& text, bool dragging) {
    if (spec.id != kBudget) return edit(spec, text, dragging);
    const QString label = fromUtf8(spec.label);
    m_workbench.change([this](Session& s) { setBudget(s, startBudget()); }, label,
                       dragging ? "parameter " + label : QString());
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
        if (!activePolicy()) return; // the row was hidden while the user typed in it
        ParameterValues values = activePolicy()->values;
        values.setText(spec.id, text.toStdString());
        m_workbench.change([&](Session& s) { s.panes[static_cast<std::size_t>(s.activePane)].policy.values = values; },
                           label, merge);
    } catch (const Error& error) {
        if (row != m_rows.end()) (*row)->showError(fromUtf8(error.what()));
    }
}

} // namespace kvscope
