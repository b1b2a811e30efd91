// Unused rows are hidden, not deleted.
#include "app/window/panels/fact_grid.h"

#include "app/window/style/appearance.h"
#include "app/window/widgets/live_number.h"
#include "app/window/widgets/small_widgets.h"

#include <QGridLayout>

namespace kvscope {

FactGrid::FactGrid(QWidget* parent, Clock& clock) : QWidget(parent), m_clock(clock), m_grid(new QGridLayout(this)) {
    m_grid->setContentsMargins(0, 0, 0, 0);
    m_grid->setVerticalSpacing(px(3));
    m_grid->setColumnStretch(0, 1);
}

void FactGrid::show(const Facts& facts, bool areOutdated) {
    for (int i = 0; i < std::max(m_grid->count() / 2, static_cast<int>(facts.size())); ++i) {
        if (2 * i >= m_grid->count()) {
            const int row = i;
            QLabel* label = wrappedLabel({}, "fact", this); // beside a long value in a narrow panel
            m_grid->addWidget(label, row, 0);
            m_grid->addWidget(new LiveNumber(12, QFont::Normal, this, m_clock), row, 1,
                              Qt::AlignRight | Qt::AlignVCenter);
        }
        auto* name = static_cast<QLabel*>(m_grid->itemAt(2 * i)->widget());
        auto* value = static_cast<LiveNumber*>(m_grid->itemAt(2 * i + 1)->widget());
        const bool used = static_cast<std::size_t>(i) < facts.size();
        name->setVisible(used);
        value->setVisible(used);
        if (used) {
            name->setText(facts[i].first);
            value->show(facts[i].second, areOutdated);
        }
    }
}

} // namespace kvscope
