// The text is the policy's own .md file: it explains the same wherever it is shown.
#include "app/window/panels/explanation_panel.h"

#include "app/session/step_driver.h"
#include "app/window/appearance.h"
#include "app/window/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "views/told_policy.h"

#include <QVBoxLayout>

namespace kvscope {

ExplanationPanel::ExplanationPanel(Workbench& workbench, StepDriver& steps, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_steps(steps) {
    setObjectName("panelBody");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(px(18), px(12), px(16), px(16));
    column->setSpacing(px(6));
    m_name = roleLabel({}, "policyTitle", this);
    m_name->setObjectName("explanationName");
    m_name->setWordWrap(true);
    column->addWidget(m_name);
    m_paper = roleLabel({}, "quiet", this);
    m_paper->setObjectName("explanationPaper");
    m_paper->setWordWrap(true);
    column->addWidget(m_paper);
    m_text = new QLabel(this);
    m_text->setObjectName("explanation");
    m_text->setTextFormat(Qt::MarkdownText);
    m_text->setWordWrap(true);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    column->addWidget(m_text);
    column->addStretch();
    connect(&m_workbench, &Workbench::sessionChanged, this, &ExplanationPanel::refresh);
    connect(&m_steps, &StepDriver::changed, this, &ExplanationPanel::refresh);
    refresh();
}

std::string ExplanationPanel::taughtPolicy() const {
    const View* told = m_workbench.session().layout == WindowLayout::Teach ? m_steps.view() : nullptr;
    const auto* own = dynamic_cast<const ToldPolicyView*>(told);
    return own ? own->toldPolicy(m_workbench.viewInput(*told)) : std::string();
}

void ExplanationPanel::show(const PolicyCard& card, const QString& where) {
    m_name->setText(fromUtf8(card.name));
    m_paper->setText(fromUtf8(card.paper) + where);
    QString text = fromUtf8(card.explanation);
    if (text.startsWith("# ")) // the panel has the name already
        text = text.mid(text.indexOf('\n') + 1).trimmed();
    if (m_text->text() != text)
        m_text->setText(text);
}

void ExplanationPanel::refresh() {
    if (const std::string told = taughtPolicy(); !told.empty())
        return show(policyById(told).card(), tr(". Told by: %1").arg(fromUtf8(m_steps.view()->card().name)));
    const Session& session = m_workbench.session();
    const auto active = static_cast<std::size_t>(session.activePane);
    if (active >= session.panes.size() || !session.panes[active].recordedPath.empty()) {
        m_name->setText(session.panes.empty() ? tr("No pane") : tr("Recorded list"));
        m_paper->clear();
        m_text->setText(session.panes.empty() ? tr("Add a policy: its explanation stands here.")
                                              : tr("The kept tokens were read from a file; what chose them is written there."));
        return;
    }
    show(policyById(session.panes[active].policy.policy).card(), {});
}

} // namespace kvscope
