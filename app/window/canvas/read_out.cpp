// Rebuilt for each token: a few labels laid out by Qt above the canvas.
#include "app/window/canvas/read_out.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/run/token_decision.h"
#include "views/common/view_facts.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

#include <algorithm>
#include <optional>

namespace kvscope {

namespace {

/// The state mark of the design: filled blue circle, hollow orange circle, filled square.
QPixmap stateMark(const TokenDecision& decision) {
    const Theme& theme = chrome();
    QPixmap pixmap(px(10), px(10));
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF box(1, 1, px(10) - 2, px(10) - 2);
    if (decision.isProtected) {
        painter.fillRect(box, qColor(theme.protectedToken));
        return pixmap;
    }
    painter.setPen(QPen(qColor(decision.kept ? theme.kept : theme.evicted), 1.5));
    painter.setBrush(decision.kept ? QBrush(qColor(theme.kept)) : QBrush(Qt::NoBrush));
    painter.drawEllipse(box);
    return pixmap;
}

/// The corner of the area that is farthest from the point, for a box of this size; nothing where the box does not fit
/// or would cover the point.
std::optional<QPointF> cornerFor(const QRectF& area, const QSizeF& box, const QPointF& point, double gap) {
    const QRectF room = area.adjusted(gap, gap, -gap, -gap);
    if (box.width() > room.width() || box.height() > room.height()) return std::nullopt;
    const QPointF corner(point.x() < area.center().x() ? room.right() - box.width() : room.left(),
                         point.y() < area.center().y() ? room.bottom() - box.height() : room.top());
    const bool covers = QRectF(corner, box).adjusted(-gap, -gap, gap, gap).contains(point);
    return covers ? std::nullopt : std::optional(corner);
}

} // namespace

ReadOut::ReadOut(const Workbench& workbench, QWidget* parent) : QFrame(parent), m_workbench(workbench) {
    setObjectName("readOut");
    setAttribute(Qt::WA_TransparentForMouseEvents);
    makeLayout<QVBoxLayout>(this, {10, 7, 10, 7});
    hide();
}

void ReadOut::addRow(QWidget* name, const QString& value) {
    const int row = m_grid->rowCount();
    m_grid->addWidget(name, row, 0);
    QLabel* label = added(m_grid, numberLabel(11, QFont::Normal, m_body), row, 2);
    label->setText(value);
}

void ReadOut::clearBody() {
    delete m_body;
    m_body = new QWidget(this);
    layout()->addWidget(m_body);
    m_grid = makeLayout<QGridLayout>(m_body, {0, 0, 0, 0});
    m_grid->setHorizontalSpacing(px(10));
    m_grid->setVerticalSpacing(px(2));
}

void ReadOut::fill() {
    clearBody();
    const ViewInput input = m_workbench.viewInput();
    const TokenTable& tokens = input.capture->tokens();
    const QString head = QString("%1  “%2”").arg(countText(m_token), fromUtf8(displayText(tokens.textOf(m_token))));
    m_grid->addWidget(roleLabel(head, "strong", m_body), 0, 0, 1, 3);
    const QString segment = fromUtf8(segmentOf(*input.capture, m_token));
    m_grid->addWidget(roleLabel(m_pinned ? segment + tr("  pinned, Esc releases") : segment, "quiet", m_body), 1, 0, 1,
                      3);
    m_lines = {head, segment};
    if (m_token >= input.cut.token) {
        m_grid->addWidget(roleLabel(tr("after the cut: not seen by the policies"), "quiet", m_body), 2, 0, 1, 3);
        m_lines += tr("after the cut");
        addFacts();
        return;
    }
    for (const PaneData& pane : input.panes) {
        if (!pane.result) continue;
        const TokenDecision decision = tokenDecisionOf(*pane.result, input.kvHead, m_token);
        auto* name = new QWidget(m_body);
        auto* row = makeLayout<QHBoxLayout>(name, {0, 0, 0, 0}, 6);
        auto* badge = added(row, new LetterBadge(14, name));
        badge->show(pane.letter, pane.policyId);
        row->addWidget(roleLabel(fromUtf8(pane.policyName), "quiet", name));
        auto* mark = added(row, new QLabel(name));
        mark->setPixmap(stateMark(decision));
        const QString state = decision.isProtected ? tr("protected") : decision.kept ? tr("kept") : tr("evicted");
        row->addWidget(roleLabel(state, "quiet", name));
        row->addStretch();
        const QString value =
            decision.scored ? tr("%1  rank %2").arg(scoreText(decision.score), countText(decision.rank)) : QString();
        addRow(name, value);
        m_lines += QString("%1 %2 %3 %4").arg(QChar(pane.letter)).arg(fromUtf8(pane.policyName), state, value);
    }
    addFacts();
}

void ReadOut::addFacts() {
    for (const auto& [name, value] : m_facts.rows) {
        addRow(roleLabel(fromUtf8(name), "quiet", m_body), fromUtf8(value));
        m_lines += fromUtf8(name) + " " + fromUtf8(value);
    }
}

void ReadOut::showToken(TokenIndex token, CanvasWidget& over, const QPointF& widgetPosition, bool pinned,
                        const PointFacts& more) {
    if (token < 0 || !m_workbench.capture() || token >= m_workbench.capture()->info().numTokens) return dismiss();
    m_token = token;
    m_pinned = pinned;
    m_facts = more;
    fill();
    placeBeside(over, widgetPosition);
}

void ReadOut::showFacts(const PointFacts& facts, CanvasWidget& over, const QPointF& widgetPosition, bool pinned) {
    if (facts.rows.empty()) return dismiss();
    m_token = -1;
    m_pinned = pinned;
    m_facts = facts;
    clearBody();
    m_lines.clear();
    addFacts();
    if (pinned) m_grid->addWidget(roleLabel(tr("pinned, Esc releases"), "quiet", m_body), m_grid->rowCount(), 0, 1, 3);
    placeBeside(over, widgetPosition);
}

void ReadOut::placeBeside(CanvasWidget& over, const QPointF& widgetPosition) {
    if (parentWidget() != over.window()) setParent(over.window());
    m_body->show();
    adjustSize();
    const double gap = px(12);
    double x = 0, y = 0;
    std::optional<QPointF> corner;
    if (m_pinned) {
        const auto& plot = over.scene().plot; // QFrame has a Box of its own
        const double scale = appearance().scale;
        const QRectF inPlot(plot.x * scale, plot.y * scale, plot.width * scale, plot.height * scale);
        for (const QRectF& area : {inPlot, QRectF(over.rect())})
            if (!corner) corner = cornerFor(area, size(), widgetPosition, gap);
    }
    if (corner) {
        const QPointF at = over.mapTo(over.window(), *corner);
        x = at.x(), y = at.y();
    } else {
        const QPointF at = over.mapTo(over.window(), widgetPosition);
        x = at.x() + gap + width() > parentWidget()->width() ? at.x() - gap - width() : at.x() + gap;
        y = at.y() + gap + height() > parentWidget()->height() ? at.y() - gap - height() : at.y() + gap;
    }
    move(static_cast<int>(std::max(0.0, x)), static_cast<int>(std::max(0.0, y)));
    setAccessibleName(text());
    show();
    raise();
}

void ReadOut::dismiss() {
    m_token = -1;
    m_pinned = false;
    m_facts = {};
    hide();
}

QString ReadOut::text() const { return m_lines.join('\n'); }

} // namespace kvscope
