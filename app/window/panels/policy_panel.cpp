// Everything is read from the policy's card: a new policy needs no line here.
#include "app/window/panels/policy_panel.h"

#include "app/study/pane_request.h"
#include "app/window/canvas/policy_menu.h"
#include "app/window/panels/fact_grid.h"
#include "app/window/panels/parameter_panel.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/elided_button.h"
#include "app/window/widgets/small_widgets.h"
#include "core/policies/policy.h"
#include "views/common/view_facts.h"

#include <QClipboard>
#include <QFileInfo>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QMenu>
#include <QVBoxLayout>

namespace kvscope {

PolicyPanel::PolicyPanel(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("panelBody");
    build();
    connect(&m_workbench, &Workbench::sessionChanged, this, &PolicyPanel::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, [this](int changed) {
        const Session& now = m_workbench.session();
        if (changed == now.activePane && std::size_t(changed) < now.panes.size() &&
            !now.panes[changed].recordedPath.empty())
            refresh(); // only its result names the policy of a recorded list
    });
    refresh();
}

void PolicyPanel::build() {
    auto* column = makeLayout<QVBoxLayout>(this, {10, 12, 14, 16}, 6);
    auto* head = innerLayout<QHBoxLayout>(column, {8, 0, 0, 0}, 8);
    m_badge = added(head, new LetterBadge(20, this));
    m_title = added(head, named("activePolicy", new ElidedLabel("policyTitle", Qt::ElideRight, this)));
    head->addStretch();
    m_more = added(head, iconButton("more", tr("More for this pane"), this));
    m_more->setPopupMode(QToolButton::InstantPopup);
    m_more->setMenu(new QMenu(m_more));
    fillMore();

    m_parameterBox = new QWidget(this);
    auto* box = makeLayout<QVBoxLayout>(m_parameterBox, {0, 4, 0, 0});
    auto* title = innerLayout<QHBoxLayout>(box, {8, 0, 0, 0}, 8);
    m_variant = added(title, named("variantChip", new ElidedPushButton(this)));
    m_variant->setProperty("chip", "plain");
    m_variant->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    m_variant->setMenu(new QMenu(m_variant));
    title->addStretch();
    m_resetAll = added(title, new QPushButton(tr("Reset all"), this));
    m_resetAll->setProperty("look", "link");
    m_parameters = added(box, new ParameterPanel(this));
    column->addWidget(m_parameterBox);
    connect(m_parameters, &ParameterPanel::edited, this,
            [this](const ParameterValues& values, const QString& label, bool dragging) {
                changeActive([&](SessionPane& pane) { pane.policy.values = values; }, label,
                             dragging ? "parameter " + label : QString());
            });
    connect(m_parameters, &ParameterPanel::editingEnded, this, [this] { m_workbench.endMerge(); });
    connect(m_resetAll, &QPushButton::clicked, this, [this] {
        changeActive(
            [](SessionPane& pane) {
                pane.policy.values = specOfVariant(pane.policy.policy, pane.policy.variant).values;
            },
            tr("Reset all"));
    });

    m_recorded = added(column, named("recordedFacts", new FactGrid(this)));
    m_recorded->setContentsMargins(px(8), px(4), 0, 0);
    column->addStretch();
}

void PolicyPanel::fillMore() {
    QMenu* menu = m_more->menu();
    menu->addAction(tr("Duplicate pane"), this, [this] {
        m_workbench.change([](Session& s) { addPane(s, SessionPane(s.panes[s.activePane])); }, tr("Duplicate pane"));
    });
    menu->addAction(tr("Copy specification"), this, [this] {
        const Session& session = m_workbench.session();
        if (session.panes.empty()) return;
        const SessionPane& pane = session.panes[static_cast<std::size_t>(session.activePane)];
        const bool isRecorded = !pane.recordedPath.empty(); // a list, which has a file and no specification
        QGuiApplication::clipboard()->setText(fromUtf8(isRecorded ? pane.recordedPath : pane.policy.text()));
    });
    menu->addSeparator();
    menu->addAction(tr("Remove pane"), this, [this] { removePane(m_workbench, m_workbench.session().activePane); });
}

void PolicyPanel::changeActive(const std::function<void(SessionPane&)>& edit, const QString& label,
                               const QString& mergeKey) {
    m_workbench.change(
        [&](Session& s) {
            if (!s.panes.empty() && s.panes[s.activePane].recordedPath.empty()) edit(s.panes[s.activePane]);
        },
        label, mergeKey);
}

void PolicyPanel::showRecorded(const std::string& path, const PaneData& pane) {
    FactGrid::Facts facts = {{tr("List"), QFileInfo(fromUtf8(path)).fileName()}};
    if (pane.result && pane.result->request.recorded) {
        for (const auto& [name, value] : factsOfList(pane.result->request))
            facts.emplace_back(fromUtf8(name), fromUtf8(value));
        const Budget asked = effectiveBudget(m_workbench.session(), m_workbench.session().activePane);
        if (hasOwnBudget(*pane.result, asked))
            facts.emplace_back(tr("Budget of the session"), fromUtf8(budgetWords(asked)) + tr(": not the list's"));
    }
    m_recorded->show(facts);
}

void PolicyPanel::refresh() {
    const Session& session = m_workbench.session();
    const bool any = !session.panes.empty();
    for (QWidget* widget : {static_cast<QWidget*>(m_badge), static_cast<QWidget*>(m_more)}) widget->setVisible(any);
    if (!any) {
        m_title->setFullText(tr("No pane"));
        m_parameterBox->setVisible(false);
        m_recorded->setVisible(false);
        return;
    }
    const PaneData pane = m_workbench.viewInput().panes[session.activePane];
    const SessionPane spec = session.panes[session.activePane]; // a copy: hiding a field may change the session
    const bool recorded = !spec.recordedPath.empty();
    m_badge->show(pane.letter, pane.policyId);
    m_title->setFullText(fromUtf8(pane.policyName));
    m_variant->setVisible(!pane.variant.empty());
    m_parameterBox->setVisible(!recorded);
    m_recorded->setVisible(recorded);
    if (recorded) return showRecorded(spec.recordedPath, pane);
    const PolicyCard& card = policyById(spec.policy.policy).card();
    m_variant->setText(fromUtf8(pane.variant) + " ▾");
    m_variant->setToolTip(fromUtf8(pane.variant) + "\n" +
                          tr("Variants: the same policy as the paper, the authors' code or a library has it"));
    fillVariantMenu(m_variant->menu(), spec.policy, [this](const PolicySpec& next) {
        changeActive([&](SessionPane& p) { p.policy = next; }, tr("Variant"));
    });
    const std::int64_t tokens = m_workbench.cut() ? m_workbench.cut()->token : 0;
    const ParameterValues variant = specOfVariant(spec.policy.policy, spec.policy.variant).values;
    const std::pair shown(session.activePane, session.panes.size());
    if (std::exchange(m_shown, shown) != shown) m_parameters->dropTyped();
    m_parameters->show(card.parameters, spec.policy.values, variant, tokens);
    m_resetAll->setEnabled(spec.policy.values != variant);
}

} // namespace kvscope
