// One cell per head; Workbench scans the layers in the background.
#include "app/window/panels/head_picker.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "views/common/measure_options.h"
#include "views/scene/axes.h"

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>
#include <utility>

namespace kvscope {

namespace {

constexpr double kLabelWidth = 20, kLabelHeight = 16;
constexpr double kBarGap = 8, kBarHeight = 8, kTickHeight = 18; // the colour bar under the cells, and its numbers
constexpr double kAround = kLabelHeight + kBarGap + kBarHeight + kTickHeight;
constexpr double kLeastPitch = 2.0 / 3; // of the widest: in a low column

/// "relative output error 0.116", "attention entropy 3.2 nat".
QString valueText(const MeasureCard& measure, double value) {
    const QString number =
        measure.id == "output_error" ? errorText(value) : scoreText(value) + fromUtf8(unitBehind(measure.unit));
    return QString("%1 %2").arg(fromUtf8(measureWords(measure)), number);
}

constexpr double kLowError = 0.03, kHighError = 1; // the interesting range of errors
constexpr const char* kMap = "viridis";
constexpr double kTickLength = 3, kNumberGap = 6;

double placeOfError(double error) {
    return std::clamp(std::log(std::max(error, kLowError) / kLowError) / std::log(kHighError / kLowError), 0.0, 1.0);
}

std::vector<HeadColours::Number> errorNumbers() {
    std::vector<HeadColours::Number> numbers;
    for (const auto& [error, text] : {std::pair(kLowError, "≤0.03"), {kHighError, "≥1"}, {0.1, "0.1"}, {0.3, "0.3"}})
        numbers.push_back({placeOfError(error), QString::fromUtf8(text)});
    return numbers;
}

/// The bar with ticks and numbers below it, in the painter's font.
void drawColourBar(QPainter& painter, const QRectF& bar, const HeadColours& colours) {
    const Theme& theme = chrome();
    for (int x = 0; x < qRound(bar.width()); ++x)
        painter.fillRect(QRectF(bar.left() + x, bar.top(), 1, bar.height()),
                         qColor(colours.colourAt((x + 0.5) / bar.width())));
    const QFontMetricsF metrics = painter.fontMetrics();
    const double top = bar.bottom() + px(kTickLength);
    const std::vector<HeadColours::Number> numbers = colours.numbers();
    for (const PlacedNumber& number : placeNumbers(numbers, bar.width(), px(kNumberGap), [&](const QString& text) {
             return metrics.horizontalAdvance(text);
         })) {
        const double x = std::clamp(bar.left() + number.tick, bar.left() + 0.5, bar.right() - 0.5);
        painter.setPen(qColor(theme.axis));
        painter.drawLine(QPointF(x, bar.bottom()), QPointF(x, top));
        painter.setPen(qColor(theme.text3));
        painter.drawText(QRectF(bar.left() + number.left, top, number.width, metrics.height()),
                         Qt::AlignLeft | Qt::AlignTop | Qt::TextDontClip, number.text);
    }
}

} // namespace

HeadPicker::HeadPicker(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setFocusPolicy(Qt::TabFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Heads of the capture: layers down, KV heads across"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Maximum);
    m_workbench.tell(this, &HeadPicker::refresh, &Workbench::sessionChanged, &Workbench::layerScanChanged);
    connect(&m_workbench, &Workbench::captureChanged, this, [this] {
        updateGeometry();
        refresh();
    });
}

int HeadPicker::rowCount() const {
    return m_workbench.capture() ? static_cast<int>(m_workbench.capture()->info().layers.size()) : 0;
}

double HeadPicker::pitch() const {
    const double rows = std::max(1, rowCount());
    return std::clamp((height() - px(kAround)) / rows, kLeastPitch * widestPitch(), widestPitch());
}

double HeadPicker::widestPitch() const {
    return std::clamp(px(264) / static_cast<double>(std::max(1, rowCount())), static_cast<double>(px(6)),
                      static_cast<double>(px(17)));
}

QSize HeadPicker::sizeHint() const {
    return {px(200), static_cast<int>(std::ceil(px(kAround) + rowCount() * widestPitch()))};
}

/// Smaller than the size hint, so that a narrow column shows all heads, and a low one the numbers of the colours, too.
QSize HeadPicker::minimumSizeHint() const {
    return {px(140), static_cast<int>(std::ceil(px(kAround) + rowCount() * kLeastPitch * widestPitch()))};
}

QRectF HeadPicker::cellBox(Cell cell) const {
    const double width = (this->width() - px(kLabelWidth) - px(2)) / static_cast<double>(std::max(1, columnCount()));
    return {px(kLabelWidth) + cell.column * width, px(kLabelHeight) + cell.row * pitch(), width - 1, pitch() - 1};
}

HeadPicker::Cell HeadPicker::cellAt(QPointF point) const {
    for (int row = 0; row < rowCount(); ++row)
        for (int column = 0; column < columnCount(); ++column)
            if (cellBox({row, column}).adjusted(0, 0, 1, 1).contains(point)) return {row, column};
    return {};
}

HeadPicker::Cell HeadPicker::chosen() const {
    const auto& layers = m_workbench.capture()->info().layers;
    const auto row = std::ranges::find(layers, m_workbench.session().layer, &LayerInfo::layer);
    return {static_cast<int>(row - layers.begin()), m_workbench.session().kvHead.value};
}

std::optional<double> HeadPicker::valueOf(Cell cell) const {
    const LayerScanResult* layer = m_workbench.layerScan(layerOf(cell));
    if (!layer) return std::nullopt;
    const auto column = static_cast<std::size_t>(cell.column);
    return column < layer->values.size() ? layer->values[column] : NAN;
}

QString HeadPicker::factOf(Cell cell) const {
    const MeasureCard& measure = measureById(m_workbench.session().look.headMeasure);
    const LayerScanResult* layer = m_workbench.layerScan(layerOf(cell));
    const std::optional<double> value = valueOf(cell);
    QString fact = QString("%1 %2").arg(fromUtf8(measureWords(measure)), tr("not computed yet"));
    if (layer && !layer->help.empty())
        fact = QString("%1: %2").arg(fromUtf8(measureWords(measure)), fromUtf8(layer->help));
    else if (value)
        fact = valueText(measure, *value);
    return tr("layer %1, KV head %2 (0-based)").arg(layerOf(cell).value).arg(cell.column) + "\n" + fact;
}

/// Why no head has a number, as far as layers are known; empty where one has, or none is known yet.
QString HeadPicker::whyNoNumbers() const {
    QString why;
    for (int row = 0; row < rowCount(); ++row)
        if (const LayerScanResult* layer = m_workbench.layerScan(layerOf({row, 0}))) {
            if (std::ranges::any_of(layer->values, [](double value) { return !std::isnan(value); })) return {};
            why = layer->refusal.empty() ? tr("no number in any head") : fromUtf8(layer->refusal);
        }
    return why;
}

HeadColours HeadPicker::colours() const {
    std::vector<double> values;
    for (int row = 0; row < rowCount(); ++row)
        if (const LayerScanResult* layer = m_workbench.layerScan(layerOf({row, 0})))
            values.insert(values.end(), layer->values.begin(), layer->values.end());
    return {measureById(m_workbench.session().look.headMeasure), std::move(values)};
}

void HeadPicker::refresh() {
    setAccessibleDescription(m_workbench.capture() ? factOf(chosen()) : QString());
    update();
}

void HeadPicker::drawScale(QPainter& painter, const HeadColours& colours) const {
    const QRectF room(px(kLabelWidth), cellBox({rowCount(), 0}).top() + px(kBarGap), width() - px(kLabelWidth + 3),
                      px(kBarHeight + kTickHeight));
    if (const QString why = whyNoNumbers(); !why.isEmpty()) {
        painter.save();
        painter.setFont(interfaceFont(11));
        painter.setPen(qColor(chrome().text2));
        const QRectF line = room.adjusted(-px(kLabelWidth), 0, 0, 0);
        painter.drawText(line, Qt::AlignLeft | Qt::AlignTop,
                         painter.fontMetrics().elidedText(why, Qt::ElideRight, static_cast<int>(line.width())));
        painter.restore();
    } else if (colours.hasRange()) {
        drawColourBar(painter, {room.topLeft(), QSizeF(room.width(), px(kBarHeight))}, colours);
    }
}

void HeadPicker::paintEvent(QPaintEvent*) {
    if (!m_workbench.capture()) return;
    QPainter painter(this);
    const Theme& theme = chrome();
    const Session& session = m_workbench.session();
    painter.setFont(numberFont(10));
    painter.setPen(qColor(theme.text3));
    const int everyRow = pitch() < px(11) ? 8 : 1;
    const int everyColumn = cellBox({0, 0}).width() < px(16) ? 8 : 1;
    for (int column = 0; column < columnCount(); column += everyColumn)
        painter.drawText(QRectF(cellBox({0, column}).left(), 0, cellBox({0, column}).width(), px(kLabelHeight - 2)),
                         Qt::AlignCenter | Qt::TextDontClip, QString::number(column));
    const HeadColours colours = this->colours();
    drawScale(painter, colours);
    QRectF selected;
    for (int row = 0; row < rowCount(); ++row) {
        const LayerIndex layer = layerOf({row, 0});
        painter.setPen(qColor(theme.text3));
        if (row % everyRow == 0)
            painter.drawText(QRectF(0, cellBox({row, 0}).top(), px(kLabelWidth - 4), pitch()),
                             Qt::AlignRight | Qt::AlignVCenter | Qt::TextDontClip, QString::number(layer.value));
        for (int column = 0; column < columnCount(); ++column) {
            const QRectF box = cellBox({row, column});
            const std::optional<double> value = valueOf({row, column});
            if (!value) {
                painter.setPen(qColor(theme.border));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
            } else {
                painter.fillRect(box, qColor(std::isnan(*value) ? theme.notANumber : colours.colourOf(*value)));
            }
            if (layer == session.layer && column == session.kvHead.value) selected = box;
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
    if (hasFocus()) painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
}

void HeadPicker::choose(Cell cell, const QString& mergeKey) {
    const auto capture = m_workbench.capture();
    if (cell.row < 0 || cell.row >= rowCount() || cell.column < 0 || cell.column >= columnCount()) return;
    const LayerIndex layer = layerOf(cell);
    m_workbench.change(
        [&](Session& s) {
            s.layer = layer;
            chooseKvHead(s, KvHeadIndex(cell.column), *capture);
        },
        tr("Head"), mergeKey);
}

void HeadPicker::mousePressEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) choose(cellAt(event->position()));
}

void HeadPicker::mouseMoveEvent(QMouseEvent* event) {
    m_hovered = cellAt(event->position());
    update();
}

void HeadPicker::keyPressEvent(QKeyEvent* event) {
    if (!m_workbench.capture()) return QWidget::keyPressEvent(event);
    Cell cell = chosen();
    switch (event->key()) {
    case Qt::Key_Left: --cell.column; break;
    case Qt::Key_Right: ++cell.column; break;
    case Qt::Key_Up: --cell.row; break;
    case Qt::Key_Down: ++cell.row; break;
    default: QWidget::keyPressEvent(event); return;
    }
    choose(cell, "head");
}

// A held key makes one step of undo.
void HeadPicker::keyReleaseEvent(QKeyEvent* event) {
    if (!event->isAutoRepeat()) m_workbench.endMerge();
    QWidget::keyReleaseEvent(event);
}

bool HeadPicker::event(QEvent* event) {
    if (event->type() == QEvent::Leave) {
        m_hovered = {};
        update();
    }
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    auto* help = static_cast<QHelpEvent*>(event);
    const Cell cell = cellAt(help->pos());
    QToolTip::showText(help->globalPos(), cell.row < 0 ? QString() : factOf(cell), this); // an empty text hides it
    return true;
}

HeadColours::HeadColours(const MeasureCard& measure, std::vector<double> values)
    : m_isError(measure.id == "output_error"),
      m_scale(std::move(values), measure.isSigned, measure.id, "heads", kMap, {}) {}

Colour HeadColours::colourOf(double value) const {
    return m_isError ? colourMap(kMap, placeOfError(value)) : m_scale.colourOf(value);
}

Colour HeadColours::colourAt(double place) const {
    return m_isError ? colourMap(kMap, place) : colourMap(m_scale.colourMapName(), place, m_scale.inverted());
}

std::vector<HeadColours::Number> HeadColours::numbers() const {
    if (m_isError) return errorNumbers();
    if (m_scale.isEmpty()) return {};
    if (const auto only = m_scale.onlyValue()) return {{m_scale.place(*only), fromUtf8(formatBound(*only))}};
    const ValueRange range = m_scale.range();
    std::vector<Number> numbers{{0, fromUtf8(formatBound(*range.low))}, {1, fromUtf8(formatBound(*range.high))}};
    if (m_scale.isSigned()) {
        numbers.push_back({0.5, "0"});
        return numbers;
    }
    for (const Tick& tick : linearTicks(*range.low, *range.high, 4))
        numbers.push_back({m_scale.place(tick.value), fromUtf8(tick.label)});
    return numbers;
}

std::vector<PlacedNumber> placeNumbers(std::span<const HeadColours::Number> numbers, double barWidth, double gap,
                                       const std::function<double(const QString&)>& widthOf) {
    std::vector<PlacedNumber> placed;
    for (const HeadColours::Number& number : numbers) {
        const double tick = number.place * barWidth, width = widthOf(number.text);
        const double left = std::clamp(tick - width / 2, 0.0, std::max(0.0, barWidth - width));
        const bool isFree = std::ranges::all_of(placed, [&](const PlacedNumber& other) {
            return left >= other.left + other.width + gap || left + width + gap <= other.left;
        });
        if (isFree) placed.push_back({tick, left, width, number.text});
    }
    return placed;
}

} // namespace kvscope
