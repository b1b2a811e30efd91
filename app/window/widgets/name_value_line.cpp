// Both widths come from the items' own hints, so that moving the value below the name requests no other layout.
#include "app/window/widgets/name_value_line.h"

#include <algorithm>

namespace kvscope {

namespace {

int heightOf(const QLayoutItem& item, int width) {
    return item.hasHeightForWidth() ? item.heightForWidth(width) : item.sizeHint().height();
}

} // namespace

NameValueLine::NameValueLine(QWidget* name, QWidget* value, int spacing) {
    setContentsMargins(0, 0, 0, 0);
    setSpacing(spacing);
    addWidget(name);
    addWidget(value);
}

NameValueLine::~NameValueLine() {
    for (const QLayoutItem* item : m_items) delete item;
}

void NameValueLine::addItem(QLayoutItem* item) { m_items[m_items[0] ? 1 : 0] = item; }

int NameValueLine::count() const {
    return static_cast<int>(std::ranges::count_if(m_items, [](const QLayoutItem* item) { return item != nullptr; }));
}

QLayoutItem* NameValueLine::itemAt(int index) const {
    return index >= 0 && index < count() ? m_items[static_cast<std::size_t>(index)] : nullptr;
}

QLayoutItem* NameValueLine::takeAt(int index) {
    QLayoutItem* taken = itemAt(index);
    std::ranges::replace(m_items, taken, nullptr);
    if (!m_items[0]) std::swap(m_items[0], m_items[1]);
    return taken;
}

/// A value that breaks into lines does so only where a line of its own is too short for it.
bool NameValueLine::isStacked(int width) const {
    const QSize value = m_items[1]->hasHeightForWidth() ? m_items[1]->sizeHint() : m_items[1]->minimumSize();
    return width < m_items[0]->minimumSize().width() + spacing() + value.width();
}

int NameValueLine::valueWidth(int width) const {
    const int least = m_items[1]->minimumSize().width();
    const int most = std::max(least, std::min(m_items[1]->sizeHint().width(), m_items[1]->maximumSize().width()));
    return isStacked(width) ? std::clamp(width, least, most)
                            : std::clamp(width - spacing() - m_items[0]->sizeHint().width(), least, most);
}

int NameValueLine::heightForWidth(int width) const {
    const int value = heightOf(*m_items[1], valueWidth(width));
    return isStacked(width) ? heightOf(*m_items[0], width) + value
                            : std::max(heightOf(*m_items[0], width - spacing() - valueWidth(width)), value);
}

QSize NameValueLine::sizeHint() const {
    const QSize name = m_items[0]->sizeHint(), value = m_items[1]->sizeHint();
    return {name.width() + spacing() + value.width(), std::max(name.height(), value.height())};
}

QSize NameValueLine::minimumSize() const { return m_items[0]->minimumSize().expandedTo(m_items[1]->minimumSize()); }

void NameValueLine::setGeometry(const QRect& place) {
    QLayout::setGeometry(place);
    const int value = valueWidth(place.width());
    const int name = heightOf(*m_items[0], place.width());
    if (isStacked(place.width())) {
        m_items[0]->setGeometry({place.left(), place.top(), place.width(), name});
        m_items[1]->setGeometry(place.adjusted(place.width() - value, name, 0, 0));
    } else {
        m_items[0]->setGeometry(place.adjusted(0, 0, -value - spacing(), 0));
        m_items[1]->setGeometry(place.adjusted(place.width() - value, 0, 0, 0));
    }
}

} // namespace kvscope
