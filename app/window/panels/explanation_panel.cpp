// The text is the policy's own .md file: it explains the same wherever it is shown.
#include "app/window/panels/explanation_panel.h"

#include "app/window/appearance.h"
#include "app/window/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QVBoxLayout>

namespace kvscope {

ExplanationPanel::ExplanationPanel(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("panelBody");
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(px(18), px(12), px(16), px(16));
    column->setSpacing(px(6));
    m_name = roleLabel({}, "policyTitle", this);
    m_name->setWordWrap(true);
    column->addWidget(m_name);
    m_paper = roleLabel({}, "quiet", this);
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
    refresh();
}

void ExplanationPanel::refresh() {
    const Session& session = m_workbench.session();
    const auto active = static_cast<std::size_t>(session.activePane);
    if (active >= session.panes.size() || !session.panes[active].recordedPath.empty()) {
        m_name->setText(session.panes.empty() ? tr("No pane") : tr("Recorded list"));
        m_paper->clear();
        m_text->setText(session.panes.empty() ? tr("Add a policy: its explanation stands here.")
                                              : tr("The kept tokens were read from a file; what chose them is written there."));
        return;
    }
    const PolicyCard& card = policyById(session.panes[active].policy.policy).card();
    m_name->setText(fromUtf8(card.name));
    m_paper->setText(fromUtf8(card.paper));
    QString text = fromUtf8(card.explanation);
    if (text.startsWith("# ")) // the panel has the name already
        text = text.mid(text.indexOf('\n') + 1).trimmed();
    if (m_text->text() != text)
        m_text->setText(text);
}

} // namespace kvscope
