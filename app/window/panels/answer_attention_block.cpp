// Computed in a slot of its own: the newest token and budget win.
#include "app/window/panels/answer_attention_block.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "views/common/view_facts.h"

#include <fmt/format.h>

#include <QHBoxLayout>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QVBoxLayout>

#include <utility>

namespace kvscope {

constexpr const char* kSlot = "answer attention";

/// A cell for each layer (rows) and query head (columns): its colour is the attention on evicted tokens, the more the
/// darker in the light theme, the brighter in the dark one.
class HeadCells : public QWidget {
public:
    HeadCells(std::function<void(int)> chosen, QWidget* parent) : QWidget(parent), m_chosen(std::move(chosen)) {
        setObjectName("answerHeads");
        setFocusPolicy(Qt::StrongFocus);
        setAccessibleName(QObject::tr("Attention on evicted tokens by layer and head"));
    }

    void show(std::shared_ptr<const AnswerAttention> found, int head, bool isDimmed) {
        m_found = std::move(found);
        m_head = head;
        m_isDimmed = isDimmed;
        if (m_found) setFixedSize(columns() * px(kCell) + px(kLabel), rows() * px(kCell) + px(kLabel));
        update();
    }

protected:
    void paintEvent(QPaintEvent*) override {
        if (!m_found) return;
        QPainter painter(this);
        painter.setOpacity(m_isDimmed ? 0.45 : 1);
        painter.setFont(interfaceFont(10));
        painter.setPen(qColor(chrome().text3));
        painter.drawText(QRect(px(kLabel), 0, width() - px(kLabel), px(kLabel)), Qt::AlignVCenter, QObject::tr("head"));
        for (int row = 0; row<rows(); row += rows()> 12 ? 4 : 1)
            painter.drawText(QRect(0, px(kLabel) + row * px(kCell), px(kLabel) - px(3), px(kCell)),
                             Qt::AlignRight | Qt::AlignVCenter,
                             QString::number(m_found->heads[static_cast<std::size_t>(row * columns())].layer.value));
        for (int i = 0; i < std::ssize(m_found->heads); ++i) {
            const double evicted = m_found->heads[static_cast<std::size_t>(i)].evicted;
            const QRect cell = place(i).adjusted(1, 1, 0, 0);
            painter.fillRect(cell, qColor(colourMap("viridis", evicted, appearance().theme == ThemeId::Light)));
            if (i != m_head) continue;
            painter.setPen(QPen(qColor(chrome().ink), 2));
            painter.drawRect(cell.adjusted(0, 0, -1, -1));
        }
        if (!hasFocus()) return;
        painter.setPen(qColor(chrome().ink));
        painter.drawRect(rect().adjusted(0, 0, -1, -1));
    }
    void keyPressEvent(QKeyEvent* event) override {
        const int key = event->key(), last = m_found ? static_cast<int>(std::ssize(m_found->heads)) - 1 : -1;
        const int by = key == Qt::Key_Right  ? 1
                       : key == Qt::Key_Left ? -1
                       : key == Qt::Key_Down ? columns()
                       : key == Qt::Key_Up   ? -columns()
                                             : 0;
        if (by == 0 || last < 0) return QWidget::keyPressEvent(event);
        const int head = m_head < 0 ? 0 : m_head + by;
        if (head >= 0 && head <= last && head != m_head) m_chosen(head);
    }
    void mousePressEvent(QMouseEvent* event) override {
        const int head = event->button() == Qt::LeftButton ? at(event->position().toPoint()) : -1;
        if (head >= 0) m_chosen(head);
    }
    bool event(QEvent* event) override {
        if (event->type() != QEvent::ToolTip) return QWidget::event(event);
        const auto& help = *static_cast<QHelpEvent*>(event);
        QString tip;
        if (const int i = at(help.pos()); i >= 0) {
            const AnswerAttention::Head& head = m_found->heads[static_cast<std::size_t>(i)];
            tip = QObject::tr("layer %1, query head %2: %3 of the attention on evicted tokens")
                      .arg(head.layer.value)
                      .arg(head.head.value)
                      .arg(percentText(head.evicted));
        }
        QToolTip::showText(help.globalPos(), tip, this);
        return true;
    }

private:
    static constexpr int kCell = 12, kLabel = 18;
    int columns() const { return m_found ? m_found->queryHeads : 0; }
    int rows() const { return columns() == 0 ? 0 : static_cast<int>(std::ssize(m_found->heads)) / columns(); }
    QRect place(int i) const {
        return {px(kLabel) + i % columns() * px(kCell), px(kLabel) + i / columns() * px(kCell), px(kCell), px(kCell)};
    }
    int at(QPoint point) const {
        for (int i = 0; m_found && i < std::ssize(m_found->heads); ++i)
            if (place(i).contains(point)) return i;
        return -1;
    }

    std::function<void(int)> m_chosen;
    std::shared_ptr<const AnswerAttention> m_found;
    int m_head = -1;
    bool m_isDimmed = false;
};

AnswerAttentionBlock::AnswerAttentionBlock(Workbench& workbench, LiveAnswerJobs& jobs, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_jobs(jobs) {
    auto* column = makeLayout<QVBoxLayout>(this, {10, 4, 10, 8}, 4);
    column->addWidget(separatorLine(this));
    auto* head = innerLayout<QHBoxLayout>(column);
    m_title = added(head, named("answerAttention", wrappedLabel({}, "label", this)), 1);
    auto* close = added(head, named("closeAttention", iconButton("close", tr("Close"), this)), 0, Qt::AlignTop);
    connect(close, &QToolButton::clicked, this, &AnswerAttentionBlock::closed);
    auto* row = innerLayout<QHBoxLayout>(column, {}, 16);
    m_cells = added(row, new HeadCells([this](int index) { openHead(index); }, this), 0, Qt::AlignTop);
    m_tokens = named("answerAttended", roleLabel({}, "fact", this));
    m_tokens->setTextFormat(Qt::RichText);
    m_tokens->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_tokens->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    connect(m_tokens, &QLabel::linkActivated, this, [this](const QString& link) {
        const TokenIndex token = link.toInt();
        m_workbench.change([&](Session& session) { select(session, {token}); }, tr("Select"));
    });
    connect(m_tokens, &QLabel::linkHovered, this,
            [this](const QString& link) { m_workbench.setHovered(link.isEmpty() ? -1 : link.toInt()); });
    row->addWidget(m_tokens, 1);
    m_note = added(column, wrappedLabel({}, "quiet", this));
    connect(&m_jobs, &LiveAnswerJobs::opened, this, &AnswerAttentionBlock::closed); // the rows are another text's
    connect(&m_jobs, &LiveAnswerJobs::changed, this, &AnswerAttentionBlock::refresh);
    connect(&m_workbench, &Workbench::engineChanged, this, [this] {
        m_key.clear();
        refresh();
    });
    setVisible(false);
}

AnswerAttentionBlock::~AnswerAttentionBlock() { m_workbench.cancel(kSlot); }

void AnswerAttentionBlock::choose(int row, int token) {
    m_isNew = token >= 0 && (row != m_row || token != m_token);
    m_row = row;
    m_token = token;
    refresh();
}

void AnswerAttentionBlock::refresh() {
    const std::vector<TokenIndex> tokens = m_jobs.answerTokens();
    const std::optional<ViewDataRequest> request = m_workbench.request();
    const auto pane = static_cast<std::size_t>(m_row);
    const bool isShown = m_token >= 0 && static_cast<std::size_t>(m_token) < tokens.size() && request &&
                         pane <= request->panes.size() && pane < m_jobs.rows().size();
    if (!isShown) {
        m_workbench.cancel(kSlot);
        m_key.clear();
        m_found = nullptr;
        m_token = -1;
        m_head = -1;
    } else {
        std::optional<PaneRequest> wanted;
        if (pane > 0) wanted = request->panes[pane - 1];
        std::string key = fmt::format("{}|{}|{}", m_token, request->cut.token, wanted ? resultKey(*wanted) : "full");
        if (key != m_key) {
            m_key = std::move(key);
            m_isOutdated = m_found != nullptr;
            submit(wanted, tokens[static_cast<std::size_t>(m_token)] - 1);
        }
    }
    setVisible(isShown);
    if (isShown) show();
}

void AnswerAttentionBlock::submit(const std::optional<PaneRequest>& pane, TokenIndex query) {
    Scheduler::Job job;
    job.work = [this, pane, query, capture = m_workbench.capture(), cut = *m_workbench.cut(),
                runner = m_workbench.sharedRunner()](const Checkpoint& checkpoint, const auto& post) {
        post([this, found = std::make_shared<const AnswerAttention>(
                        answerAttention(*runner, capture, cut, pane, query, checkpoint))] {
            m_found = found;
            m_error.clear();
            m_isOutdated = false;
            show();
            if (std::exchange(m_isNew, false)) emit appeared();
        });
    };
    job.failed = [this](std::exception_ptr failure) {
        m_found = nullptr;
        m_error = messageOf(failure);
        show();
    };
    m_workbench.submit(kSlot, std::move(job));
}

const AnswerAttention::Head& AnswerAttentionBlock::shownHead() const {
    const bool isOne = m_head >= 0 && m_head < std::ssize(m_found->heads);
    return isOne ? m_found->heads[static_cast<std::size_t>(m_head)] : m_found->mean;
}

void AnswerAttentionBlock::show() {
    m_cells->setVisible(m_found != nullptr);
    m_tokens->setVisible(m_found != nullptr);
    if (!m_found) return m_title->setText(m_error.empty() ? tr("…") : fromUtf8(m_error));
    const ViewInput input = m_workbench.viewInput();
    const auto pane = static_cast<std::size_t>(m_row);
    const QString who =
        pane > 0 && pane <= input.panes.size() ? fromUtf8(letteredName(input.panes[pane - 1])) : tr("Full cache");
    const TokenIndex query = m_found->query;
    const AnswerAttention::Head& head = shownHead();
    const bool isMean = &head == &m_found->mean;
    m_title->setText(tr("%1: the query that predicts %2, %3. %4 of its attention is on evicted tokens.")
                         .arg(who, fromUtf8(quotedToken(input, query + 1)),
                              isMean ? tr("mean over all heads")
                                     : tr("layer %1, query head %2").arg(head.layer.value).arg(head.head.value),
                              percentText(head.evicted)));
    m_title->setEnabled(!m_isOutdated);
    m_cells->show(m_found, m_head, m_isOutdated);
    m_note->setText(
        tr("Cells: layer and query head, %1 where more of the attention is on evicted tokens. Weights of the "
           "full cache's queries; behind a pruned context those of later layers differ.")
            .arg(appearance().theme == ThemeId::Light ? tr("darker") : tr("brighter")));
    const QString colour = qColor(m_isOutdated ? chrome().text3 : chrome().text1).name();
    QString html = QString("<table cellspacing='0' cellpadding='1' style='color:%1'>").arg(colour);
    for (const AnswerAttention::Token& token : head.largest) {
        QString state = token.keptIn == 1 ? tr("kept") : token.keptIn == 0 ? tr("evicted") : QString();
        if (state.isEmpty()) state = tr("kept in %1 of the heads").arg(percentText(token.keptIn));
        html += QString("<tr><td align='right'>%1&nbsp;&nbsp;</td><td><a href='%2' style='color:%3'>%4</a>&nbsp;&nbsp;"
                        "</td><td>%5</td></tr>")
                    .arg(percentText(token.weight), QString::number(token.token), colour,
                         fromUtf8(quotedToken(input, token.token)).toHtmlEscaped(), state);
    }
    m_tokens->setText(html + "</table>");
}

/// A second click shows the mean again.
void AnswerAttentionBlock::openHead(int index) {
    m_head = index == m_head ? -1 : index;
    if (m_head >= 0) {
        const AnswerAttention::Head& head = shownHead();
        m_workbench.change(
            [&](Session& session) {
                session.layer = head.layer;
                chooseQueryHead(session, head.head, *m_workbench.capture());
            },
            tr("Head"));
    }
    show();
}

} // namespace kvscope
