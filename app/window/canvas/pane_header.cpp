// The four numbers for comparing panes have the same place in every header.
#include "app/window/canvas/pane_header.h"

#include "app/study/pane_request.h"
#include "app/window/canvas/policy_menu.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"
#include "core/run/calibrated_budget.h"
#include "core/run/head_means.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <QHBoxLayout>
#include <QMenu>
#include <QPainter>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>
#include <vector>

namespace kvscope {

PaneHeader::PaneHeader(Workbench& workbench, int pane, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_pane(pane) {
    setObjectName("dockHeader");
    setAttribute(Qt::WA_StyledBackground);
    setFixedHeight(px(54));
    build();
    connect(&m_workbench, &Workbench::sessionChanged, this, &PaneHeader::refresh);
    connect(&m_workbench, &Workbench::paneChanged, this, [this](int changed) {
        const auto& panes = m_workbench.session().panes;
        const auto pane = static_cast<std::size_t>(m_pane);
        if (changed == m_pane && pane < panes.size() && !panes[pane].recordedPath.empty())
            refresh(); // only its result names the policy of a recorded list
        else if (changed == m_pane)
            refreshMetrics();
    });
    connect(&m_workbench, &Workbench::dataChanged, this, &PaneHeader::refreshMetrics);
    refresh();
}

void PaneHeader::build() {
    auto* column = makeLayout<QVBoxLayout>(this, {10, 5, 4, 4}, 2);
    QHBoxLayout* title = m_title = innerLayout<QHBoxLayout>(column, {}, 4);
    m_badge = added(title, new LetterBadge(18, this));
    m_name = added(title, new ElidedLabel("title", Qt::ElideRight, this));
    m_variant = added(title, chipButton({}, "plain", this));
    auto* variants = new QMenu(m_variant);
    m_variant->setMenu(variants);
    connect(variants, &QMenu::aboutToShow, this, &PaneHeader::fillVariants);
    m_realised = added(title, chipButton({}, "warning", this));
    m_realised->setFocusPolicy(Qt::NoFocus);
    title->addStretch();
    m_export = iconButton("export", tr("Export this pane"), this);
    auto* more = iconButton("more", tr("Settings, data and help of this view"), this);
    m_maximise = iconButton("maximise", tr("Give this pane the whole window, or all places back (M)"), this);
    m_maximise->setObjectName("maximisePane");
    auto* close = iconButton("close", tr("Remove this pane"), this);
    for (QToolButton* button : {m_export, more, m_maximise, close}) title->addWidget(button);
    connect(more, &QToolButton::clicked, this,
            [this, more] { emit menuWanted(more->mapToGlobal(QPoint(0, more->height()))); });
    auto* metrics = innerLayout<QHBoxLayout>(column, {}, 4);
    const auto add = [&](const QString& name, int weight, const QString& widest, QLabel** nameLabel) {
        QLabel* label = added(metrics, roleLabel(name, "quiet", this));
        auto* value = added(metrics, new LiveNumber(12, weight, this, m_workbench.clock()));
        value->reserve(widest);
        metrics->addSpacing(px(5));
        *nameLabel = label;
        return value;
    };
    m_error = named("paneError", add(tr("error"), QFont::Bold, errorText(8e-8), &m_errorName));
    m_mass = add(tr("mass"), QFont::Normal, percentText(1), &m_massName);
    m_kept = named("paneKept", add(tr("kept"), QFont::Normal, countText(1000), &m_keptName));
    m_hitsName = added(metrics, named("paneHitsName", new ElidedLabel("quiet", Qt::ElideRight, this)));
    m_hitsName->setMaximumWidth(px(140)); // it may be a sentence that was searched for
    m_hits = named("paneHits", added(metrics, new LiveNumber(12, QFont::DemiBold, this, m_workbench.clock())));
    metrics->addStretch();
    connect(m_export, &QToolButton::clicked, this, &PaneHeader::exportWanted);
    connect(m_maximise, &QToolButton::clicked, this, &PaneHeader::maximiseWanted);
    connect(close, &QToolButton::clicked, this, [this] { removePane(m_workbench, m_pane); });
}

void PaneHeader::refresh() {
    const ViewInput input = m_workbench.viewInput();
    if (static_cast<std::size_t>(m_pane) >= input.panes.size()) return;
    const PaneData& pane = input.panes[m_pane]; // names the present policy, even while an older result is drawn
    const SessionPane& spec = m_workbench.session().panes[m_pane];
    if (std::exchange(m_policyId, pane.policyId) != pane.policyId) update();
    m_badge->show(pane.letter, pane.policyId);
    m_name->setFullText(fromUtf8(pane.policyName));
    m_variant->setVisible(!pane.variant.empty());
    m_variantText = fromUtf8(pane.variant) + (spec.recordedPath.empty() ? " ▾" : "");
    m_variant->setToolTip(fromUtf8(pane.variant));
    refreshMetrics();
}

void PaneHeader::fillVariants() {
    const SessionPane& spec = m_workbench.session().panes[m_pane];
    if (!spec.recordedPath.empty()) return;
    fillVariantMenu(m_variant->menu(), spec.policy, [this](const PolicySpec& next) {
        m_workbench.change(
            [&](Session& s) {
                s.panes[m_pane].policy = next;
                s.activePane = m_pane;
            },
            tr("Variant"));
    });
}

void PaneHeader::refreshMetrics() {
    const auto [input, options, isOutdated] = m_workbench.drawnPane(m_pane);
    if (static_cast<std::size_t>(m_pane) >= input.panes.size()) return;
    const PaneData& pane = input.panes[m_pane];
    const auto head = static_cast<std::size_t>(input.kvHead.value);
    const RunResult* numbers = pane.measured && pane.measured->fidelity ? pane.measured.get() : nullptr;
    const bool isOlder = isOutdated || pane.measured != pane.result;
    m_error->show(numbers ? errorText(meanErrorOf(*numbers, *input.capture, input.kvHead)) : QString("–"), isOlder);
    m_mass->show(numbers ? percentText(meanMassOf(*numbers, *input.capture, input.kvHead)) : QString("–"), isOlder);
    const bool there = pane.result && head < pane.result->selection.heads.size();
    m_hasHits = there && !input.focus.selected.empty();
    if (!there) {
        m_realised->setVisible(false);
        m_kept->show("–");
        return fit();
    }
    const HeadSelection& chosen = pane.result->selection.heads[head];
    m_kept->reserve(countText(pane.result->visible));
    m_kept->show(countText(std::llround(chosen.attendedTokens())), isOutdated);
    m_kept->setToolTip(fromUtf8(keptBudget(*pane.result, input.kvHead)));
    const auto [hit, of] = keptAmong(input, pane, input.focus.selected);
    m_hitsName->setFullText(input.focus.selectionName.empty() ? tr("selected") : fromUtf8(input.focus.selectionName));
    m_hits->reserve(QString("%1/%1").arg(of));
    m_hits->show(of > 0 ? QString("%1/%2").arg(hit).arg(of) : QString("–"), isOutdated); // – : all after the cut
    showRealised(*pane.result, chosen);
    fit();
}

/// The chip of a head that keeps another number of tokens than it was asked for.
void PaneHeader::showRealised(const RunResult& result, const HeadSelection& head) {
    const Budget asked = effectiveBudget(m_workbench.session(), static_cast<std::size_t>(m_pane));
    if (hasOwnBudget(result, asked)) {
        m_realised->setVisible(true);
        m_realisedText = m_realisedShort = tr("own budget");
        m_realised->setToolTip(tr("The list was recorded with a budget of %1; the session asks for %2")
                                   .arg(fromUtf8(budgetWords(result.request.budget)), fromUtf8(budgetWords(asked))));
        return;
    }
    const auto kept = static_cast<std::int64_t>(head.kept.size());
    m_realised->setVisible(kept != result.requested && result.visible > 0);
    if (!m_realised->isVisibleTo(this)) return;
    if (!head.queryHeads.empty()) {
        m_realisedText = m_realisedShort = tr("union %1").arg(countText(kept));
        m_realised->setToolTip(tr("Each query head keeps %1 tokens of its own choice; drawn is the union of the %2 "
                                  "query heads of the group")
                                   .arg(m_kept->text(), countText(std::ssize(head.queryHeads))));
        return;
    }
    const double share = static_cast<double>(kept) / static_cast<double>(result.visible);
    m_realisedText = tr("%1 kept").arg(percentText(share));
    m_realisedShort = percentText(share);
    const QString asks = takesBudget(result) ? fromUtf8(formatBudget(result.requested, result.visible))
                                             : tr("nothing, the policy takes no budget");
    m_realised->setToolTip(tr("Asked for: %1; kept: %2").arg(asks, fromUtf8(formatBudget(kept, result.visible))));
}

void PaneHeader::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    m_titleFitted.clear();
    fit();
}

void PaneHeader::fit() {
    fitTitle();
    fitMetrics();
}

/// The policy's name has priority: export is also in the menu, M and a double click maximise, and the list of policies
/// has the variant.
void PaneHeader::fitTitle() {
    const QStringList shown{m_variantText, m_name->accessibleName(),
                            m_realised->isHidden() ? QString() : m_realisedText};
    if (std::exchange(m_titleFitted, shown) == shown) return;
    const auto excess = [this] {
        m_title->invalidate();
        return m_title->sizeHint().width() + px(14) - width();
    };
    const auto fits = [&] { return excess() <= 0; };
    m_variant->setText(m_variantText);
    m_realised->setText(m_realisedText);
    m_maximise->setVisible(true);
    m_export->setVisible(width() >= px(340));
    for (QToolButton* button : {m_export, m_maximise})
        if (!fits()) button->setVisible(false);
    const bool hasMenu = m_variantText.endsWith("▾");
    if (hasMenu && !fits()) m_variant->setText("▾");
    if (!fits()) m_realised->setText(m_realisedShort);
    const QFontMetrics font = m_variant->fontMetrics();
    if (const int over = excess(); !hasMenu && over > 0)
        m_variant->setText(font.elidedText(m_variantText, Qt::ElideRight,
                                           std::max(px(24), font.horizontalAdvance(m_variantText) - over)));
}

/// No number stands without its name: what there is no room for goes as a whole.
void PaneHeader::fitMetrics() {
    const std::vector<QLabel*> all = {m_errorName, m_error, m_massName, m_mass, m_keptName, m_kept, m_hitsName, m_hits};
    std::vector<QLabel*> shown = all;
    if (!m_hasHits) shown.resize(6);
    const auto needed = [&] {
        int width = px(16);
        for (const QLabel* label : shown)
            width +=
                (label == m_hitsName ? std::min(label->sizeHint().width(), px(40)) : label->sizeHint().width()) + px(7);
        return width;
    };
    const std::vector<std::vector<QLabel*>> leastFirst = {
        {m_massName, m_mass}, {m_keptName, m_kept}, {m_hitsName, m_hits}};
    for (const auto& least : leastFirst)
        if (needed() > width())
            for (QLabel* label : least) std::erase(shown, label);
    for (QLabel* label : all) label->setVisible(std::ranges::find(shown, label) != shown.end());
}

void PaneHeader::paintEvent(QPaintEvent* event) {
    QWidget::paintEvent(event);
    QPainter painter(this);
    painter.fillRect(0, 0, width(), px(3), qColor(policyStyle(m_policyId, appearance().theme).colour));
}

void PaneHeader::mousePressEvent(QMouseEvent*) {
    emit pressed(); // moves the focus first, so that a number being typed applies to the pane that was active
    m_workbench.change([this](Session& s) { s.activePane = m_pane; }, tr("Active pane"));
}

} // namespace kvscope
