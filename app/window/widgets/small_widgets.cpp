// Small widgets of panels, styled by the style sheet; only the badge paints itself.
#include "app/window/widgets/small_widgets.h"

#include "views/common/policy_style.h"

#include <QHash>
#include <QKeyEvent>
#include <QPainter>
#include <QStyle>
#include <QStyleOptionButton>
#include <QStylePainter>

#include <algorithm>
#include <vector>

namespace kvscope {

namespace {

/// Width of a line in the label's font, cached: measuring takes 0.1 ms, and layouts ask for the same texts again.
int widthOf(const QString& text, const QLabel& label) {
    static QHash<std::pair<QString, QString>, int> known;
    if (known.size() > 2000) known.clear();
    int& width = known[{label.font().key(), text}];
    if (width == 0) width = label.fontMetrics().horizontalAdvance(text);
    return width;
}

} // namespace

QLabel* roleLabel(const QString& text, const char* role, QWidget* parent) {
    auto* label = new QLabel(text, parent);
    label->setProperty("role", role);
    label->setTextFormat(Qt::PlainText);
    return label;
}

QLabel* wrappedLabel(const QString& text, const char* role, QWidget* parent) {
    QLabel* label = roleLabel(text, role, parent);
    label->setWordWrap(true);
    return label;
}

QLabel* messageLabel(const char* role, QWidget* parent) {
    QLabel* label = wrappedLabel({}, role, parent);
    label->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    label->setMinimumHeight(px(32));
    return label;
}

void showText(QLabel* label, const QString& text) {
    if (label->text() != text) label->setText(text);
}

QLabel* numberLabel(double designSize, int weight, QWidget* parent) {
    auto* label = new QLabel(parent);
    label->setTextFormat(Qt::PlainText);
    label->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    label->setSizePolicy(QSizePolicy::Minimum, QSizePolicy::Preferred); // never elided
    label->setStyleSheet(QString("font-family: 'Noto Sans Mono', 'DejaVu Sans Mono'; font-size: %1px; font-weight: %2;")
                             .arg(px(designSize))
                             .arg(weight));
    return label;
}

QFrame* separatorLine(QWidget* parent) { return named("separator", new QFrame(parent)); }

QToolButton* iconButton(const char* icon, const QString& tip, QWidget* parent) {
    auto* button = new QToolButton(parent);
    button->setIcon(themedIcon(icon));
    button->setIconSize({px(16), px(16)});
    button->setToolTip(tip);
    button->setAccessibleName(tip);
    button->setFocusPolicy(Qt::TabFocus);
    return button;
}

namespace {

/// A button that elides its text where it is narrower than it asks for; an arrow at the end stays.
class ChipButton : public QPushButton {
public:
    using QPushButton::QPushButton;

protected:
    void paintEvent(QPaintEvent*) override {
        QStylePainter painter(this);
        QStyleOptionButton option;
        initStyleOption(&option);
        if (const int lacking = sizeHint().width() - width(); lacking > 0) {
            const QString arrow = text().endsWith(QString::fromUtf8(" ▾")) ? QString::fromUtf8(" ▾") : QString();
            const int room = option.fontMetrics.horizontalAdvance(text()) - lacking;
            option.text = option.fontMetrics.elidedText(text().chopped(arrow.size()), Qt::ElideRight,
                                                        room - option.fontMetrics.horizontalAdvance(arrow)) +
                          arrow;
        }
        painter.drawControl(QStyle::CE_PushButton, option);
    }
};

} // namespace

QPushButton* wordButton(const QString& text, QWidget* parent) {
    auto* button = new QPushButton(text, parent);
    button->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    return button;
}

QScrollArea* scrollArea(QWidget* parent) {
    auto* area = new QScrollArea(parent);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    area->setFocusPolicy(Qt::NoFocus);
    return area;
}

QPushButton* chipButton(const QString& text, const char* tone, QWidget* parent) {
    auto* chip = new ChipButton(text, parent);
    chip->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    chip->setProperty("chip", tone);
    chip->setFocusPolicy(Qt::TabFocus);
    return chip;
}

bool ValueField::event(QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride) {
        const auto& key = *static_cast<QKeyEvent*>(event);
        const bool isExport = key.modifiers() == Qt::ControlModifier && key.key() == Qt::Key_E; // to Qt: end of line
        if (isExport || (!isModified() && (key.matches(QKeySequence::Undo) || key.matches(QKeySequence::Redo)))) {
            event->ignore();
            return true;
        }
    }
    return QLineEdit::event(event);
}

QLineEdit* numberField(double designWidth, const QString& accessibleName, QWidget* parent) {
    auto* field = new ValueField(parent);
    field->setProperty("number", true);
    field->setAlignment(Qt::AlignRight);
    field->setFixedWidth(px(designWidth));
    field->setAccessibleName(accessibleName);
    return field;
}

void setWrong(QLineEdit* field, bool wrong) {
    if (field->property("wrong").toBool() == wrong) return;
    field->setProperty("wrong", wrong);
    repolish(field);
}

QWidget* tabAfter(QWidget* before, QWidget* place) {
    std::vector<QWidget*> stops;
    QWidget* next = place;
    do {
        const bool isIn = next == place || place->isAncestorOf(next);
        if (isIn && (next->focusPolicy() & Qt::TabFocus)) stops.push_back(next);
        next = next->nextInFocusChain();
    } while (next != place);
    for (QWidget* stop : stops) {
        QWidget::setTabOrder(before, stop);
        before = stop;
    }
    return before;
}

void discard(QWidget* widget) {
    if (!widget) return;
    widget->hide();
    widget->deleteLater();
}

void repolish(QWidget* widget) {
    widget->style()->unpolish(widget);
    widget->style()->polish(widget);
    widget->update();
}

LetterBadge::LetterBadge(double designSize, QWidget* parent) : QWidget(parent) {
    setFixedSize(px(designSize), px(designSize));
}

void LetterBadge::show(char letter, const std::string& policyId) {
    if (letter == m_letter && policyId == m_policyId) return;
    m_letter = letter;
    m_policyId = policyId;
    setAccessibleName(QString("Pane %1").arg(QChar(letter)));
    update();
}

void LetterBadge::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Colour ground = policyStyle(m_policyId, appearance().theme).colour;
    painter.setPen(Qt::NoPen);
    painter.setBrush(qColor(ground));
    painter.drawRoundedRect(rect(), px(3), px(3));
    painter.setPen(qColor(textOn(ground)));
    QFont font = interfaceFont(12, QFont::DemiBold);
    font.setPixelSize(std::max(8, height() * 64 / 100));
    painter.setFont(font);
    painter.drawText(rect(), Qt::AlignCenter, QString(QChar(m_letter)));
}

ElidedLabel::ElidedLabel(const char* role, Qt::TextElideMode mode, QWidget* parent) : QLabel(parent), m_mode(mode) {
    setProperty("role", role);
    setTextFormat(Qt::PlainText);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void ElidedLabel::setFullText(const QString& text, const QStringList& shorter) {
    if (text == m_full) return;
    m_full = text;
    m_shorter = shorter;
    setToolTip(text);
    setAccessibleName(text);
    updateGeometry();
    elide();
}

QSize ElidedLabel::minimumSizeHint() const {
    ensurePolished();
    const QMargins around = contentsMargins();
    return {px(40), around.top() + fontMetrics().height() + around.bottom()};
}

QSize ElidedLabel::sizeHint() const {
    ensurePolished();
    return {widthOf(m_full, *this) + 2, fontMetrics().height()};
}

void ElidedLabel::resizeEvent(QResizeEvent* event) {
    QLabel::resizeEvent(event);
    elide();
}

void ElidedLabel::elide() {
    ensurePolished();
    const QStringList texts = QStringList(m_full) + m_shorter;
    const int room = contentsRect().width();
    const auto whole = std::ranges::find_if(texts, [&](const QString& text) { return widthOf(text, *this) <= room; });
    setText(whole != texts.end() ? *whole : fontMetrics().elidedText(texts.last(), m_mode, room));
}

} // namespace kvscope
