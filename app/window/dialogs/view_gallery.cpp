// Data that no shown view has are computed by the view's own maker, in one slot, so the gallery never takes more than
// one worker.
#include "app/window/dialogs/view_gallery.h"

#include "app/study/session_requests.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/error.h"
#include "views/common/view_facts.h"

#include <QGridLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>
#include <iterator>
#include <utility>

namespace kvscope {

namespace {

constexpr const char* kSlot = "view gallery";
constexpr int kGutter = 10;

} // namespace

ViewGallery::ViewGallery(Workbench& workbench, const TextService& text, QWidget* parent)
    : QDialog(parent), m_workbench(workbench), m_text(text) {
    setObjectName("viewGallery");
    setWindowTitle(tr("Views"));
    setModal(true);
    auto* column = makeLayout<QVBoxLayout>(this, {16, 12, 0, 0}, 8);
    m_search = new QLineEdit(this);
    m_search->setObjectName("searchViews");
    m_search->setPlaceholderText(tr("Type what you look for: a name, a question, a paper; Enter opens the first"));
    m_search->setAccessibleName(tr("Search views"));
    m_search->addAction(themedIcon("search"), QLineEdit::LeadingPosition);
    m_search->setClearButtonEnabled(true);
    m_search->installEventFilter(this);
    auto* top = new QHBoxLayout;
    top->setContentsMargins(0, 0, px(16), 0);
    top->addWidget(m_search);
    column->addLayout(top);
    auto* area = new QScrollArea(this);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setFocusPolicy(Qt::NoFocus);
    m_body = new QWidget(area);
    m_body->setObjectName("panelBody");
    m_grid = makeLayout<QGridLayout>(m_body, {0, 0, 16, 16}, kGutter);
    area->setWidget(m_body);
    column->addWidget(area);
    for (const char* name : kViewGroups) {
        m_headings.push_back(roleLabel(fromUtf8(name), "strong", m_body));
        for (const View* view : allViews())
            if (kViewGroups[static_cast<std::size_t>(view->card().group)] == name) {
                auto* card = new ViewThumbnail(*view, m_body);
                card->installEventFilter(this);
                connect(card, &QAbstractButton::clicked, this, [this, card] { choose(card); });
                m_cards.push_back(card);
            }
    }
    m_next.setSingleShot(true);
    m_next.setInterval(0);
    connect(&m_next, &QTimer::timeout, this, &ViewGallery::drawNext);
    m_nothing = roleLabel(tr("No view answers to this."), "fact", m_body);
    connect(m_search, &QLineEdit::textChanged, this, &ViewGallery::arrange);
    for (const auto signal : {&Workbench::sessionChanged, &Workbench::captureChanged})
        connect(&m_workbench, signal, this, &ViewGallery::outdate);
    connect(&m_workbench, &Workbench::paneChanged, this, &ViewGallery::outdate);
    connect(&m_workbench, &Workbench::captureChanged, this, [this] { m_data.clear(); });
}

void ViewGallery::present() {
    const QSize room = parentWidget()->size() - QSize(px(60), px(70));
    const int card = m_cards.front()->width() + px(kGutter);
    m_columns = std::clamp((room.width() - px(46)) / card, 1, 5);
    resize(m_columns * card + px(46), std::min(room.height(), px(900)));
    const QPoint corner = parentWidget()->mapToGlobal(QPoint((parentWidget()->width() - width()) / 2, px(44)));
    move(corner);
    m_search->clear();
    arrange();
    show();
    m_search->setFocus();
    m_next.start();
}

std::vector<ViewThumbnail*> ViewGallery::shown() const {
    std::vector<ViewThumbnail*> cards;
    std::ranges::copy_if(m_cards, std::back_inserter(cards),
                         [this](const ViewThumbnail* card) { return card->matches(m_search->text()); });
    return cards;
}

void ViewGallery::arrange() {
    while (QLayoutItem* item = m_grid->takeAt(0)) delete item;
    for (QWidget* part : m_body->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)) part->hide();
    for (int row = 0; row < m_grid->rowCount(); ++row) m_grid->setRowStretch(row, 0);
    for (int column = 0; column <= 5; ++column) m_grid->setColumnStretch(column, column == m_columns ? 1 : 0);
    const std::vector<ViewThumbnail*> cards = shown();
    int row = 0, place = 0, group = -1;
    for (ViewThumbnail* card : cards) {
        const int here = static_cast<int>(card->view().card().group);
        if (std::exchange(group, here) != here) {
            row += place > 0 ? 1 : 0;
            place = 0;
            m_grid->addWidget(m_headings[static_cast<std::size_t>(here)], row++, 0, 1, m_columns);
            m_headings[static_cast<std::size_t>(here)]->show();
        } else if (place == m_columns) {
            ++row;
            place = 0;
        }
        m_grid->addWidget(card, row, place++, Qt::AlignTop);
        card->show();
    }
    if (cards.empty()) {
        m_grid->addWidget(m_nothing, 0, 0, 1, m_columns);
        m_nothing->show();
    }
    m_grid->setRowStretch(row + 1, 1);
}

void ViewGallery::outdate() {
    m_outdated = true;
    m_workbench.cancel(kSlot);
    if (isVisible()) m_next.start();
}

void ViewGallery::drawNext() {
    if (std::exchange(m_outdated, false)) m_old = m_cards;
    if (m_old.empty()) return;
    const auto inSight = std::ranges::find_if(m_old, [](const ViewThumbnail* card) { return card->isVisible(); });
    compute(inSight == m_old.end() ? *m_old.front() : **inSight); // what is searched comes first
}

void ViewGallery::compute(ViewThumbnail& card) {
    const View& view = card.view();
    const auto request = m_workbench.request();
    const ViewDataMaker* maker = makerFor(view);
    DataState there = m_workbench.viewInput(view).data;
    const auto shownViews = m_workbench.shownViews();
    const bool isShown = std::ranges::find(shownViews, &view) != shownViews.end();
    if (!maker || !request || (isShown && there.value && !there.computing)) return draw(card, there);
    const QSize frame = ViewThumbnail::frame();
    const ViewDataRequest wanted = dataRequestFor(view, m_workbench.session(), *request, frame.width(), frame.height());
    const std::string key = maker->key(wanted);
    if (const auto known = m_data.find(&view); known != m_data.end() && known->second.key == key)
        return draw(card, known->second.state);
    const auto take = [this, &card, key](DataState state) {
        m_data[&card.view()] = {key, state};
        draw(card, state);
    };
    Scheduler::Job job;
    job.work = [runner = m_workbench.sharedRunner(), maker, wanted, take](const Checkpoint& checkpoint,
                                                                          const auto& post) {
        const auto value = maker->make(*runner, wanted, checkpoint, [](const auto&) {});
        post([take, value] { take({value, false, 0, {}}); });
    };
    job.failed = [take](std::exception_ptr failure) {
        take({nullptr, false, 0, withFullStop(asSentence(messageOf(failure)))});
    };
    m_workbench.submit(kSlot, std::move(job));
}

void ViewGallery::draw(ViewThumbnail& card, const DataState& data) {
    ViewInput input = m_workbench.viewInput();
    input.data = data;
    input.focus.hovered = -1;
    try {
        card.draw(input, viewOptions(m_workbench.session(), card.view()), m_text);
    } catch (const Error& error) {
        card.setReason(fromUtf8(error.what()));
    }
    std::erase(m_old, &card);
    m_next.start();
}

void ViewGallery::choose(ViewThumbnail* card) {
    hide();
    emit chosen(card->view());
}

bool ViewGallery::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
    const auto& key = static_cast<const QKeyEvent&>(*event);
    const bool inSearch = watched == m_search;
    switch (key.key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (const auto cards = shown(); inSearch && !cards.empty())
            choose(cards.front());
        else if (!inSearch)
            choose(static_cast<ViewThumbnail*>(watched));
        return true;
    case Qt::Key_Left:
    case Qt::Key_Right:
        if (inSearch) return false;
        [[fallthrough]];
    case Qt::Key_Up:
    case Qt::Key_Down: moveFocus(key.key()); return true;
    default:
        if (inSearch || key.text().isEmpty() || !key.text().at(0).isPrint() || key.text() == " ") return false;
        m_search->setFocus(); // typing on a card searches
        m_search->insert(key.text());
        return true;
    }
}

/// To the nearest card in that direction; up from the first row leads to the search.
void ViewGallery::moveFocus(int key) {
    const auto cards = shown();
    if (cards.empty()) return;
    const auto here = std::ranges::find(cards, focusWidget());
    ViewThumbnail* next = nullptr;
    if (here == cards.end()) {
        next = key == Qt::Key_Down ? cards.front() : nullptr;
    } else if (key == Qt::Key_Left || key == Qt::Key_Right) {
        const auto at = here - cards.begin() + (key == Qt::Key_Left ? -1 : 1);
        next = at < 0 || at >= std::ssize(cards) ? *here : cards[static_cast<std::size_t>(at)];
    } else {
        const QPoint from = (*here)->pos();
        const int down = key == Qt::Key_Down ? 1 : -1;
        const auto distance = [&](const ViewThumbnail* card) {
            return (card->y() - from.y()) * down * 10 + std::abs(card->x() - from.x());
        };
        for (ViewThumbnail* card : cards)
            if ((card->y() - from.y()) * down > 0 && (!next || distance(card) < distance(next))) next = card;
        if (!next && down > 0) next = *here;
    }
    if (!next) return m_search->setFocus();
    next->setFocus(Qt::TabFocusReason);
    for (QWidget* area = m_body->parentWidget(); area; area = area->parentWidget())
        if (auto* scrolled = qobject_cast<QScrollArea*>(area)) return scrolled->ensureWidgetVisible(next);
}

void ViewGallery::hideEvent(QHideEvent* event) {
    QDialog::hideEvent(event);
    m_next.stop();
    m_workbench.cancel(kSlot);
}

} // namespace kvscope
