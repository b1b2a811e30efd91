// A grid, so that the numbers of all panes stand below each other; rows are added and removed when their count changes.
#include "app/window/panels/answer_rows.h"

#include "app/window/canvas/view_table_model.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/token_bars.h"
#include "views/common/policy_style.h"
#include "views/common/view_facts.h"

#include <QAction>
#include <QClipboard>
#include <QGridLayout>
#include <QGuiApplication>
#include <QKeyEvent>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvscope {

namespace {

enum Column { kBadge, kName, kText, kBars, kLoss, kKl, kFlips, kDiffers, kKept, kSelect, kStores, kColumns };
constexpr int kFirstNumber = kLoss;
/// Least widths of the dock, in design pixels, at which the columns from the bars on are shown.
constexpr std::array kNeeds = {400, 0, 480, 540, 600, 660, 740, 820};
constexpr int kWideNames = 600;

struct Title {
    const char *text, *help;
};
constexpr std::array<Title, kColumns - kBars> kTitles = {
    {{QT_TR_NOOP("per token"), QT_TR_NOOP("Loss of each token of the expected answer; a dot: another token is likelier "
                                          "than behind the full cache. A click shows what the token attends to.")},
     {QT_TR_NOOP("loss, nat"), QT_TR_NOOP("Mean loss of the expected answer in nat a token")},
     {QT_TR_NOOP("KL, nat"), QT_TR_NOOP("Mean divergence of the predicted distribution from the full cache's, in nat")},
     {QT_TR_NOOP("flips"), QT_TR_NOOP("Share of the answer's tokens at which another token is the likeliest")},
     {QT_TR_NOOP("differs"), QT_TR_NOOP("Index of the first token that differs from the full cache's text")},
     {QT_TR_NOOP("kept"), QT_TR_NOOP("Tokens before the cut that a query head attends to, mean over all heads")},
     {QT_TR_NOOP("select"), QT_TR_NOOP("Time to choose the kept tokens in all layers and to send them to the model")},
     {QT_TR_NOOP("stores"), QT_TR_NOOP("Keys and values kept in all layers")}}};

/// A piece of text, escaped for HTML, with signs for line breaks and tabs.
QString shownPiece(const std::string& piece) {
    return fromUtf8(piece).toHtmlEscaped().replace("\r", "").replace("\n", "↵").replace("\t", "⇥");
}

bool differsAt(const live::GreedyAnswer& own, const live::GreedyAnswer* full, std::size_t index) {
    return full && (index >= full->ids.size() || index >= own.ids.size() || own.ids[index] != full->ids[index]);
}

QString emphasised(const QString& html) {
    return QString("<span style='background-color:%1;text-decoration:underline'>%2</span>")
        .arg(qColor(chrome().warningGround).name(), html);
}

/// Each token as a link that names its index; tokens that differ are underlined on a background of their own.
QString textHtml(const live::GreedyAnswer& own, const live::GreedyAnswer* full, bool isDimmed) {
    QString html;
    const QString colour = qColor(isDimmed ? chrome().text3 : chrome().text1).name();
    for (std::size_t i = 0; i < own.pieces.size(); ++i) {
        const QString token = QString("<a href='%1' style='color:%2;text-decoration:none'>%3</a>")
                                  .arg(QString::number(i), colour, shownPiece(own.pieces[i]));
        html += differsAt(own, full, i) ? emphasised(token).replace("decoration:none", "decoration:underline") : token;
    }
    if (own.pieces.empty()) html = shownPiece(own.text); // still being written, or the worker named no tokens
    if (full && own.ids.size() < full->ids.size() && !own.ids.empty()) html += emphasised(QObject::tr(" [ends]"));
    return QString("<div style='white-space:pre-wrap;color:%1'>%2</div>").arg(colour, html);
}

QString numberOr(double value, QString (*text)(double)) { return std::isfinite(value) ? text(value) : QString("–"); }

/// A mean over heads with different counts need not be a whole number.
QString keptText(double tokens) {
    return tokens == std::round(tokens) ? countText(std::llround(tokens)) : QString::number(tokens, 'f', 1);
}

QString flipText(double share) { return QString("%1 %").arg(qRound(100 * share)); }

/// The table that `kvscope live --out FILE.csv` writes, with the panes' letters.
ViewTable answerTable(const LiveAnswerJobs& jobs, const ViewInput& input) {
    std::vector<std::vector<std::string>> cells;
    for (std::size_t i = 0; i < jobs.rows().size(); ++i) {
        const LiveRow& row = jobs.rows()[i].live;
        if (jobs.rows()[i].isTextOutdated) continue;
        const bool isPane = i > 0 && i <= input.panes.size();
        const auto number = [&](double live::ExpectedAnswer::*member) {
            return row.expected ? tableNumber((*row.expected).*member) : std::string();
        };
        const auto& at = row.greedy ? row.greedy->firstDivergence : std::nullopt;
        cells.push_back({isPane ? std::string(1, input.panes[i - 1].letter) : "",
                         isPane ? paneTitle(input.panes[i - 1]) : "full cache",
                         row.sent || i == 0 ? tableNumber(row.kept) : "", // none where the policy refuses
                         row.sent || i == 0 ? tableNumber(row.stored) : "", number(&live::ExpectedAnswer::nll),
                         number(&live::ExpectedAnswer::klMean), number(&live::ExpectedAnswer::flipRate),
                         at ? std::to_string(*at) : "",
                         tableNumber(row.sent       ? row.sent->bytes
                                     : row.expected ? row.expected->bytes
                                                    : NAN),
                         row.greedy ? row.greedy->text : "", jobs.rows()[i].error});
    }
    return tableOf({"pane", "policy", "kept", "stored_tokens", "nll", "kl", "flip_rate", "first_divergence",
                    "stored_bytes", "text", "error"},
                   std::move(cells));
}

} // namespace

struct AnswerRows::Line {
    LetterBadge* badge = nullptr;
    ElidedLabel* name = nullptr;
    QLabel* text = nullptr;
    TokenBars* bars = nullptr;
    std::array<LiveNumber*, kColumns - kFirstNumber> numbers = {};

    std::vector<QWidget*> widgets() const {
        std::vector<QWidget*> all = {badge, name, text, bars};
        all.insert(all.end(), numbers.begin(), numbers.end());
        return all;
    }
};

AnswerRows::AnswerRows(Workbench& workbench, LiveAnswerJobs& jobs, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_jobs(jobs), m_grid(makeLayout<QGridLayout>(this, {10, 2, 10, 6}, 3)) {
    setObjectName("panelBody");
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
    m_grid->setHorizontalSpacing(px(10));
    m_grid->setColumnStretch(kText, 1);
    m_grid->setColumnMinimumWidth(kText, px(110));
    m_expected = added(m_grid, named("expectedAnswer", new ElidedLabel("quiet", Qt::ElideRight, this)), 0, kText);
    for (int column = kBars; column < kColumns; ++column) {
        const Title& title = kTitles[static_cast<std::size_t>(column - kBars)];
        QLabel* label = roleLabel(tr(title.text), "section", this);
        label->setToolTip(tr(title.help));
        m_grid->addWidget(label, 0, column, column == kBars ? Qt::AlignLeft : Qt::AlignRight);
        m_titles.push_back(label);
    }
}

AnswerRows::~AnswerRows() = default;

void AnswerRows::build(std::size_t rows) {
    while (m_lines.size() > rows) {
        for (QWidget* widget : m_lines.back()->widgets()) delete widget;
        m_lines.pop_back();
    }
    while (m_lines.size() < rows) {
        const int at = static_cast<int>(m_lines.size()) + 1;
        auto line = std::make_unique<Line>();
        line->badge = new LetterBadge(18, this);
        line->name = new ElidedLabel("label", Qt::ElideRight, this);
        line->text = roleLabel({}, "fact", this);
        line->text->setTextFormat(Qt::RichText);
        line->text->setWordWrap(true);
        line->text->setTextInteractionFlags(Qt::LinksAccessibleByMouse); // the keys choose a bar
        line->text->setMinimumHeight(px(20));
        line->bars = new TokenBars(this);
        for (std::size_t i = 0; i < line->numbers.size(); ++i) {
            line->numbers[i] = new LiveNumber(12, QFont::Normal, this, m_workbench.clock());
            line->numbers[i]->setObjectName(QString("%1 %2").arg(kTitles[i + 1].text).arg(m_lines.size()));
        }
        const std::vector<QWidget*> widgets = line->widgets();
        for (int column = 0; column < kColumns; ++column)
            m_grid->addWidget(widgets[static_cast<std::size_t>(column)], at, column,
                              column == kText || column == kBars ? Qt::Alignment()
                              : column >= kFirstNumber           ? Qt::AlignVCenter | Qt::AlignRight
                                                                 : Qt::AlignVCenter);
        const std::size_t row = m_lines.size();
        addCopying(line->text, row);
        addCopying(line->bars, row);
        line->text->setObjectName(QString("answer%1").arg(row));
        line->bars->setObjectName(QString("answerBars%1").arg(row));
        connect(line->text, &QLabel::linkActivated, this, [this, row](const QString& link) { follow(row, link); });
        connect(line->bars, &TokenBars::chosen, this,
                [this, row](int token) { emit tokenChosen(static_cast<int>(row), token); });
        m_lines.push_back(std::move(line));
    }
    fitWidth();
}

void AnswerRows::refresh() {
    const auto& rows = m_jobs.rows();
    if (rows.size() != m_lines.size()) build(rows.size());
    QString expected;
    for (const TokenIndex token : m_jobs.answerTokens())
        expected += fromUtf8(std::string(m_jobs.live()->tokens().textOf(token)));
    m_expected->setFullText(expected.isEmpty() ? tr("no answer is expected")
                                               : tr("expected: %1").arg(expected.trimmed().replace('\n', "↵")));
    const ViewInput input = m_workbench.viewInput();
    for (std::size_t row = 0; row < rows.size(); ++row) fill(row, input);
}

void AnswerRows::fill(std::size_t index, const ViewInput& input) {
    const LiveAnswerJobs::Row& row = m_jobs.rows()[index];
    Line& line = *m_lines[index];
    QColor colour = qColor(chrome().text3);
    line.badge->setVisible(index > 0);
    QString name = tr("Full cache"), variant, who = name, help = tr("All tokens kept");
    if (index > 0 && index <= input.panes.size()) {
        const PaneData& pane = input.panes[index - 1];
        line.badge->show(pane.letter, pane.policyId);
        colour = qColor(policyStyle(pane.policyId, appearance().theme).colour);
        name = fromUtf8(pane.policyName);
        if (std::ranges::count(input.panes, pane.policyName, &PaneData::policyName) > 1)
            variant = fromUtf8(pane.variant); // else both are named alike
        who = tr("Pane %1").arg(QChar(pane.letter));
        help = fromUtf8(paneTitle(pane));
        if (row.live.simulated) help += "\n" + tr("Simulated on full-attention tensors.");
        for (const std::string& note : row.live.notes) help += "\n" + fromUtf8(note);
    }
    if (!variant.isEmpty()) name += " " + variant;
    const QString mark = row.live.simulated ? tr(" (simulated)") : QString();
    line.name->setFullText(name + mark, {(variant.isEmpty() ? name : variant) + mark});
    line.name->setToolTip(help);
    QString html, plain;
    if (!row.error.empty()) {
        plain = fromUtf8(row.error);
        html = QString("<span style='color:%1'>%2</span>")
                   .arg(qColor(row.isTextOutdated ? chrome().text3 : chrome().error).name(), plain.toHtmlEscaped());
    } else if (row.live.greedy) {
        const auto& full = m_jobs.rows().front().live.greedy;
        html = textHtml(*row.live.greedy, index > 0 && full ? &*full : nullptr, row.isTextOutdated);
        plain = fromUtf8(row.live.greedy->text);
        if (plain.isEmpty()) html = tr("(no text)");
    } else {
        html = m_jobs.isRunning() && m_jobs.writing().mostTokens > 0 ? "…" : "–";
    }
    if (line.text->text() != html) line.text->setText(html);
    line.text->setAccessibleName(tr("Answer, %1: %2").arg(who, plain));
    fillNumbers(index);
    fillBars(index, input, colour);
}

void AnswerRows::fillNumbers(std::size_t index) {
    const LiveAnswerJobs::Row& made = m_jobs.rows()[index];
    const LiveRow& row = made.live;
    const bool isFull = index == 0;
    std::array<QString, kColumns - kFirstNumber> texts;
    texts.fill("–");
    if (row.expected) {
        texts[kLoss - kFirstNumber] = numberOr(row.expected->nll, errorText);
        if (!isFull) texts[kKl - kFirstNumber] = numberOr(row.expected->klMean, errorText);
        if (!isFull) texts[kFlips - kFirstNumber] = numberOr(row.expected->flipRate, flipText);
    }
    if (row.greedy && !isFull && (row.greedy->firstDivergence || !row.greedy->ids.empty())) // else still being written
        texts[kDiffers - kFirstNumber] =
            row.greedy->firstDivergence ? tr("at %1").arg(*row.greedy->firstDivergence) : tr("never");
    if (row.sent || (isFull && !made.key.empty())) texts[kKept - kFirstNumber] = keptText(row.kept);
    if (row.sent) texts[kSelect - kFirstNumber] = milliText(row.selectMs);
    if (row.sent || row.expected)
        texts[kStores - kFirstNumber] = numberOr(row.sent ? row.sent->bytes : row.expected->bytes, bytesText);
    for (std::size_t i = 0; i < texts.size(); ++i)
        m_lines[index]->numbers[i]->show(texts[i], texts[i] != "–" && (i == kDiffers - kFirstNumber
                                                                           ? made.isTextOutdated // it is about the text
                                                                           : made.isOutdated));
}

/// All rows have one scale: the largest loss of any token, but at least 1 nat.
void AnswerRows::fillBars(std::size_t index, const ViewInput& input, const QColor& colour) {
    double largest = 1;
    for (const LiveAnswerJobs::Row& row : m_jobs.rows())
        if (row.live.expected)
            for (const double loss : row.live.expected->losses)
                if (std::isfinite(loss)) largest = std::max(largest, loss);
    const LiveAnswerJobs::Row& row = m_jobs.rows()[index];
    const std::vector<TokenIndex> tokens = m_jobs.answerTokens();
    std::vector<TokenBars::Bar> bars;
    for (std::size_t i = 0; row.live.expected && i < std::min(tokens.size(), row.live.expected->losses.size()); ++i) {
        const live::ExpectedAnswer& expected = *row.live.expected;
        const double loss = expected.losses[i];
        const bool isFlipped = i < expected.flips.size() && expected.flips[i];
        QString tip = fromUtf8(quotedToken(input, tokens[i])) + "\n" +
                      (std::isfinite(loss) ? tr("loss %1 nat").arg(errorText(loss))
                                           : tr("predicted before the context was pruned"));
        if (index > 0 && i < expected.kl.size() && std::isfinite(expected.kl[i]))
            tip += "\n" + tr("KL to the full cache %1 nat").arg(errorText(expected.kl[i]));
        if (isFlipped) tip += "\n" + tr("another token is the likeliest");
        bars.push_back({loss / largest, isFlipped, tip});
    }
    m_lines[index]->bars->show(std::move(bars), colour, row.isOutdated);
}

void AnswerRows::addCopying(QWidget* part, std::size_t row) {
    part->setContextMenuPolicy(Qt::ActionsContextMenu);
    auto* answer = new QAction(tr("Copy the answer"), part);
    connect(answer, &QAction::triggered, this, [this, row] { copyAnswer(row); });
    auto* all = new QAction(tr("Copy all rows"), part);
    connect(all, &QAction::triggered, this, [this] {
        QGuiApplication::clipboard()->setText(tableAsTsv(answerTable(m_jobs, m_workbench.viewInput())));
    });
    part->addActions({answer, all});
    part->setProperty("row", static_cast<int>(row));
    part->installEventFilter(this);
}

void AnswerRows::copyAnswer(std::size_t row) const {
    if (row < m_jobs.rows().size() && m_jobs.rows()[row].live.greedy)
        QGuiApplication::clipboard()->setText(fromUtf8(m_jobs.rows()[row].live.greedy->text));
}

/// Ctrl+C copies the answer of the row, whereas in the rest of the window it copies a picture.
bool AnswerRows::eventFilter(QObject* part, QEvent* event) {
    const bool isKey = event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress;
    if (!isKey || !static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy)) return false;
    event->accept();
    if (event->type() == QEvent::KeyPress) copyAnswer(part->property("row").toULongLong());
    return true;
}

void AnswerRows::setChosen(int row, int token) {
    for (int i = 0; i < std::ssize(m_lines); ++i)
        m_lines[static_cast<std::size_t>(i)]->bars->setChosen(i == row ? token : -1);
}

/// Only the tokens of the expected answer have queries. A token of the text counts as one of them if all tokens before
/// it are the same.
void AnswerRows::follow(std::size_t row, const QString& link) {
    if (row >= m_jobs.rows().size()) return;
    const auto& greedy = m_jobs.rows()[row].live.greedy;
    const auto index = link.toULongLong();
    const std::vector<TokenIndex> tokens = m_jobs.answerTokens();
    const auto& ids = m_workbench.capture()->tokens().ids;
    bool isSame = greedy && index < tokens.size() && index < greedy->ids.size();
    for (std::size_t i = 0; isSame && i < index; ++i)
        isSame = greedy->ids[i] == ids[static_cast<std::size_t>(tokens[i])];
    if (isSame)
        emit tokenChosen(static_cast<int>(row), static_cast<int>(index));
    else
        emit saidNothing(
            tokens.empty() ? tr("Attention is known for tokens of an expected answer only: open the context with one.")
                           : tr("This token is not of the expected answer, for which alone attention is "
                                "known: click a bar."));
}

void AnswerRows::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fitWidth();
}

void AnswerRows::fitWidth() {
    for (const auto& line : m_lines) line->name->setFixedWidth(px(width() < px(kWideNames) ? 72 : 104));
    for (int column = kBars; column < kColumns; ++column) {
        const bool isShown = width() >= px(kNeeds[static_cast<std::size_t>(column - kBars)]);
        m_titles[static_cast<std::size_t>(column - kBars)]->setVisible(isShown);
        for (const auto& line : m_lines) line->widgets()[static_cast<std::size_t>(column)]->setVisible(isShown);
    }
}

} // namespace kvscope
