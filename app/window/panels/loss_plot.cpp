// The curves view's own picture, painted with QPainter: these data are no view data of the session.
#include "app/window/panels/loss_plot.h"

#include "app/export/painter_scene.h"
#include "app/study/loss_curves.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "views/view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

namespace kvscope {

namespace {

const View& curves() { return viewById("curves"); }

PointFacts factsAt(const Workbench& workbench, std::shared_ptr<const CurvesData> data, const Scene& scene, QPointF at) {
    if (!data) return {};
    at /= appearance().scale;
    ViewInput input = workbench.viewInput();
    input.data.value = std::move(data);
    return curves().factsAt(input, ParameterValues(curves().card().options), scene, {at.x(), at.y()});
}

/// The share of the context that the active pane keeps, mean over all heads of all layers. Until the model has
/// answered for the present budget: the share that the budget asks for; nothing for a quality.
std::optional<double> presentRetention(const Workbench& workbench, const LiveAnswerJobs& jobs) {
    const auto pane = static_cast<std::size_t>(workbench.session().activePane);
    const TokenIndex cut = jobs.live()->cut();
    if (pane + 1 >= jobs.rows().size()) return {};
    const LiveAnswerJobs::Row& row = jobs.rows()[pane + 1];
    if (!row.isOutdated) return row.live.sent ? std::optional(row.live.kept / cut) : std::nullopt;
    const Budget budget = effectiveBudget(workbench.session(), pane);
    if (budget.unit == Budget::Unit::Quality) return {};
    return retentionOf(budget, cut);
}

} // namespace

LossPlot::LossPlot(Workbench& workbench, LiveAnswerJobs& jobs, const TextService& text, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_jobs(jobs), m_text(text) {
    setMinimumSize(px(220), px(120));
    setObjectName("lossPlot");
    setFocusPolicy(Qt::ClickFocus); // a number that is being typed belongs to the pane that was active before the click
    setAccessibleName(tr("Loss of the expected answer against the budget"));
    connect(&m_jobs, &LiveAnswerJobs::changed, this, qOverload<>(&QWidget::update));
    connect(&m_workbench, &Workbench::panesChanged, this, qOverload<>(&QWidget::update)); // for its budget
}

void LossPlot::paintEvent(QPaintEvent*) {
    ViewInput input = m_workbench.viewInput();
    std::vector<LossSeries> series;
    for (std::size_t i = 0; i < std::min(m_jobs.curves().size(), input.panes.size()); ++i) {
        const LiveAnswerJobs::LossCurve& curve = m_jobs.curves()[i];
        LossSeries& one = series.emplace_back(LossSeries{input.panes[i], {}, curve.error});
        for (const auto& [budget, row] : curve.rows) one.rows.push_back(&row);
        const LiveAnswerJobs::Row& now = m_jobs.rows()[i + 1]; // the only point of a recorded list
        if (curve.key.empty() && !now.isOutdated) one.rows.push_back(&now.live);
    }
    const LiveRow* full = m_jobs.rows().empty() ? nullptr : &m_jobs.rows().front().live;
    m_data =
        m_jobs.live() ? lossCurves(series, full, m_jobs.live()->cut(), presentRetention(m_workbench, m_jobs)) : nullptr;
    QPainter painter(this);
    painter.fillRect(rect(), qColor(chrome().canvas));
    if (!m_data) {
        painter.setPen(qColor(chrome().text3));
        painter.setFont(interfaceFont(12));
        QString why = tr("Computing the first points…");
        if (m_jobs.answerTokens().empty()) why = tr("A loss needs an expected answer: open the context with one.");
        for (const LiveAnswerJobs::LossCurve& curve : m_jobs.curves()) {
            if (!curve.error.empty()) why = fromUtf8(curve.error);
            for (const auto& [budget, row] : curve.rows)
                if (!row.error.empty()) why = fromUtf8(row.error);
        }
        painter.drawText(rect().adjusted(px(12), 0, -px(12), 0), Qt::AlignCenter | Qt::TextWordWrap, why);
        m_scene = {};
        return;
    }
    input.data.value = m_data;
    Viewport viewport;
    const double scale = appearance().scale; // scenes have the sizes of scale 1
    viewport.width = width() / scale;
    viewport.height = height() / scale;
    viewport.pixelScale = scale * devicePixelRatioF();
    viewport.theme = appearance().theme;
    viewport.text = &m_text;
    m_scene = curves().buildScene(input, ParameterValues(curves().card().options), viewport);
    painter.scale(scale, scale);
    paintScene(painter, m_scene);
}

void LossPlot::mousePressEvent(QMouseEvent* event) {
    const PointFacts facts = factsAt(m_workbench, m_data, m_scene, event->position());
    if (event->button() != Qt::LeftButton || !facts.settingChange || !facts.settingChange->budget) return;
    m_workbench.change(
        [&](Session& session) {
            session.activePane = facts.settingChange->pane;
            setBudget(session, *facts.settingChange->budget);
        },
        tr("Budget"));
}

bool LossPlot::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    const auto& help = *static_cast<QHelpEvent*>(event);
    QStringList lines;
    for (const auto& [name, value] : factsAt(m_workbench, m_data, m_scene, help.pos()).rows)
        lines << fromUtf8(name) + ": " + fromUtf8(value);
    QToolTip::showText(help.globalPos(), lines.join('\n'), this);
    return true;
}

} // namespace kvscope
