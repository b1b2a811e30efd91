// The slider is logarithmic in the retention, because 2 % to 4 % matters as much as 50 % to 100 %. Typed budgets may be
// tokens ("1024"), percent ("25%"), a fraction ("0.25") or a quality ("tau=0.95").
#include "app/window/panels/budget_bar.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/value_slider.h"
#include "core/base/error.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QInputDialog>
#include <QMenu>
#include <QPointer>

#include <cmath>
#include <iterator>

namespace kvscope {

namespace {

constexpr double kSmallestFraction = 0.01;

double bytesPerToken(const CaptureInfo& info) {
    const double bytes = !info.layers.empty() && info.layers.front().storedType == StoredType::Float32 ? 4 : 2;
    return bytes * info.numLayers * info.numKvHeads * (info.headDim + info.valueDim);
}

Budget budgetFromText(QString text) {
    if (text.trimmed().startsWith("tau=")) return Budget::parse(text.trimmed().toStdString());
    const std::string typed = text.toStdString();
    text = withoutThousands(text.remove(' '));
    bool isPercent = text.endsWith('%'), whole = false;
    const double percent = isPercent ? text.chopped(1).toDouble(&isPercent) : 0;
    if (isPercent && !(percent > 0 && percent <= 100))
        throw Error({"budget '" + typed + "' is not a share from above 0 to 100 %", "budget",
                     "Give a share (25%), a fraction (0.25), tokens (2048t) or a quality (tau=0.95)"});
    if (isPercent) return Budget::parse(QString::number(percent / 100).toStdString());
    text.toLongLong(&whole);
    return Budget::parse((whole ? text + "t" : text).toStdString());
}

} // namespace

BudgetBar::BudgetBar(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("budgetBar");
    setAttribute(Qt::WA_StyledBackground);
    setFixedHeight(px(44));
    build();
    connect(&m_workbench, &Workbench::sessionChanged, this, &BudgetBar::refresh);
    connect(&m_workbench, &Workbench::captureChanged, this, &BudgetBar::buildCutMenu);
    connect(&m_workbench, &Workbench::paneChanged, this, [this](int changed) {
        if (changed == m_workbench.session().activePane) refreshBudget();
    });
    refresh();
}

QLineEdit* BudgetBar::placeField(const QString& name, double width) {
    layout()->addWidget(roleLabel(name, "fact", this));
    QLineEdit* field = numberField(width, name, this);
    layout()->addWidget(field);
    connect(field, &QLineEdit::editingFinished, this, [this, field] { applyPlace(field); });
    return field;
}

void BudgetBar::build() {
    auto* row = makeLayout<QHBoxLayout>(this, {16, 0, 12, 0}, 8);
    m_layer = placeField(tr("Layer"), 46);
    m_kvHead = placeField(tr("KV head"), 38);
    m_queryHead = placeField(tr("query head"), 42);
    row->addSpacing(px(10));
    row->addWidget(roleLabel(tr("Budget"), "strong", this));
    m_slider = added(row, named("budgetSlider", new ValueSlider(this)));
    m_slider->setAccessibleName(tr("Budget, share of the tokens kept"));
    m_slider->setToolTip(tr("How many of the tokens before the cut each policy may keep. Double click: 25 %."));
    m_slider->setScale({kSmallestFraction, 1, 0.001, true});
    m_slider->setDefault(0.25);
    m_slider->setMinimumWidth(px(140));
    m_slider->setMaximumWidth(px(480));
    row->setStretchFactor(m_slider, 1);
    m_tokens = added(row, named("budgetTokens", numberField(66, tr("Budget in tokens"), this)));
    m_tokens->setToolTip(tr("Tokens (257), percent (25%) or a fraction (0.25)"));
    m_of = added(row, roleLabel({}, "fact", this));
    m_kept = added(row, named("keptPercent", new LiveNumber(15, QFont::Bold, this)));
    m_kept->reserve(percentText(1));
    m_word = added(row, named("keptWord", roleLabel(tr("kept"), "fact", this)));
    row->addSpacing(px(6));
    m_removed = added(row, new LiveNumber(12, QFont::Normal, this));
    m_removed->reserve(tr("%1 removed").arg(percentText(1)));
    row->addSpacing(px(6));
    m_bytes = added(row, new LiveNumber(12, QFont::Normal, this));
    row->addStretch();
    m_cut = added(row, named("cutChip", chipButton({}, "plain", this)));
    m_cut->setMenu(new QMenu(m_cut));
    m_link = added(row, new QPushButton(tr("all panes"), this));
    m_link->setProperty("look", "link");
    m_link->setCheckable(true);
    m_link->setToolTip(tr("On: the budget moves all panes. Off: only the active one."));
    connect(m_slider, &ValueSlider::edited, this, &BudgetBar::applyFraction);
    connect(m_slider, &ValueSlider::released, this, [this] { m_workbench.endMerge(); });
    connect(m_slider, &ValueSlider::resetRequested, this, [this] { applyFraction(0.25); });
    connect(m_tokens, &QLineEdit::editingFinished, this, &BudgetBar::applyTokens);
    connect(m_link, &QPushButton::clicked, this, [this](bool on) {
        m_workbench.change([on](Session& s) { linkPanes(s, on); }, on ? tr("Link budgets") : tr("Unlink budgets"));
    });
}

bool BudgetBar::event(QEvent* event) {
    const bool wasHandled = QWidget::event(event);
    if (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest) fitWidth();
    return wasHandled;
}

void BudgetBar::fitWidth() {
    const auto& cut = m_workbench.cut();
    const QString label = tr("cut: %1").arg(fromUtf8(cut ? cut->label : m_workbench.session().cut));
    const QString brief =
        !cut ? label : tr("cut: %1").arg(cut->evaluatedOnSeen ? tr("none") : QString::number(cut->token));
    const auto widthOf = [this](const QString& text) { return m_cut->fontMetrics().horizontalAdvance(text); };
    const auto partOf = [this](QLabel* part) { return part->minimumSizeHint().width() + layout()->spacing(); };
    int needed = layout()->minimumSize().width() + widthOf(label) - widthOf(m_cut->text());
    for (QLabel* part : {m_of, static_cast<QLabel*>(m_bytes), static_cast<QLabel*>(m_removed)})
        if (part->isHidden()) needed += partOf(part);
    const auto yields = [&](int part) {
        const bool isTooWide = needed > width();
        if (isTooWide) needed -= part;
        return isTooWide;
    };
    m_bytes->setVisible(!yields(partOf(m_bytes)));
    m_of->setVisible(!yields(partOf(m_of)));
    m_cut->setText(yields(widthOf(label) - widthOf(brief)) ? brief : label);
    m_cut->setToolTip(label + "\n" +
                      tr("Policies see the tokens before the cut; the queries after it evaluate what they keep."));
    m_removed->setVisible(!yields(partOf(m_removed)));
}

void BudgetBar::refresh() {
    const Session& session = m_workbench.session();
    setEnabled(m_workbench.capture() != nullptr);
    const auto showNumber = [](QLineEdit* field, std::int32_t value) {
        if (field->hasFocus() && field->isModified()) return;
        field->setText(QString::number(value));
        setWrong(field, false); // a refused text is no longer in the field
    };
    showNumber(m_layer, session.layer.value);
    showNumber(m_kvHead, session.kvHead.value);
    showNumber(m_queryHead, session.queryHead.value);
    m_link->setChecked(session.panesLinked);
    const QString moves =
        session.panesLinked ? tr("all panes") : tr("pane %1 only").arg(QChar('A' + session.activePane));
    if (m_link->icon().isNull() || m_link->text() != moves) // only then, since the icon is drawn from an SVG
        m_link->setIcon(themedIcon(session.panesLinked ? "link" : "unlink"));
    m_link->setText(moves);
    refreshBudget();
}

void BudgetBar::refreshBudget() {
    const Session& session = m_workbench.session();
    const auto& cut = m_workbench.cut();
    fitWidth();
    if (!cut) {
        m_tokens->clear();
        showText(m_of, {});
        for (LiveNumber* number : {m_kept, m_removed, m_bytes}) number->show({});
        return;
    }
    const Budget budget =
        session.panes.empty() ? session.budget : effectiveBudget(session, static_cast<std::size_t>(session.activePane));
    const double seen = cut->token;
    const std::optional<Budget> known = resolvedBudget(budget);
    double kept = seen;
    try {
        if (known) kept = static_cast<double>(resolveBudget(*known, cut->token, Rounding::Ceil));
        setWrong(m_tokens, false);
    } catch (const Error&) {
        setWrong(m_tokens, true); // more tokens than there are before this cut; the panes show the error
    }
    const double fraction = known && known->unit == Budget::Unit::Fraction ? known->value : kept / seen;
    m_tokens->setToolTip(budget.unit == Budget::Unit::Quality
                             ? tr("The budget is the quality %1").arg(fromUtf8(budget.text()))
                             : tr("Tokens, a share (25 %, 0.25), or a quality to keep (tau=0.95)"));
    if (!m_slider->isSliderDown()) m_slider->showValue(fraction);
    if (!(m_tokens->hasFocus() && m_tokens->isModified()))
        m_tokens->setText(countText(static_cast<std::int64_t>(kept)));
    showText(m_of, tr("of %1").arg(fromUtf8(formatCounted(cut->token, "token"))));
    m_kept->show(percentText(kept / seen));
    const bool isKept = keepsAsAsked();
    showText(m_word, isKept ? tr("kept") : tr("asked")); // pane and strip say what is kept
    m_removed->show(isKept ? tr("%1 removed").arg(percentText(1 - kept / seen)) : QString());
    const double bytes = bytesPerToken(m_workbench.capture()->info());
    m_bytes->reserve(tr("%1 of %2").arg(bytesText(1000 * 1024.0), bytesText(bytes * seen)));
    m_bytes->show(tr("%1 of %2").arg(bytesText(bytes * kept), bytesText(bytes * seen)));
    m_bytes->setToolTip(
        tr("The whole model's cache of the tokens before the cut at this budget, as stored in the capture"));
}

bool BudgetBar::keepsAsAsked() const {
    const ViewInput input = m_workbench.viewInput();
    const PaneData* pane = activePane(input);
    if (!pane || !pane->result) return true;
    const auto& heads = pane->result->selection.heads;
    const auto head = static_cast<std::size_t>(input.kvHead.value);
    return head >= heads.size() || !heads[head].queryHeads.empty() || // sets whose union is larger
           std::ssize(heads[head].kept) == pane->result->requested;
}

// A quality becomes a retention when the active pane's run has computed it.
std::optional<Budget> BudgetBar::resolvedBudget(const Budget& budget) const {
    if (budget.unit != Budget::Unit::Quality) return budget;
    const ViewInput input = m_workbench.viewInput();
    const PaneData* pane = activePane(input);
    const auto result = pane ? pane->result : nullptr;
    if (!result || !result->calibrated || !(result->calibrated->asked == budget)) return std::nullopt;
    return Budget{Budget::Unit::Fraction, result->calibrated->retention, {}};
}

void BudgetBar::applyPlace(QLineEdit* field) {
    if (!field->isModified()) return;
    field->setModified(false);
    const auto capture = m_workbench.capture();
    if (!capture) return; // the capture was closed while the number was being typed
    bool whole = false;
    const int value = field->text().toInt(&whole);
    const CaptureInfo& info = capture->info();
    try {
        if (!whole)
            throw Error({"A whole number is needed", field->accessibleName().toStdString(), "indices start at 0"});
        if (field == m_layer) info.layerInfo(LayerIndex(value));
        const int limit = field == m_kvHead ? info.numKvHeads : info.numQueryHeads;
        if (field != m_layer && (value < 0 || value >= limit))
            throw Error({"The head is not in this capture", field->accessibleName().toStdString(),
                         "choose 0 to " + std::to_string(limit - 1)});
        m_workbench.change(
            [&](Session& s) {
                if (field == m_layer)
                    s.layer = LayerIndex(value);
                else if (field == m_kvHead)
                    chooseKvHead(s, KvHeadIndex(value), *capture);
                else
                    chooseQueryHead(s, QueryHeadIndex(value), *capture);
            },
            field->accessibleName());
        setWrong(field, false);
        emit accepted();
    } catch (const Error& error) {
        setWrong(field, true);
        refuse(error);
    }
}

void BudgetBar::refuse(const Error& error) { emit refused(fromUtf8(withFullStop(asSentence(error.what())))); }

void BudgetBar::applyTokens() {
    if (!m_tokens->isModified() || !m_workbench.cut()) return;
    m_tokens->setModified(false);
    try {
        const Budget budget = budgetFromText(m_tokens->text());
        if (budget.unit != Budget::Unit::Quality) resolveBudget(budget, m_workbench.cut()->token, Rounding::Ceil);
        m_workbench.change([&](Session& s) { setBudget(s, budget); }, tr("Budget"));
        refreshBudget();
        emit accepted();
    } catch (const Error& error) {
        setWrong(m_tokens, true);
        refuse(error);
    }
}

void BudgetBar::applyFraction(double fraction) {
    const double rounded = std::round(fraction * 1000) / 1000;
    m_workbench.change([&](Session& s) { setBudget(s, {Budget::Unit::Fraction, rounded}); }, tr("Budget"), "budget");
    emit accepted();
}

void BudgetBar::applyCut(const std::string& cut) {
    try {
        Cut::resolve(cut, *m_workbench.capture());
        m_workbench.change([&](Session& s) { s.cut = cut; }, tr("Cut"));
        emit accepted();
    } catch (const Error& error) {
        refuse(error);
    }
}

void BudgetBar::buildCutMenu() {
    QMenu* menu = m_cut->menu();
    menu->clear();
    const auto capture = m_workbench.capture();
    if (!capture) return;
    const std::pair<QString, const char*> choices[] = {
        {tr("Default"), "default"},
        {tr("End of the context, before the question"), "segment:context"},
        {tr("End of the question, before the answer"), "segment:question"},
        {tr("Before the last 256 tokens"), "last:256"},
        {tr("None: evaluated on seen queries"), "none"}};
    for (const auto& [label, text] : choices) {
        try {
            const Cut cut = Cut::resolve(text, *capture);
            menu->addAction(tr("%1  (%2)").arg(label, countText(cut.token)), this,
                            [this, t = std::string(text)] { applyCut(t); });
        } catch (const Error&) {
            // The capture has no such segment, or is too short: the choice is left out.
        }
    }
    menu->addSeparator();
    menu->addAction(tr("At a token…"), this, [this, n = capture->info().numTokens] {
        bool ok = false;
        const QPointer<BudgetBar> there(this); // another theme makes another bar
        const int at = QInputDialog::getInt(
            window(), tr("Cut"), tr("Tokens before the cut (0-based position of the first unseen token)"),
            m_workbench.cut() ? m_workbench.cut()->token : 1, 1, static_cast<int>(n), 1, &ok);
        if (ok && there) applyCut(std::to_string(at));
    });
}

} // namespace kvscope
