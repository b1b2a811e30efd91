// For a figure that must show exactly the same part as another one, in exactly the same colours.
#include "app/window/canvas/range_dialog.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "views/common/colour_scale.h"

#include <QDialogButtonBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>

#include <cmath>

namespace kvscope {

namespace {

constexpr double kLeftOut = 0.01; // of the cells at each end

void mark(QLineEdit* edit, bool good) {
    edit->setStyleSheet(good ? QString() : QString("border: 2px solid %1").arg(qColor(chrome().error).name()));
    edit->setToolTip(good ? QString() : QObject::tr("Two numbers, the first below the second"));
}

/// Two ascending numbers; marks their fields.
bool read(QLineEdit* from, QLineEdit* to, double& low, double& high) {
    bool lowIsNumber = false, highIsNumber = false;
    low = from->text().toDouble(&lowIsNumber);
    high = to->text().toDouble(&highIsNumber);
    const bool good = lowIsNumber && highIsNumber && low < high && std::isfinite(high - low);
    mark(from, good);
    mark(to, good);
    return good;
}

QString numberText(double value) { return QString::number(value, 'g', 8); }

} // namespace

RangeDialog::RangeDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent)
    : QDialog(parent), m_workbench(workbench), m_view(canvas.view()), m_canvas(&canvas), m_grid(new QGridLayout(this)) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Range: %1").arg(fromUtf8(m_view.card().name)));
    const Scene& scene = canvas.canvas()->scene();
    m_grid->addWidget(new QLabel(tr("from"), this), 0, 1);
    m_grid->addWidget(new QLabel(tr("to"), this), 0, 2);
    m_grid->addWidget(new QLabel(tr("Across"), this), 1, 0);
    m_grid->addWidget(new QLabel(scene.yDown ? tr("Down") : tr("Up"), this), 2, 0);
    m_xFrom = field(1, 1, "xFrom", scene.xMin);
    m_xTo = field(1, 2, "xTo", scene.xMax);
    m_yFrom = field(2, 1, "yFrom", scene.yMin);
    m_yTo = field(2, 2, "yTo", scene.yMax);
    addColourRow();
    connect(&m_workbench, &Workbench::rangeChanged, this, [this](const QString& viewId) {
        if (viewId == fromUtf8(m_view.card().id)) followRange();
    });
    connect(&m_workbench, &Workbench::sessionChanged, this, &RangeDialog::followRange);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Apply | QDialogButtonBox::Close, this);
    m_grid->addWidget(buttons, 5, 0, 1, 3);
    connect(buttons->button(QDialogButtonBox::Apply), &QPushButton::clicked, this, &RangeDialog::apply);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

QLineEdit* RangeDialog::field(int row, int column, const QString& name, double value) {
    auto* edit = new QLineEdit(numberText(value), this);
    edit->setObjectName(name);
    edit->setAccessibleName(name);
    edit->setFont(numberFont(12));
    edit->setMinimumWidth(px(110));
    m_grid->addWidget(edit, row, column);
    return edit;
}

void RangeDialog::addColourRow() {
    if (!withScale([](const ColourScale&) {})) return;
    m_grid->addWidget(new QLabel(tr("Colours"), this), 3, 0);
    m_colourFrom = field(3, 1, "coloursFrom", 0);
    m_colourTo = field(3, 2, "coloursTo", 1);
    auto* fits = new QHBoxLayout;
    const auto button = [&](const char* name, const QString& text, auto settingChange) {
        auto* push = new QPushButton(text, this);
        push->setObjectName(name);
        push->setAutoDefault(false);
        connect(push, &QPushButton::clicked, this, [this, settingChange] { applyColourChange(settingChange()); });
        fits->addWidget(push);
    };
    button("coloursAutomatic", tr("Automatic"), [] { return std::optional(automaticRange()); });
    if (!m_workbench.session().compared.path.empty())
        button("coloursEach", tr("Each its own"), [] { return std::optional(ownRanges()); });
    const auto without = [this](double share) {
        return [this, share] {
            std::optional<SettingChange> change;
            withScale([&](const ColourScale& scale) {
                const auto [low, high] = scale.middle(share);
                change = rangeSetTo(scale, roundedValue(low), roundedValue(high));
            });
            return change;
        };
    };
    button("coloursFull", tr("All values shown"), without(0));
    button("coloursMiddle", tr("1–99 %"), without(kLeftOut));
    m_grid->addLayout(fits, 4, 1, 1, 2);
    connect(&m_workbench, &Workbench::sessionChanged, this, &RangeDialog::followColours);
    // A new range of the view has new automatic colour limits; they are shown unless the user has typed others.
    connect(&m_workbench, &Workbench::dataChanged, this, [this](const QString& viewId) {
        const bool isTyped = m_colourFrom->isModified() || m_colourTo->isModified();
        if (viewId == fromUtf8(m_view.card().id) && !isTyped) followColours();
    });
    followColours();
}

bool RangeDialog::withScale(const std::function<void(const ColourScale&)>& use) const {
    const DrawnView shown = m_workbench.drawn(m_view); // holds the data that the scale looks at
    const auto scale = m_view.colourScale(shown.input, shown.options);
    if (scale) use(*scale);
    return scale != nullptr;
}

void RangeDialog::followColours() {
    withScale([this](const ColourScale& scale) {
        const ValueRange range = scale.range();
        m_colourFrom->setText(numberText(*range.low));
        m_colourTo->setText(numberText(*range.high));
        mark(m_colourFrom, true);
        mark(m_colourTo, true);
    });
}

void RangeDialog::applyColourChange(const std::optional<SettingChange>& settingChange) {
    if (!settingChange) return;
    m_workbench.change(
        [&](Session& s) {
            for (const auto& [id, text] : settingChange->options) setViewOption(s, m_view.card().id, id, text);
        },
        fromUtf8(settingChange->step));
}

bool RangeDialog::applyColours() {
    double low = 0, high = 0;
    if (!read(m_colourFrom, m_colourTo, low, high)) return false;
    if (!m_colourFrom->isModified() && !m_colourTo->isModified()) return true; // as it is, and perhaps automatic
    std::optional<SettingChange> change;
    withScale([&](const ColourScale& scale) { change = rangeSetTo(scale, low, high); });
    mark(m_colourFrom, change.has_value());
    applyColourChange(change);
    return change.has_value();
}

bool RangeDialog::isRangeTyped() const {
    return m_xFrom->isModified() || m_xTo->isModified() || m_yFrom->isModified() || m_yTo->isModified();
}

void RangeDialog::followRange() {
    if (!m_canvas || isRangeTyped() || !ShownPlot::of(m_canvas->canvas()->scene()).valid) return;
    const Scene& scene = m_canvas->canvas()->scene();
    m_xFrom->setText(numberText(scene.xMin));
    m_xTo->setText(numberText(scene.xMax));
    m_yFrom->setText(numberText(scene.yMin));
    m_yTo->setText(numberText(scene.yMax));
}

void RangeDialog::apply() {
    Viewport::Range range{};
    const bool x = read(m_xFrom, m_xTo, range.xMin, range.xMax), y = read(m_yFrom, m_yTo, range.yMin, range.yMax);
    if (!x || !y || (m_colourFrom && !applyColours()) || !isRangeTyped()) return; // as it is, and perhaps automatic
    for (QLineEdit* edit : {m_xFrom, m_xTo, m_yFrom, m_yTo}) edit->setModified(false); // from now on they follow
    m_workbench.setRange(m_view, range);
}

} // namespace kvscope
