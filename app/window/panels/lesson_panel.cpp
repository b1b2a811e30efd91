// A lesson is read from the session whenever its source changes; the reader's progress is kept outside the panel.
#include "app/window/panels/lesson_panel.h"

#include "app/window/panels/lesson_parameters.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

/// A button with a text of several lines, which QPushButton itself cannot show.
QPushButton* stopButton(const LessonStop& stop, QWidget* parent) {
    auto* button = new QPushButton(parent);
    button->setProperty("look", "row");
    button->setCheckable(true);
    button->setAccessibleName(fromUtf8(stop.title.empty() ? stop.text : stop.title + ". " + stop.text));
    button->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Minimum);
    auto* column = makeLayout<QVBoxLayout>(button, {10, 4, 8, 4}, 2);
    if (!stop.title.empty()) column->addWidget(wrappedLabel(fromUtf8(stop.title), "label", button));
    column->addWidget(wrappedLabel(fromUtf8(stop.text), "fact", button));
    for (QLabel* label : button->findChildren<QLabel*>()) label->setAttribute(Qt::WA_TransparentForMouseEvents);
    return button;
}

/// The paragraphs of a Markdown text. The items of a list stay together, because a list that begins anew counts from 1;
/// text that is indented below an item stays with it.
QStringList paragraphsOf(const QString& text) {
    static const QRegularExpression kBetween(R"(\n(?:[ \t]*\n)++(?![ \t]|(?:\d+[.)]|[-+*])\s))");
    return text.split(kBetween, Qt::SkipEmptyParts);
}

} // namespace

LessonPanel::LessonPanel(Workbench& workbench, const std::vector<LessonFile>& lessons, LessonProgress& progress,
                         QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_lessons(lessons), m_progress(progress) {
    setObjectName("panelBody");
    m_column = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0});
    connect(&m_workbench, &Workbench::sessionChanged, this, [this] { refresh(); });
    connect(&m_workbench, &Workbench::captureChanged, this, [this] { refresh(true); });
    connect(&m_workbench, &Workbench::cursorChanged, this, &LessonPanel::followStops);
    refresh();
}

void LessonPanel::refresh(bool isAfresh) {
    const std::string& source = m_workbench.session().lesson;
    const bool isNew = isAfresh || source != m_progress.lesson;
    if (isNew || !m_body) {
        if (isNew) m_progress = {.lesson = source};
        clear();
        QString wrong;
        try {
            m_lesson = lessonOf(m_workbench.session());
        } catch (const std::exception& error) {
            m_lesson.reset();
            wrong = fromUtf8(error.what());
        }
        build();
        if (!wrong.isEmpty())
            static_cast<QVBoxLayout*>(m_body->layout())->insertWidget(1, wrappedLabel(wrong, "error", m_body));
        scrollToTop();
        if (m_lesson && isNew) emit opened(*m_lesson);
    }
    followStops();
    if (m_question) m_question->follow(m_stop < m_stops.size());
}

void LessonPanel::clear() {
    if (m_question) m_question->setAlone(false);
    m_stops.clear();
    m_introduction.clear();
    m_ways.clear();
    m_stop = 0;
    m_part = std::min(m_part, 0);
    m_question = nullptr;
    m_place = nullptr;
    m_model = nullptr;
    m_try = nullptr;
    if (m_body)
        for (ParameterRow* row : m_body->findChildren<ParameterRow*>()) row->dropTyped(); // meant for the lesson before
    discard(m_body);
    m_body = added(m_column, new QWidget(this));
    makeLayout<QVBoxLayout>(m_body, {16, 8, 14, 16}, 6);
}

void LessonPanel::build() {
    auto* column = static_cast<QVBoxLayout*>(m_body->layout());
    if (!m_lesson) {
        m_workbench.withhold({});
        column->addWidget(wrappedLabel(
            tr("No lesson is open. Choose one in the list of lessons, or in Help > Lessons."), "fact", m_body));
        if (!m_lessons.empty()) {
            const QString title = fromUtf8(m_lessons.front().lesson.title);
            QPushButton* first = named("firstLesson", wordButton(tr("Begin with “%1”").arg(title), m_body));
            column->addWidget(first);
            connect(first, &QPushButton::clicked, this, [this] { emit lessonWanted(0); });
        }
        column->addStretch();
        return;
    }
    column->addWidget(wrappedLabel(fromUtf8(m_lesson->title), "policyTitle", m_body));
    m_introduction = {wrappedLabel(fromUtf8(m_lesson->paper), "quiet", m_body)};
    for (const QString& paragraph : paragraphsOf(fromUtf8(m_lesson->text))) {
        auto* text = named("lessonText", wrappedLabel(paragraph, "fact", m_body));
        text->setTextFormat(Qt::MarkdownText);
        text->setTextInteractionFlags(Qt::TextSelectableByMouse);
        m_introduction.push_back(text);
    }
    for (QWidget* part : m_introduction) column->addWidget(part);
    buildModel();
    if (!m_lesson->stops.empty()) buildStops();
    buildQuestion();
    m_try = added(column, new QWidget(m_body));
    makeLayout<QVBoxLayout>(m_try, {0, 0, 0, 0})->addWidget(new LessonParameters(m_workbench, *m_lesson, m_try));
    buildWays();
    column->addStretch(1); // all that is left: a parameter row is stretchable, too
    followStops();
    followPart();
}

/// Offers to start the lesson's model: only the model's own text needs it.
void LessonPanel::buildModel() {
    if (m_lesson->live.empty()) return;
    m_model = new QWidget(m_body);
    auto* row = makeLayout<QHBoxLayout>(m_model, {0, 6, 0, 0}, 8);
    row->addWidget(wrappedLabel(tr("Its model does not run."), "quiet", m_model), 1);
    auto* start = added(row, named("startModel", new QPushButton(tr("Start the model"), m_model)));
    start->setToolTip(tr("Needs a Python with torch: one is looked for, or made after a question. Until then the "
                         "answer is a recorded one."));
    connect(start, &QPushButton::clicked, this, &LessonPanel::modelWanted);
    m_body->layout()->addWidget(m_model);
}

void LessonPanel::buildStops() {
    auto* column = static_cast<QVBoxLayout*>(m_body->layout());
    m_place = added(column, named("lessonPlace", roleLabel({}, "section", m_body)));
    m_place->setContentsMargins(0, px(4), 0, 0);
    for (std::size_t i = 0; i < m_lesson->stops.size(); ++i) {
        QPushButton* button = added(column, stopButton(m_lesson->stops[i], m_body));
        button->setObjectName(QString("lessonStop%1").arg(i));
        m_stops.push_back(button);
        button->setFocusPolicy(Qt::TabFocus); // after a click, Space and arrows belong to the steps
        connect(button, &QPushButton::clicked, this, [this, i] { goToStop(i); });
    }
}

void LessonPanel::buildQuestion() {
    if (m_lesson->question.empty()) return m_workbench.withhold({});
    m_question = new LessonQuestion(m_workbench, *m_lesson, m_progress, m_body);
    m_question->setContentsMargins(0, px(4), 0, 0);
    m_body->layout()->addWidget(m_question);
    connect(m_question, &LessonQuestion::answered, this, [this] {
        want(m_lesson->answeredViews);
        bringInSight(m_question->findChild<QWidget*>("lessonAnswer"));
        emit answered();
    });
}

void LessonPanel::buildWays() {
    const auto button = [this](const QString& text, const QString& tip, const char* name) {
        QPushButton* made = named(name, wordButton(text, m_body));
        made->setToolTip(tip);
        m_ways.push_back(made);
        return made;
    };
    auto* column = static_cast<QVBoxLayout*>(m_body->layout());
    auto* row = innerLayout<QHBoxLayout>(column, {0, 10, 0, 0}, 6);
    const LessonFile* here = fileOf(m_workbench.session(), m_lessons);
    for (const int by : {-1, 1}) {
        const auto to = here ? here - m_lessons.data() + by : -1;
        if (to < 0 || to >= std::ssize(m_lessons)) continue;
        auto* way = button(by < 0 ? tr("Previous lesson") : tr("Next lesson"),
                           fromUtf8(m_lessons[static_cast<std::size_t>(to)].lesson.title),
                           by < 0 ? "previousLesson" : "nextLesson");
        row->addWidget(way);
        connect(way, &QPushButton::clicked, this, [this, by] { emit lessonWanted(by); });
    }
    row->addStretch();
    if (!m_workbench.history().beforeLesson()) return;
    auto* leave = button(tr("Leave the lesson"),
                         tr("Back to the previous policies and settings. Undo leads back, too."), "leaveLesson");
    connect(leave, &QPushButton::clicked, this, [this] { m_workbench.leaveLesson(); });
    column->addWidget(leave);
}

void LessonPanel::goTo(int part) {
    const int stops = static_cast<int>(m_stops.size());
    if (part > 0 && part <= stops) return goToStop(static_cast<std::size_t>(part - 1));
    const bool isQuestion = part > stops;
    m_progress.visited = part - 1;
    m_workbench.change([&](Session& s) { applySetting(s, isQuestion ? m_lesson->asked : m_lesson->start); },
                       tr("Lesson step"));
    want(m_lesson->views);
}

void LessonPanel::goToStop(std::size_t stop) {
    const LessonStop& to = m_lesson->stops[stop];
    m_toSee = nullptr;
    m_stop = stop;
    m_progress.visited = static_cast<int>(stop);
    m_workbench.change([&](Session& s) { applySetting(s, to.setting); }, tr("Lesson step"));
    want(to.views.empty() ? m_lesson->views : to.views);
    followStops(); // the current stop changes nothing, but a click on its button would uncheck it
    showInSight(m_stops[stop]);
}

void LessonPanel::want(const std::vector<std::string>& views) {
    if (!views.empty()) emit viewsWanted(views);
}

bool LessonPanel::step(int by) {
    if (!m_lesson) return false;
    const bool startsAtStop = by > 0 && m_progress.visited < 0 && m_stop < m_stops.size();
    const int next = (startsAtStop ? static_cast<int>(m_stop) : m_progress.visited) + 1 + by;
    if (next < 0 || next > lastPart()) return false;
    goTo(next);
    if (next == 0) scrollToTop();
    if (next > static_cast<int>(m_stops.size())) bringInSight(m_question);
    return true;
}

void LessonPanel::goToLast() {
    if (!m_lesson) return;
    if (m_part >= 0) return showPart(parts() - 1);
    goTo(lastPart());
    bringInSight(m_question ? static_cast<QWidget*>(m_question) : m_stops.empty() ? nullptr : m_stops.back());
}

void LessonPanel::present() {
    const int stops = static_cast<int>(m_stops.size());
    const bool isThere = m_stop < m_stops.size() || m_progress.visited == stops;
    m_part = m_progress.asked ? stops + 2 : isThere ? m_progress.visited + 1 : 0;
    followPart();
}

std::vector<std::string> LessonPanel::viewsOfPart() const {
    std::vector<std::string> views;
    const std::size_t stop = m_part < 0 ? m_stop : static_cast<std::size_t>(m_part) - 1; // the text comes before all
    if (stop < m_stops.size()) views = m_lesson->stops[stop].views;
    if (m_part == static_cast<int>(m_stops.size()) + 2) views = m_lesson->answeredViews;
    return views.empty() ? m_lesson->views : views;
}

int LessonPanel::heightFor(int width) const {
    // Another type size reaches the layouts above a label only with the next events.
    for (QWidget* part : m_body->findChildren<QWidget*>()) part->updateGeometry();
    return m_body->layout()->totalHeightForWidth(width);
}

int LessonPanel::leastWidth() const { return m_body->layout()->totalMinimumSize().width(); }

void LessonPanel::showPart(int part) {
    m_part = part;
    const int question = static_cast<int>(m_stops.size()) + 1;
    if (part <= question) goTo(part);
    if (part == question) m_question->hideAnswer();
    if (part > question) m_question->ask();
    followPart();
    scrollToTop();
}

void LessonPanel::followPart() {
    const int stops = static_cast<int>(m_stops.size());
    const bool all = m_part < 0;
    for (QWidget* one : m_introduction) one->setVisible(all || m_part == 0);
    for (QWidget* way : m_ways) way->setVisible(all);
    if (m_model) m_model->setVisible((all || m_part == 0) && !m_workbench.live());
    if (m_place) m_place->setVisible(all);
    if (m_try) m_try->setVisible(all || (m_part > 0 && m_part <= stops)); // for playing with what a stop shows
    for (int stop = 0; stop < stops; ++stop)
        m_stops[static_cast<std::size_t>(stop)]->setVisible(all || m_part == stop + 1);
    if (!m_question) return;
    m_question->setVisible(all || m_part > stops);
    m_question->setAlone(m_part == stops + 1);
    m_question->setChoicesVisible(m_part != stops + 2); // the answer takes their room
}

/// What has just got a text or a place has its height only after the panel is laid out again.
void LessonPanel::bringInSight(QWidget* part) {
    m_toSee = part;
    QMetaObject::invokeMethod(
        this, [this] { showInSight(m_toSee); }, Qt::QueuedConnection);
}

void LessonPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    showInSight(std::exchange(m_toSee, nullptr));
}

/// The scroll area of the dock contains the panel.
void LessonPanel::showInSight(QWidget* part) {
    if (!part) return;
    for (QWidget* above = parentWidget(); above; above = above->parentWidget())
        if (auto* area = qobject_cast<QScrollArea*>(above)) area->ensureWidgetVisible(part, 0, px(12));
}

void LessonPanel::scrollToTop() {
    m_toSee = nullptr;
    for (QWidget* above = parentWidget(); above; above = above->parentWidget())
        if (auto* area = qobject_cast<QScrollArea*>(above)) area->verticalScrollBar()->setValue(0);
}

void LessonPanel::followStops() {
    // Several stops may ask for the same state ("Back to 10 %"): the one that was chosen is marked, else the first.
    const auto isHere = [&](std::size_t stop) { return isAt(m_workbench.session(), m_lesson->stops[stop].setting); };
    if (m_stop >= m_stops.size() || !isHere(m_stop))
        for (m_stop = 0; m_stop < m_stops.size() && !isHere(m_stop);) ++m_stop;
    for (std::size_t i = 0; i < m_stops.size(); ++i) m_stops[i]->setChecked(i == m_stop);
    if (m_place)
        m_place->setText(m_stop < m_stops.size() ? tr("LOOK AT: STOP %1 OF %2").arg(m_stop + 1).arg(m_stops.size())
                                                 : tr("LOOK AT: %1 STOPS").arg(m_stops.size()));
}

} // namespace kvscope
