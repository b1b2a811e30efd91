// The picture fills itself: Workbench surveys the layers one by one while nothing else is to be computed.
#include "app/window/panels/head_picker.h"

#include "app/window/appearance.h"
#include "app/window/number_text.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr double kLabelWidth = 20, kLabelHeight = 16;
constexpr double kBarGap = 8, kBarHeight = 8, kTickHeight = 18; // the colour bar under the cells, and its numbers
// One fixed range, so that colours mean the same after every change: the errors that matter lie between 3 % and 100 %.
constexpr double kLowError = 0.03, kHighError = 1;

double placeOf(double error) {
    return std::log(std::max(error, kLowError) / kLowError) / std::log(kHighError / kLowError);
}

Colour errorColour(double error) {
    return colourMap("viridis", placeOf(error));
}

/// The colours from the least to the largest error, with the numbers that a logarithm takes.
void drawColourBar(QPainter& painter, const QRectF& bar, const Theme& theme) {
    for (int x = 0; x < qRound(bar.width()); ++x)
        painter.fillRect(QRectF(bar.left() + x, bar.top(), 1, bar.height()), qColor(colourMap("viridis", (x + 0.5) / bar.width())));
    for (const auto& [error, text] : {std::pair(kLowError, "≤0.03"), {0.1, "0.1"}, {0.3, "0.3"}, {kHighError, "≥1"}}) {
        const double x = std::clamp(bar.left() + placeOf(error) * bar.width(), bar.left() + 0.5, bar.right() - 0.5);
        const double width = px(40), left = std::clamp(x - width / 2, bar.left(), bar.right() - width);
        const Qt::Alignment side = error == kLowError ? Qt::AlignLeft : error == kHighError ? Qt::AlignRight : Qt::AlignHCenter;
        painter.setPen(qColor(theme.axis));
        painter.drawLine(QPointF(x, bar.bottom()), QPointF(x, bar.bottom() + px(3)));
        painter.setPen(qColor(theme.text3));
        painter.drawText(QRectF(left, bar.bottom() + px(3), width, px(kTickHeight - 4)), side | Qt::AlignTop | Qt::TextDontClip, QString::fromUtf8(text));
    }
}

} // namespace

HeadPicker::HeadPicker(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setFocusPolicy(Qt::TabFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Heads of the capture: layers down, KV heads across"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(&m_workbench, &Workbench::sessionChanged, this, qOverload<>(&QWidget::update));
    connect(&m_workbench, &Workbench::surveyChanged, this, qOverload<>(&QWidget::update));
    connect(&m_workbench, &Workbench::captureChanged, this, [this] {
        updateGeometry();
        update();
    });
}

int HeadPicker::rowCount() const {
    return m_workbench.capture() ? static_cast<int>(m_workbench.capture()->info().layers.size()) : 0;
}

int HeadPicker::columnCount() const {
    return m_workbench.capture() ? m_workbench.capture()->info().numKvHeads : 0;
}

double HeadPicker::pitch() const {
    return std::clamp(px(264) / static_cast<double>(std::max(1, rowCount())), static_cast<double>(px(6)),
                      static_cast<double>(px(17)));
}

QSize HeadPicker::sizeHint() const {
    return {px(200), static_cast<int>(px(kLabelHeight) + rowCount() * pitch() + px(kBarGap + kBarHeight + kTickHeight))};
}

QRectF HeadPicker::cellBox(Cell cell) const {
    const double width = (this->width() - px(kLabelWidth) - px(2)) / static_cast<double>(std::max(1, columnCount()));
    return {px(kLabelWidth) + cell.column * width, px(kLabelHeight) + cell.row * pitch(), width - 1, pitch() - 1};
}

HeadPicker::Cell HeadPicker::cellAt(QPointF point) const {
    for (int row = 0; row < rowCount(); ++row)
        for (int column = 0; column < columnCount(); ++column)
            if (cellBox({row, column}).adjusted(0, 0, 1, 1).contains(point))
                return {row, column};
    return {};
}

std::optional<double> HeadPicker::errorOf(Cell cell) const {
    const LayerIndex layer = m_workbench.capture()->info().layers[static_cast<std::size_t>(cell.row)].layer;
    const std::vector<double>* errors = m_workbench.surveyedErrors(layer);
    if (!errors || static_cast<std::size_t>(cell.column) >= errors->size())
        return std::nullopt;
    return (*errors)[static_cast<std::size_t>(cell.column)];
}

void HeadPicker::paintEvent(QPaintEvent*) {
    if (!m_workbench.capture())
        return;
    QPainter painter(this);
    const Theme& theme = chrome();
    const Session& session = m_workbench.session();
    const auto& layers = m_workbench.capture()->info().layers;
    painter.setFont(numberFont(10));
    painter.setPen(qColor(theme.text3));
    const int everyRow = pitch() < px(11) ? 8 : 1;
    const int everyColumn = cellBox({0, 0}).width() < px(16) ? 8 : 1;
    for (int column = 0; column < columnCount(); column += everyColumn)
        painter.drawText(QRectF(cellBox({0, column}).left(), 0, cellBox({0, column}).width(), px(kLabelHeight - 2)),
                         Qt::AlignCenter | Qt::TextDontClip, QString::number(column));
    const QPointF barAt(px(kLabelWidth), cellBox({rowCount(), 0}).top() + px(kBarGap));
    drawColourBar(painter, {barAt, QSizeF(width() - px(kLabelWidth + 3), px(kBarHeight))}, theme);
    QRectF selected;
    for (int row = 0; row < rowCount(); ++row) {
        const LayerIndex layer = layers[static_cast<std::size_t>(row)].layer;
        painter.setPen(qColor(theme.text3));
        if (row % everyRow == 0)
            painter.drawText(QRectF(0, cellBox({row, 0}).top(), px(kLabelWidth - 4), pitch()),
                             Qt::AlignRight | Qt::AlignVCenter | Qt::TextDontClip, QString::number(layer.value));
        for (int column = 0; column < columnCount(); ++column) {
            const QRectF box = cellBox({row, column});
            const std::optional<double> error = errorOf({row, column});
            if (!error) {
                painter.setPen(qColor(theme.border));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
            } else {
                painter.fillRect(box, qColor(std::isnan(*error) ? theme.notANumber : errorColour(*error)));
            }
            if (layer == session.layer && column == session.kvHead.value)
                selected = box;
        }
    }
    painter.setBrush(Qt::NoBrush);
    if (m_hovered.row >= 0) {
        painter.setPen(QPen(qColor(theme.ink), 1.5));
        painter.drawRect(cellBox(m_hovered));
    }
    painter.setPen(QPen(qColor(theme.casing), 4));
    painter.drawRect(selected);
    painter.setPen(QPen(qColor(theme.ink), 2));
    painter.drawRect(selected);
    if (hasFocus())
        painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
}

void HeadPicker::choose(Cell cell) {
    const auto capture = m_workbench.capture();
    if (cell.row < 0 || cell.row >= rowCount() || cell.column < 0 || cell.column >= columnCount())
        return;
    const LayerIndex layer = capture->info().layers[static_cast<std::size_t>(cell.row)].layer;
    m_workbench.change(
        [&](Session& s) {
            s.layer = layer;
            chooseKvHead(s, KvHeadIndex(cell.column), *capture);
        },
        tr("Head"), hasFocus() ? "head" : QString());
}

void HeadPicker::mousePressEvent(QMouseEvent* event) {
    choose(cellAt(event->position()));
}

void HeadPicker::mouseMoveEvent(QMouseEvent* event) {
    m_hovered = cellAt(event->position());
    update();
}

void HeadPicker::keyPressEvent(QKeyEvent* event) {
    const auto& layers = m_workbench.capture()->info().layers;
    const auto row = std::find_if(layers.begin(), layers.end(),
                                  [&](const LayerInfo& l) { return l.layer == m_workbench.session().layer; });
    Cell cell{static_cast<int>(row - layers.begin()), m_workbench.session().kvHead.value};
    switch (event->key()) {
    case Qt::Key_Left: --cell.column; break;
    case Qt::Key_Right: ++cell.column; break;
    case Qt::Key_Up: --cell.row; break;
    case Qt::Key_Down: ++cell.row; break;
    default: QWidget::keyPressEvent(event); return;
    }
    choose(cell);
}

bool HeadPicker::event(QEvent* event) {
    if (event->type() == QEvent::Leave) {
        m_hovered = {};
        update();
    }
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    auto* help = static_cast<QHelpEvent*>(event);
    const Cell cell = cellAt(help->pos());
    if (cell.row < 0) {
        QToolTip::hideText();
        return true;
    }
    const std::optional<double> error = errorOf(cell);
    QToolTip::showText(help->globalPos(),
                       tr("layer %1, KV head %2 (0-based)\nrelative output error %3")
                           .arg(m_workbench.capture()->info().layers[static_cast<std::size_t>(cell.row)].layer.value)
                           .arg(cell.column)
                           .arg(error ? errorText(*error) : tr("not computed yet")),
                       this);
    return true;
}

} // namespace kvscope
