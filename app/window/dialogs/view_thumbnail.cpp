// A card's picture is the view's own scene at a small size, painted like an exported figure.
#include "app/window/dialogs/view_thumbnail.h"

#include "app/export/painter_scene.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"

#include <QPainter>
#include <QTextLayout>

#include <algorithm>

namespace kvscope {

constexpr double kShrink = 0.6; ///< scale of the drawing, at which its labels can still be guessed
constexpr int kWidth = 244, kPictureHeight = 148, kHeight = 224, kMargin = 6;
constexpr std::size_t kMostMarks = 3000; ///< more become one image

namespace {

/// Draws as many whole lines as have room; the last ends with an ellipsis if more would follow.
void drawLines(QPainter& painter, const QRect& place, const QString& text) {
    const QFontMetrics metrics = painter.fontMetrics();
    QTextLayout layout(text, painter.font());
    layout.beginLayout();
    for (int y = place.top(); y + metrics.height() <= place.bottom() + 1; y += metrics.lineSpacing()) {
        QTextLine line = layout.createLine();
        if (!line.isValid()) break;
        line.setLineWidth(place.width());
        const bool isLast = y + metrics.lineSpacing() + metrics.height() > place.bottom() + 1;
        const QString rest = text.mid(line.textStart(), isLast ? -1 : line.textLength());
        painter.drawText(place.left(), y + metrics.ascent(),
                         isLast ? metrics.elidedText(rest, Qt::ElideRight, place.width()) : rest);
    }
    layout.endLayout();
}

} // namespace

ViewThumbnail::ViewThumbnail(const View& view, QWidget* parent) : QAbstractButton(parent), m_view(view) {
    setObjectName(fromUtf8(view.card().id));
    setFixedSize(sizeHint());
    setFocusPolicy(Qt::StrongFocus);
    setCheckable(true); // the search checks the best match
    setAttribute(Qt::WA_Hover);
    setText(fromUtf8(view.card().name));
    setAccessibleName(text());
    setReason(tr("Drawing…"));
    m_summary = fromUtf8(view.card().summary);
    setAccessibleDescription(m_summary);
}

QSize ViewThumbnail::sizeHint() const { return {px(kWidth), px(kHeight)}; }

QSize ViewThumbnail::frame() { return (QSizeF(kWidth - 2 * kMargin, kPictureHeight) / kShrink).toSize(); }

void ViewThumbnail::showHead(QueryHeadIndex head, const QString& name) {
    m_head = head;
    m_summary.clear();
    setText(name);
    setAccessibleName(name);
}

bool ViewThumbnail::matches(const QString& words, const QString& heading) const {
    const ViewCard& card = m_view.card();
    const QString text =
        this->text() + " " + (m_head ? QString() : heading + " " + fromUtf8(card.summary + " " + card.paper));
    const QStringList wanted = words.split(' ', Qt::SkipEmptyParts);
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
}

void ViewThumbnail::setReason(const QString& reason) {
    m_picture = {};
    m_reason = reason;
    setToolTip(reason);
    update();
}

void ViewThumbnail::draw(const ViewInput& input, const ParameterValues& options, const TextService& text) {
    const std::string why = m_view.whyNoPicture(input, options);
    if (!why.empty()) return setReason(fromUtf8(why));
    Viewport viewport;
    viewport.width = frame().width();
    viewport.height = frame().height();
    viewport.theme = appearance().theme;
    viewport.text = &text;
    viewport.forExport = true;
    const double scale = kShrink * appearance().scale * devicePixelRatioF();
    viewport.pixelScale = scale;
    QImage picture((QSizeF(frame()) * scale).toSize(), QImage::Format_ARGB32_Premultiplied);
    picture.fill(qColor(chrome().canvas));
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(scale, scale);
    paintScene(painter, m_view.buildScene(input, options, viewport),
               {.rasteriseAbove = kMostMarks, .rasterDpi = 96 * scale});
    painter.end();
    m_picture = std::move(picture);
    m_reason.clear();
    setToolTip(fromUtf8(m_view.finding(input, options)));
    if (m_head) m_summary = toolTip();
    update();
}

void ViewThumbnail::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setRenderHint(QPainter::SmoothPixmapTransform);
    const Theme& theme = chrome();
    const bool chosen = hasFocus() || isChecked();
    painter.setPen(QPen(qColor(chosen ? theme.ink : theme.border), chosen ? 2 : 1));
    painter.setBrush(qColor(underMouse() ? theme.hover : theme.raised));
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), px(4), px(4));
    const QRect place(px(kMargin), px(kMargin), width() - 2 * px(kMargin), px(kPictureHeight));
    const QFont small = interfaceFont(11);
    if (m_picture.isNull()) {
        painter.fillRect(place, qColor(theme.sunken));
        painter.setFont(small);
        painter.setPen(qColor(theme.text3));
        painter.drawText(place.adjusted(px(12), px(8), -px(12), -px(8)), Qt::AlignCenter | Qt::TextWordWrap, m_reason);
    } else {
        painter.drawImage(place, m_picture);
    }
    const QFont bold = interfaceFont(12, QFont::DemiBold);
    const QRect line(px(kMargin + 4), px(kMargin + kPictureHeight + 4), width() - 2 * px(kMargin + 4), px(18));
    painter.setFont(bold);
    painter.setPen(qColor(theme.text1));
    painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter,
                     QFontMetrics(bold).elidedText(text(), Qt::ElideRight, line.width()));
    painter.setFont(small);
    painter.setPen(qColor(theme.text2));
    drawLines(painter, line.adjusted(0, px(18), 0, px(46)), m_summary);
}

} // namespace kvscope
