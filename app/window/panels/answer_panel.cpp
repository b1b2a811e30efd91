// Controls in the dock's header, answers or curves below.
#include "app/window/panels/answer_panel.h"

#include "app/window/panels/answer_attention_block.h"
#include "app/window/panels/answer_rows.h"
#include "app/window/panels/loss_plot.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/segmented_switch.h"
#include "app/window/widgets/small_widgets.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QScrollArea>
#include <QScrollBar>
#include <QStackedWidget>
#include <QTimer>
#include <QVBoxLayout>

#include <algorithm>

namespace kvscope {

namespace {

enum Page { kMessage, kAnswers, kCurves };

/// A header that may become too narrow for one of its parts, which is then placed elsewhere.
class YieldingHeader : public QWidget {
public:
    YieldingHeader(const QWidget& part, QWidget* parent) : QWidget(parent), m_part(part) {}
    QSize minimumSizeHint() const override {
        const bool isHere = isAncestorOf(&m_part) && !m_part.isHidden();
        const int part = isHere ? m_part.minimumSizeHint().width() + layout()->spacing() : 0;
        return QWidget::minimumSizeHint() - QSize(part, 0);
    }

private:
    const QWidget& m_part;
};

} // namespace

AnswerPanel::AnswerPanel(Workbench& workbench, const TextService& text, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_jobs(LiveAnswerJobs::of(workbench)),
      m_stack(new QStackedWidget(this)) {
    setObjectName("panelBody");
    setAttribute(Qt::WA_StyledBackground);
    auto* column = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 2);
    buildControls();
    column->addWidget(buildSampling());
    m_error = added(column, named("answerError", wrappedLabel({}, "error", this)));
    m_error->setTextFormat(Qt::RichText);
    m_error->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    connect(m_error, &QLabel::linkActivated, this,
            [this] { m_isLost || m_jobs.isCutOther() ? m_workbench.reload() : m_jobs.repeat(); });
    connect(&m_workbench, &Workbench::workerLost, this, [this] { setLost(true); });
    connect(&m_workbench, &Workbench::captureChanged, this, [this] { setLost(false); });
    m_error->setContentsMargins(px(10), 0, px(10), 0);
    column->addWidget(m_stack, 1);
    m_message = added(m_stack, named("answerMessage", wrappedLabel({}, "quiet", this)));
    m_message->setContentsMargins(px(16), px(12), px(16), px(12));
    m_message->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    QScrollArea* area = added(m_stack, scrollArea(this));
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAsNeeded); // for the cells of a model with many heads
    auto* body = named("panelBody", new QWidget(area));
    auto* rows = makeLayout<QVBoxLayout>(body, {0, 0, 0, 0}, 0);
    m_rows = added(rows, new AnswerRows(m_workbench, m_jobs, body));
    m_attention = added(rows, new AnswerAttentionBlock(m_workbench, m_jobs, body));
    rows->addStretch();
    area->setWidget(body);
    m_plot = added(m_stack, new LossPlot(m_workbench, m_jobs, text, this));
    connect(m_rows, &AnswerRows::tokenChosen, this, [this](int row, int token) {
        m_attention->choose(row, token);
        m_rows->setChosen(row, token);
    });
    connect(m_attention, &AnswerAttentionBlock::appeared, area, [this, area] {
        QTimer::singleShot(0, area, [this, area] { // once it is laid out; shows its top if it is too high
            const QRect block = m_attention->geometry();
            QScrollBar* bar = area->verticalScrollBar();
            bar->setValue(std::max(bar->value(), std::min(block.top(), block.bottom() - area->viewport()->height())));
        });
    });
    connect(m_attention, &AnswerAttentionBlock::closed, this, &AnswerPanel::closeAttention);
    connect(m_rows, &AnswerRows::saidNothing, this, [this](const QString& why) { m_status->setFullText(why); });
    const auto refreshShown = [this] {
        if (isVisible()) refresh();
    };
    connect(&m_jobs, &LiveAnswerJobs::changed, this, refreshShown);
    connect(&m_workbench, &Workbench::panesChanged, this, refreshShown); // names of recorded lists
    refresh();
}

void AnswerPanel::buildControls() {
    m_writing = new QWidget(this);
    m_header = named("dockHeader", new YieldingHeader(*m_writing, this));
    m_header->setAttribute(Qt::WA_StyledBackground);
    auto* all = makeLayout<QHBoxLayout>(m_header, {10, 3, 4, 3}, 8);
    all->addWidget(named("viewTitle", roleLabel(tr("Answers"), "dockTitle", m_header)));
    m_controls = added(all, new QWidget(m_header), 1);
    all->addStretch(); // takes the room of the hidden controls
    auto* controls = makeLayout<QHBoxLayout>(m_controls, {0, 0, 0, 0}, 8);
    m_shown = new SegmentedSwitch({tr("Answers"), tr("Loss and budget")}, tr("Answers or curves"), m_controls);
    m_shown->setObjectName("answersOrCurves");
    connect(m_shown, &SegmentedSwitch::chosen, this, &AnswerPanel::want);
    controls->addWidget(m_shown, 0, Qt::AlignLeft);
    controls->addWidget(m_writing, 1);
    auto* row = makeLayout<QHBoxLayout>(m_writing, {0, 0, 0, 0}, 8);
    m_mode = new SegmentedSwitch({tr("Likeliest"), tr("Sampled")}, tr("How the text is written"), m_writing);
    m_mode->setObjectName("writingMode");
    m_mode->setToolTip(tr("The likeliest token each time, or tokens drawn with a temperature and a seed, with the same "
                          "random numbers in all rows"));
    connect(m_mode, &SegmentedSwitch::chosen, this, &AnswerPanel::write);
    row->addWidget(m_mode);
    m_tokens = named("answerTokens", addField(row, tr("tokens"), 40, QString::number(m_jobs.writing().mostTokens)));
    m_tokens->setToolTip(tr("Length of the text; 0: only the loss of the expected answer is asked for"));
    m_mode->setCurrent(m_jobs.writing().temperature > 0 ? 1 : 0); // a rebuilt panel shows what is asked for
    m_status = added(row, named("answerStatus", new ElidedLabel("quiet", Qt::ElideRight, m_writing)), 1);
}

/// The controls for how the text is written stand in the header, or below it if the dock is too narrow.
void AnswerPanel::placeWriting() {
    const int beside =
        m_header->minimumSizeHint().width() + m_header->layout()->spacing() + m_writing->minimumSizeHint().width();
    const bool isBelow = width() < beside;
    if (isBelow == (m_writing->parentWidget() == this)) return;
    QBoxLayout* place = static_cast<QBoxLayout*>((isBelow ? this : m_controls)->layout());
    place->insertWidget(isBelow ? 0 : 1, m_writing, isBelow ? 0 : 1);
    m_writing->setContentsMargins(isBelow ? px(10) : 0, isBelow ? px(3) : 0, isBelow ? px(10) : 0, 0);
}

QWidget* AnswerPanel::buildSampling() {
    const live::Writing& writing = m_jobs.writing();
    m_sampling = new QWidget(this);
    auto* row = makeLayout<QHBoxLayout>(m_sampling, {10, 2, 10, 2}, 6);
    m_temperature =
        addField(row, tr("temperature"), 44, QString::number(writing.temperature > 0 ? writing.temperature : 0.7));
    m_seed = addField(row, tr("seed"), 60, QString::number(writing.seed));
    row->addStretch();
    return m_sampling;
}

QLineEdit* AnswerPanel::addField(QLayout* layout, const QString& name, double width, const QString& value) {
    layout->addWidget(roleLabel(name, "fact", layout->parentWidget()));
    QLineEdit* field = added(layout, numberField(width, name, layout->parentWidget()));
    field->setText(value);
    connect(field, &QLineEdit::editingFinished, this, &AnswerPanel::write);
    return field;
}

void AnswerPanel::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    want();
    refresh();
}

void AnswerPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    placeWriting();
}

void AnswerPanel::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    want();
}

/// Esc closes the attention block, wherever the focus is in this panel.
bool AnswerPanel::event(QEvent* event) {
    const bool isKey = event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress;
    if (!isKey || static_cast<QKeyEvent*>(event)->key() != Qt::Key_Escape || m_attention->token() < 0)
        return QWidget::event(event);
    event->accept();
    if (event->type() == QEvent::KeyPress) closeAttention();
    return true;
}

void AnswerPanel::setLost(bool isLost) {
    m_isLost = isLost;
    if (isVisible()) refresh();
}

void AnswerPanel::closeAttention() {
    m_attention->choose(0, -1);
    m_rows->setChosen(-1, -1);
}

void AnswerPanel::want() { m_jobs.setWanted(isVisible(), isVisible() && m_shown->current() == 1, this); }

/// An invalid number is marked, and the model is not asked.
void AnswerPanel::write() {
    bool isTokens = false, isTemperature = false, isSeed = false;
    live::Writing writing;
    writing.mostTokens = m_tokens->text().toInt(&isTokens);
    isTokens = isTokens && writing.mostTokens >= 0 && writing.mostTokens <= 4096;
    const double temperature = m_temperature->text().toDouble(&isTemperature);
    isTemperature = isTemperature && temperature > 0 && temperature <= 100;
    writing.seed = m_seed->text().toULongLong(&isSeed);
    setWrong(m_tokens, !isTokens);
    setWrong(m_temperature, !isTemperature);
    setWrong(m_seed, !isSeed);
    const bool isSampled = m_mode->current() == 1;
    m_sampling->setVisible(isSampled);
    if (!isTokens || (isSampled && (!isTemperature || !isSeed))) return;
    writing.temperature = isSampled ? temperature : 0;
    if (!isSampled) writing.seed = 0;
    m_jobs.setWriting(writing);
}

void AnswerPanel::refresh() {
    if (m_jobs.live() != m_workbench.live()) return; // another capture was opened, which the jobs do not know yet
    const bool isLive = m_jobs.live() != nullptr;
    m_controls->setVisible(isLive);
    m_writing->setVisible(isLive);
    m_mode->setVisible(m_shown->current() == 0); // curves need no text
    m_sampling->setVisible(isLive && m_shown->current() == 0 && m_mode->current() == 1);
    if (!isLive) {
        m_message->setText(tr("The open capture is a file; answers need the model. Open a live context: File > New "
                              "from text…, or Help > Try it live."));
    } else if (m_jobs.rows().empty()) {
        m_message->setText(tr("The cut does not fit the context."));
    }
    m_stack->setCurrentIndex(!isLive || m_jobs.rows().empty() ? kMessage
                             : m_shown->current() == 1        ? kCurves
                                                              : kAnswers);
    m_error->setVisible(isLive && !m_jobs.error().empty());
    const QString remedy = m_isLost                              ? tr("Start again")
                           : !m_jobs.isCutOther()                ? tr("Ask again")
                           : m_workbench.session().cut == "none" ? QString() // a context needs a cut
                                                                 : tr("Or read the context with this cut");
    m_error->setText(QString("%1 <a href='again' style='color:%2'>%3</a>")
                         .arg(fromUtf8(withFullStop(asSentence(m_jobs.error()))).toHtmlEscaped(),
                              qColor(chrome().error).name(), remedy));
    if (!isLive) return;
    m_rows->refresh();
    m_status->setFullText(statusText(), {statusText().section(' ', -2)});
}

QString AnswerPanel::statusText() const {
    const auto& rows = m_jobs.rows();
    if (std::ranges::any_of(rows, [](const auto& row) { return row.isTextOutdated; }))
        return m_jobs.isRunning() ? tr("asking the model…") : QString();
    if (m_stack->currentIndex() == kCurves) return tr("loss, nat, against % kept"); // a low plot has no titles
    if (m_jobs.roundMs() <= 0) return {};
    return tr("asked in %1").arg(milliText(m_jobs.roundMs()));
}

} // namespace kvscope
