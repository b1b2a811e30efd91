// Data that no shown view has are computed by the view's own maker, in one slot, so the gallery never takes more than
// one worker.
#include "app/window/dialogs/thumbnail_sheet.h"

#include "app/study/session_requests.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/error.h"
#include "views/common/colour_scale.h"
#include "views/common/view_facts.h"

#include <QGridLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>
#include <iterator>

namespace kvscope {

constexpr const char* kSlot = "thumbnails";
constexpr int kGutter = 10;

ThumbnailSheet::ThumbnailSheet(Workbench& workbench, const TextService& text, QWidget* parent)
    : QDialog(parent), m_workbench(workbench), m_text(text) {
    setModal(true);
    auto* column = makeLayout<QVBoxLayout>(this, {16, 12, 0, 0}, 8);
    m_search = named("searchViews", new QLineEdit(this));
    m_search->setAccessibleName(tr("Search"));
    m_search->addAction(themedIcon("search"), QLineEdit::LeadingPosition);
    m_search->setClearButtonEnabled(true);
    m_search->installEventFilter(this);
    innerLayout<QHBoxLayout>(column, {0, 0, 16, 0})->addWidget(m_search);
    auto* area = added(column, new QScrollArea(this));
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setFocusPolicy(Qt::NoFocus);
    m_body = named("panelBody", new QWidget(area));
    m_grid = makeLayout<QGridLayout>(m_body, {0, 0, 16, 16}, kGutter);
    area->setWidget(m_body);
    m_next.setSingleShot(true);
    m_next.setInterval(0);
    connect(&m_next, &QTimer::timeout, this, &ThumbnailSheet::drawNext);
    m_nothing = roleLabel(tr("Nothing answers to this."), "fact", m_body);
    connect(m_search, &QLineEdit::textChanged, this, &ThumbnailSheet::arrange);
    m_workbench.tell(this, &ThumbnailSheet::outdate, &Workbench::sessionChanged, &Workbench::captureChanged,
                     &Workbench::panesChanged);
    connect(&m_workbench, &Workbench::captureChanged, this, [this] { m_data.clear(); });
}

void ThumbnailSheet::fill(const QString& hint, std::vector<Group> groups) {
    m_search->setPlaceholderText(hint);
    m_groups = std::move(groups);
    for (const auto& [heading, cards] : m_groups) {
        m_headings.push_back(roleLabel(heading, "strong", m_body));
        for (ViewThumbnail* card : cards) {
            card->installEventFilter(this);
            connect(card, &QAbstractButton::clicked, this, [this, card] { choose(card); });
            m_cards.push_back(card);
        }
    }
}

void ThumbnailSheet::present() {
    const QSize room = parentWidget()->size() - QSize(px(60), px(70));
    const int card = m_cards.front()->width() + px(kGutter);
    m_columns = std::clamp((room.width() - px(46)) / card, 1, 5);
    m_search->clear();
    arrange();
    resize(m_columns * card + px(46), std::min(room.height(), m_grid->sizeHint().height() + px(64)));
    move(parentWidget()->mapToGlobal(QPoint((parentWidget()->width() - width()) / 2, px(44))));
    show();
    m_search->setFocus();
    m_next.start();
}

std::vector<ViewThumbnail*> ThumbnailSheet::shown() const {
    std::vector<ViewThumbnail*> cards;
    for (const auto& [heading, group] : m_groups)
        std::ranges::copy_if(group, std::back_inserter(cards), [&, &title = heading](const ViewThumbnail* card) {
            return card->matches(m_search->text(), title);
        });
    return cards;
}

void ThumbnailSheet::arrange() {
    while (QLayoutItem* item = m_grid->takeAt(0)) delete item;
    for (QWidget* part : m_body->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly)) part->hide();
    for (int row = 0; row < m_grid->rowCount(); ++row) m_grid->setRowStretch(row, 0);
    for (int column = 0; column <= 5; ++column) m_grid->setColumnStretch(column, column == m_columns ? 1 : 0);
    int row = 0;
    for (std::size_t group = 0; group < m_groups.size(); ++group) {
        int place = 0;
        for (ViewThumbnail* card : m_groups[group].second) {
            if (!card->matches(m_search->text(), m_groups[group].first)) continue;
            if (place == 0) {
                m_grid->addWidget(m_headings[group], row++, 0, 1, m_columns);
                m_headings[group]->show();
            }
            m_grid->addWidget(card, row + place / m_columns, place % m_columns, Qt::AlignTop);
            card->show();
            ++place;
        }
        row += (place + m_columns - 1) / m_columns;
    }
    if (row == 0) {
        m_grid->addWidget(m_nothing, 0, 0, 1, m_columns);
        m_nothing->show();
    }
    m_grid->setRowStretch(row + 1, 1);
    for (ViewThumbnail* card : m_cards) card->setChecked(!m_search->text().isEmpty() && card == best());
}

ViewThumbnail* ThumbnailSheet::best() const {
    const auto cards = shown();
    const auto titled = std::ranges::find_if(cards, [this](const ViewThumbnail* card) {
        return card->text().contains(m_search->text().trimmed(), Qt::CaseInsensitive);
    });
    return titled != cards.end() ? *titled : cards.empty() ? nullptr : cards.front();
}

void ThumbnailSheet::outdate() {
    m_outdated = true;
    m_workbench.cancel(kSlot);
    if (isVisible()) m_next.start();
}

void ThumbnailSheet::drawNext() {
    if (std::exchange(m_outdated, false)) m_old = m_cards;
    if (m_old.empty()) return;
    const auto inSight = std::ranges::find_if(m_old, [](const ViewThumbnail* card) { return card->isVisible(); });
    compute(inSight == m_old.end() ? *m_old.front() : **inSight); // cards that match the search come first
}

/// The session with the head of the card.
Session ThumbnailSheet::sessionOf(const ViewThumbnail& card) const {
    Session session = m_workbench.session();
    if (const auto& capture = m_workbench.capture(); capture && card.head())
        chooseQueryHead(session, *card.head(), *capture);
    return session;
}

void ThumbnailSheet::compute(ViewThumbnail& card) {
    const View& view = card.view();
    const ViewDataMaker* maker = makerFor(view);
    auto request = m_workbench.request();
    const Session session = sessionOf(card);
    const DataState there = m_workbench.viewInput(view).data;
    const bool isThere =
        !card.head() && std::ranges::count(m_workbench.shownViews(), &view) > 0 && there.value && !there.computing;
    if (!maker || !request || isThere) return draw(card, session, there);
    request->kvHead = session.kvHead;
    request->queryHead = session.queryHead;
    const QSize frame = ViewThumbnail::frame();
    const ViewDataRequest wanted = dataRequestFor(view, session, *request, frame.width(), frame.height());
    const std::string key = maker->key(wanted);
    if (const auto known = m_data.find(&card); known != m_data.end() && known->second.key == key)
        return draw(card, session, known->second.state);
    const auto take = [this, &card, key, session](const DataState& state) {
        m_data[&card] = {key, state};
        draw(card, session, state);
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

void ThumbnailSheet::draw(ViewThumbnail& card, const Session& session, const DataState& data) {
    ViewInput input = m_workbench.viewInput();
    input.kvHead = session.kvHead;
    input.queryHead = session.queryHead;
    input.data = data;
    input.focus.hovered = -1;
    const ParameterValues options = card.head() ? sharedOptions(card, session) : viewOptions(session, card.view());
    try {
        card.draw(input, options, m_text);
    } catch (const Error& error) {
        card.setReason(fromUtf8(error.what()));
    }
    std::erase(m_old, &card);
    m_next.start();
}

/// All heads share one range of colours or of an axis, that of the heads computed so far. When it changes, the cards
/// that were drawn before are drawn again.
ParameterValues ThumbnailSheet::sharedOptions(const ViewThumbnail& card, const Session& session) {
    std::vector<ViewInput> heads(m_data.size(), m_workbench.viewInput());
    std::vector<const ViewInput*> inputs;
    for (const auto& [other, data] : m_data) {
        if (!other->head() || &other->view() != &card.view()) continue;
        ViewInput& head = heads[inputs.size()];
        const Session there = sessionOf(*other);
        head.kvHead = there.kvHead;
        head.queryHead = there.queryHead;
        head.data = data.state;
        inputs.push_back(&head);
    }
    ParameterValues options = withCommonRange(card.view(), inputs, viewOptions(session, card.view()));
    const std::string range = options.has(kValueRangeOption) ? options.text(kValueRangeOption) : std::string();
    if (std::exchange(m_range, range) != range) m_old = m_cards;
    return options;
}

void ThumbnailSheet::choose(ViewThumbnail* card) {
    hide();
    emit chosen(*card);
}

bool ThumbnailSheet::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
    const auto& key = static_cast<const QKeyEvent&>(*event);
    const bool inSearch = watched == m_search;
    switch (key.key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (inSearch && best())
            choose(best());
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

/// Moves the focus to the nearest card in that direction; up from the first row leads to the search field.
void ThumbnailSheet::moveFocus(int key) {
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

ThumbnailSheet::~ThumbnailSheet() { m_workbench.cancel(kSlot); } // hideEvent is not called from ~QDialog

void ThumbnailSheet::hideEvent(QHideEvent* event) {
    QDialog::hideEvent(event);
    m_next.stop();
    m_workbench.cancel(kSlot);
}

ViewGallery::ViewGallery(Workbench& workbench, const TextService& text, QWidget* parent)
    : ThumbnailSheet(workbench, text, parent) {
    setObjectName("viewGallery");
    setWindowTitle(tr("Views"));
    std::vector<Group> groups;
    for (const char* name : kViewGroups) {
        groups.push_back({fromUtf8(name), {}});
        for (const View* view : allViews())
            if (kViewGroups[static_cast<std::size_t>(view->card().group)] == name)
                groups.back().second.push_back(new ViewThumbnail(*view, body()));
    }
    fill(tr("Type what you look for: a name, a question, a paper; Enter opens the first"), std::move(groups));
}

HeadGallery::HeadGallery(Workbench& workbench, const View& view, const TextService& text, QWidget* parent)
    : ThumbnailSheet(workbench, text, parent) {
    setObjectName("headGallery");
    setWindowTitle(
        tr("%1: all heads of layer %2").arg(fromUtf8(view.card().name)).arg(workbench.session().layer.value));
    const CaptureInfo& info = workbench.capture()->info();
    const LayerInfo& layer = info.layerInfo(workbench.session().layer);
    const std::vector<QueryHeadIndex> heads = headsOf(view, layer);
    const bool ofQueries = std::ssize(heads) > info.numKvHeads;
    std::vector<Group> groups;
    for (const QueryHeadIndex head : heads) {
        const QString kvHead = tr("KV head %1").arg(layer.gqaGroupOf[static_cast<std::size_t>(head.value)]);
        if (groups.empty() || (ofQueries && groups.back().first != kvHead))
            groups.push_back({ofQueries ? kvHead : fromUtf8(view.card().name), {}});
        auto* card = new ViewThumbnail(view, body());
        card->showHead(head, ofQueries ? tr("Query head %1").arg(head.value) : kvHead);
        groups.back().second.push_back(card);
    }
    fill(tr("Type the number of a head; Enter opens it"), std::move(groups));
    connect(&workbench, &Workbench::captureChanged, this, &QDialog::reject); // the cards are heads of the old one
}

} // namespace kvscope
