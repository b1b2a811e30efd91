// Unused rows are hidden, not deleted.
#include "app/window/panels/fact_grid.h"

#include "app/window/style/appearance.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/name_value_line.h"
#include "app/window/widgets/small_widgets.h"

#include <QVBoxLayout>

namespace kvscope {

constexpr int kNarrowest = 176; ///< design pixels in the narrowest dock, beside its scroll bar

FactGrid::FactGrid(QWidget* parent, Clock& clock)
    : QWidget(parent), m_clock(clock), m_column(makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 3)) {}

void FactGrid::show(const Facts& facts, bool areOutdated) {
    while (m_rows.size() < facts.size()) {
        // A line of its own: a long value elsewhere takes no room from the name.
        const Row row{wrappedLabel({}, "fact", this), new LiveNumber(12, QFont::Normal, this, m_clock)};
        row.value->breakBeyond(px(kNarrowest));
        m_column->addLayout(new NameValueLine(row.name, row.value, px(4)));
        m_rows.push_back(row);
    }
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        const bool used = i < facts.size();
        m_rows[i].name->setVisible(used);
        m_rows[i].value->setVisible(used);
        if (!used) continue;
        showText(m_rows[i].name, facts[i].first);
        m_rows[i].value->show(facts[i].second, areOutdated);
    }
}

} // namespace kvscope
