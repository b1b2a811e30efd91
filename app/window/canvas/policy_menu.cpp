// Menus of policies from the registry: a new policy needs no line here.
#include "app/window/canvas/policy_menu.h"

#include "app/study/pane_request.h"
#include "app/window/style/number_text.h"
#include "app/workbench/workbench.h"
#include "core/policies/policy.h"

#include <QMenu>

#include <utility>

namespace kvscope {

void fillVariantMenu(QMenu* menu, const PolicySpec& current, const std::function<void(const PolicySpec&)>& chosen) {
    menu->clear();
    menu->setToolTipsVisible(true);
    const PolicyCard& card = policyById(current.policy).card();
    const std::string active =
        current.variant.empty() && !card.variants.empty() ? card.variants.front().id : current.variant;
    for (const PolicyVariant& variant : card.variants) {
        QAction* action = menu->addAction(fromUtf8(variant.label.empty() ? variant.id : variant.label));
        action->setCheckable(true);
        action->setChecked(variant.id == active);
        action->setToolTip(fromUtf8(variant.summary));
        QObject::connect(action, &QAction::triggered, menu,
                         [chosen, policy = card.id, id = variant.id, budget = current.budget] {
                             PolicySpec next = specOfVariant(policy, id);
                             next.budget = budget;
                             chosen(next);
                         });
    }
}

void removePane(Workbench& workbench, int pane) {
    if (std::cmp_less(pane, workbench.session().panes.size()))
        workbench.change([pane](Session& s) { removePane(s, static_cast<std::size_t>(pane)); },
                         QObject::tr("Remove pane"));
}

void fillPolicyMenu(QMenu* menu, Workbench& workbench) {
    menu->setToolTipsVisible(true);
    const auto add = [menu, &workbench](QMenu* to, const std::string& name, const PolicySpec& spec) {
        return to->addAction(fromUtf8(name), menu, [&workbench, spec] {
            workbench.change([&](Session& s) { addPane(s, {spec, {}, {}}); }, QObject::tr("Add pane"));
        });
    };
    for (const Policy* policy : allPolicies()) {
        const PolicyCard& card = policy->card();
        if (card.variants.size() < 2) {
            add(menu, card.name, specOfVariant(card.id, {}))->setToolTip(fromUtf8(card.summary));
            continue;
        }
        QMenu* variants = menu->addMenu(fromUtf8(card.name));
        variants->setToolTip(fromUtf8(card.summary));
        for (const PolicyVariant& variant : card.variants)
            add(variants, variant.label.empty() ? variant.id : variant.label, specOfVariant(card.id, variant.id));
    }
    QMenu* scores = menu->addMenu(QObject::tr("Scores beside the capture"));
    scores->setToolTip(QObject::tr("What kvscope-scores wrote: scores of kvpress's presses, with a budget of yours"));
    QObject::connect(menu, &QMenu::aboutToShow, scores, [scores, add, &workbench] {
        scores->clear();
        if (workbench.capture())
            for (const auto& [name, spec] : policiesOfScores(workbench.capture()->info().path)) add(scores, name, spec);
        scores->menuAction()->setVisible(!scores->isEmpty());
    });
}

} // namespace kvscope
