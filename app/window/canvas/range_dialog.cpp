// For a figure that must show exactly the same part as another one, in exactly the same colours.
#include "app/window/canvas/range_dialog.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
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

constexpr double kLeftOut = 0.01; // fraction of the cells that are left out at each end

QString numberText(double value) { return QString::number(value, 'g', 8); }

} // namespace

bool RangeDialog::Row::isTyped() const { return from && (from->isModified() || to->isModified()); }

void RangeDialog::Row::followAgain() const {
    for (QLineEdit* edit : {from, to}) edit->setModified(false);
}

void RangeDialog::Row::show(double low, double high) const {
    from->setText(numberText(low));
    to->setText(numberText(high));
}

RangeDialog::RangeDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent)
    : QDialog(parent), m_workbench(workbench), m_view(canvas.view()), m_canvas(&canvas), m_grid(new QGridLayout(this)),
      m_why(named("rangeWhy", wrappedLabel({}, "error", this))) {
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Range: %1").arg(fromUtf8(m_view.card().name)));
    const Scene& scene = canvas.canvas()->scene();
    m_grid->addWidget(new QLabel(tr("from"), this), 0, 1);
    m_grid->addWidget(new QLabel(tr("to"), this), 0, 2);
    m_across = addRow(1, tr("Across"), "x");
    m_across.show(scene.xMin, scene.xMax);
    m_along = addRow(2, scene.yDown ? tr("Down") : tr("Up"), "y");
    m_along.show(scene.yMin, scene.yMax);
    addColourRow();
    connect(&m_workbench, &Workbench::rangeChanged, this, [this](const QString& viewId) {
        if (viewId == fromUtf8(m_view.card().id)) followRange();
    });
    connect(&m_workbench, &Workbench::sessionChanged, this, &RangeDialog::followRange);
    m_grid->addWidget(m_why, 5, 0, 1, 3);
    addButtons();
}

void RangeDialog::addButtons() {
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Apply | QDialogButtonBox::Close, this);
    m_grid->addWidget(buttons, 6, 0, 1, 3);
    QPushButton* apply = buttons->button(QDialogButtonBox::Apply);
    apply->setDefault(true); // for Enter in a field, which would press the first button, Close
    connect(apply, &QPushButton::clicked, this, &RangeDialog::apply);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
}

RangeDialog::Row RangeDialog::addRow(int row, const QString& words, const QString& name) {
    m_grid->addWidget(new QLabel(words, this), row, 0);
    const auto field = [&](int column, const QString& end, const QString& endWord) {
        auto* edit = added(m_grid, new QLineEdit(this), row, column);
        edit->setObjectName(name + end);
        edit->setAccessibleName(words + ", " + endWord);
        edit->setFont(numberFont(12));
        edit->setMinimumWidth(px(110));
        return edit;
    };
    return {field(1, "From", tr("from")), field(2, "To", tr("to"))};
}

void RangeDialog::addColourRow() {
    if (!withScale([](const ColourScale&) {})) return;
    m_colours = addRow(3, tr("Colours"), "colours");
    m_grid->addLayout(colourButtons(), 4, 1, 1, 2);
    connect(&m_workbench, &Workbench::sessionChanged, this, &RangeDialog::followColours);
    // A new range of the view has new automatic colour limits.
    connect(&m_workbench, &Workbench::dataChanged, this, [this](const QString& viewId) {
        if (viewId == fromUtf8(m_view.card().id)) followColours();
    });
    followColours();
}

QHBoxLayout* RangeDialog::colourButtons() {
    auto* fits = new QHBoxLayout;
    const auto button = [&](const char* name, const QString& text, auto settingChange) {
        auto* push = added(fits, named(name, new QPushButton(text, this)));
        connect(push, &QPushButton::clicked, this, [this, settingChange] { applyColourChange(settingChange()); });
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
    return fits;
}

bool RangeDialog::read(const Row& row, double& low, double& high) {
    bool lowIsNumber = false, highIsNumber = false;
    low = row.from->text().toDouble(&lowIsNumber);
    high = row.to->text().toDouble(&highIsNumber);
    const bool good = lowIsNumber && highIsNumber && low < high && std::isfinite(high - low);
    refuse(row, good ? QString() : tr("A range is two numbers, the first below the second."));
    return good;
}

void RangeDialog::refuse(const Row& row, const QString& why) {
    for (QLineEdit* edit : {row.from, row.to}) {
        setWrong(edit, !why.isEmpty());
        edit->setAccessibleDescription(why);
    }
    if (!why.isEmpty()) m_why->setText(why);
}

bool RangeDialog::withScale(const std::function<void(const ColourScale&)>& use) const {
    const DrawnView shown = m_workbench.drawn(m_view); // holds the data that the scale refers to
    const auto scale = m_view.colourScale(shown.input, shown.options);
    if (scale) use(*scale);
    return scale != nullptr;
}

void RangeDialog::followColours() {
    if (m_colours.isTyped()) return;
    withScale([this](const ColourScale& scale) {
        const ValueRange range = scale.range();
        m_colours.show(*range.low, *range.high);
        refuse(m_colours, {});
    });
}

void RangeDialog::applyColourChange(const std::optional<SettingChange>& settingChange) {
    if (!settingChange) return;
    m_colours.followAgain();
    m_workbench.change(
        [&](Session& s) {
            for (const auto& [id, text] : settingChange->options) setViewOption(s, m_view.card().id, id, text);
        },
        fromUtf8(settingChange->step));
    followColours(); // also where this changed nothing
}

bool RangeDialog::applyColours() {
    double low = 0, high = 0;
    if (!read(m_colours, low, high)) return false;
    if (!m_colours.isTyped()) return true; // the limits stay as they are, perhaps automatic
    std::optional<SettingChange> change;
    withScale([&](const ColourScale& scale) { change = rangeSetTo(scale, low, high); });
    if (!change) refuse(m_colours, tr("The colours are on a logarithmic scale, which begins above 0."));
    applyColourChange(change);
    return change.has_value();
}

void RangeDialog::followRange() {
    if (!m_canvas || isRangeTyped() || !ShownPlot::of(m_canvas->canvas()->scene()).valid) return;
    const Scene& scene = m_canvas->canvas()->scene();
    m_across.show(scene.xMin, scene.xMax);
    m_along.show(scene.yMin, scene.yMax);
}

void RangeDialog::apply() {
    m_why->clear();
    Viewport::Range range{};
    const bool x = read(m_across, range.xMin, range.xMax), y = read(m_along, range.yMin, range.yMax);
    if (!x || !y || (m_colours.from && !applyColours()) || !isRangeTyped()) return; // a range not typed stays
    for (const Row& row : {m_across, m_along}) row.followAgain();                   // fields follow from now on
    m_workbench.setRange(m_view, range);
}

} // namespace kvscope
