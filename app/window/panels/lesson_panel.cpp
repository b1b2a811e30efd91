// The reader predicts first: the answer is computed and shown only after a choice.
#include "app/window/panels/lesson_panel.h"

#include "app/window/panels/lesson_list.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QButtonGroup>
#include <QHBoxLayout>
#include <QPointer>
#include <QRadioButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace kvscope {

namespace {

constexpr const char* kAnswerSlot = "lesson";

/// A button with a text of several lines, which push buttons lack.
QPushButton* stopButton(const QString& text, QWidget* parent) {
    auto* button = new QPushButton(parent);
    button->setProperty("look", "row");
    button->setCheckable(true);
    button->setAccessibleName(text);
    button->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Minimum);
    auto* row = makeLayout<QHBoxLayout>(button, {10, 4, 8, 4});
    QLabel* label = wrappedLabel(text, "fact", button);
    label->setAttribute(Qt::WA_TransparentForMouseEvents);
    row->addWidget(label);
    return button;
}

std::string keyOf(const ViewDataRequest& request) {
    std::string key = std::to_string(request.layer.value) + "|" + std::to_string(request.kvHead.value);
    for (const PaneRequest& pane : request.panes) key.append("|").append(resultKey(pane));
    for (const TokenIndex token : request.selected) key.append(",").append(std::to_string(token));
    return key;
}

} // namespace

LessonPanel::LessonPanel(Workbench& workbench, QWidget* parent) : QWidget(parent), m_workbench(workbench) {
    setObjectName("panelBody");
    m_column = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0});
    connect(&m_workbench, &Workbench::sessionChanged, this, &LessonPanel::refresh);
    connect(&m_workbench, &Workbench::captureChanged, this, &LessonPanel::refresh);
    connect(&m_workbench, &Workbench::cursorChanged, this, &LessonPanel::followStops);
    refresh();
}

void LessonPanel::refresh() {
    const std::string& source = m_workbench.session().lesson;
    if (source != m_source || !m_body) {
        m_source = source;
        clear();
        try {
            m_lesson = lessonOf(m_workbench.session());
            build();
        } catch (const std::exception& error) {
            m_lesson.reset();
            build();
            refuse(fromUtf8(error.what()));
        }
        if (m_lesson) {
            followStops();
            m_visited = m_stop < m_stops.size() ? static_cast<int>(m_stop) : -1;
            emit opened(*m_lesson);
        }
    }
    followStops();
    const auto request = m_workbench.request();
    if (!m_askedKey.empty() && request && keyOf(*request) != m_askedKey) ask();
}

void LessonPanel::clear() {
    m_workbench.cancel(kAnswerSlot);
    m_askedKey.clear();
    m_stops.clear();
    m_stop = 0;
    m_choices = nullptr;
    m_show = nullptr;
    m_place = nullptr;
    m_answer = m_verdict = nullptr;
    if (m_body) {
        m_body->hide();
        m_body->deleteLater();
    }
    m_body = new QWidget(this);
    m_column->addWidget(m_body);
    makeLayout<QVBoxLayout>(m_body, {16, 12, 14, 16}, 6);
}

void LessonPanel::build() {
    auto* column = static_cast<QVBoxLayout*>(m_body->layout());
    if (!m_lesson) {
        column->addWidget(
            wrappedLabel(tr("No lesson is open. Choose one on the left, or in Help > Lessons."), "fact", m_body));
        m_verdict = wrappedLabel({}, "error", m_body);
        column->addWidget(m_verdict);
        column->addStretch();
        return;
    }
    column->addWidget(wrappedLabel(fromUtf8(m_lesson->title), "policyTitle", m_body));
    column->addWidget(wrappedLabel(fromUtf8(m_lesson->paper), "quiet", m_body));
    auto* text = wrappedLabel(fromUtf8(m_lesson->text), "fact", m_body);
    text->setObjectName("lessonText");
    text->setTextFormat(Qt::MarkdownText);
    text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    column->addWidget(text);
    if (!m_lesson->stops.empty()) buildStops();
    column->addSpacing(px(6));
    buildQuestion();
    if (m_workbench.history().beforeLesson()) {
        auto* leave = new QPushButton(tr("Leave the lesson"), m_body);
        leave->setObjectName("leaveLesson");
        leave->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
        leave->setToolTip(tr("Back to the previous policies and settings. Undo leads back, too."));
        connect(leave, &QPushButton::clicked, this, [this] { m_workbench.leaveLesson(); });
        column->addSpacing(px(12));
        column->addWidget(leave);
    }
    column->addStretch();
}

void LessonPanel::buildStops() {
    auto* column = static_cast<QVBoxLayout*>(m_body->layout());
    column->addSpacing(px(6));
    m_place = roleLabel({}, "section", m_body);
    m_place->setObjectName("lessonPlace");
    column->addWidget(m_place);
    for (std::size_t i = 0; i < m_lesson->stops.size(); ++i) {
        const LessonStop& stop = m_lesson->stops[i];
        QPushButton* button = stopButton(fromUtf8(stop.text), m_body);
        button->setObjectName(QString("lessonStop%1").arg(i));
        column->addWidget(button);
        m_stops.push_back(button);
        button->setFocusPolicy(Qt::TabFocus); // after a click, Space and arrows belong to the steps
        connect(button, &QPushButton::clicked, this, [this, i] { goToStop(i); });
    }
}

void LessonPanel::goToStop(std::size_t stop) {
    m_stop = stop;
    m_visited = static_cast<int>(stop);
    m_workbench.change([&](Session& s) { applyStop(s, m_lesson->stops[stop]); }, tr("Lesson step"));
    followStops(); // the current stop changes nothing, but a click on its button would uncheck it
    showInSight(m_stops[stop]);
}

bool LessonPanel::stepStop(int by) {
    if (!m_lesson || m_stops.empty()) return false;
    const int next = m_visited + by;
    if (next < 0 || next >= static_cast<int>(m_stops.size())) return false;
    goToStop(static_cast<std::size_t>(next));
    return true;
}

/// The dock scrolls the panel.
void LessonPanel::showInSight(QWidget* part) {
    for (QWidget* above = parentWidget(); above; above = above->parentWidget())
        if (auto* area = qobject_cast<QScrollArea*>(above)) area->ensureWidgetVisible(part, 0, px(12));
}

void LessonPanel::buildQuestion() {
    auto* column = static_cast<QVBoxLayout*>(m_body->layout());
    column->addWidget(roleLabel(tr("PREDICT"), "section", m_body));
    column->addWidget(wrappedLabel(fromUtf8(m_lesson->question), "label", m_body));
    m_choices = new QButtonGroup(m_body);
    for (int i = 0; i < static_cast<int>(m_lesson->choices.size()); ++i) {
        auto* choice = new QRadioButton(fromUtf8(m_lesson->choices[i].text), m_body);
        choice->setObjectName(QString("lessonChoice%1").arg(i));
        m_choices->addButton(choice, i);
        column->addWidget(choice);
    }
    m_show = new QPushButton(tr("Show the answer"), m_body);
    m_show->setObjectName("lessonAnswerButton");
    m_show->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    m_show->setEnabled(false);
    m_show->setToolTip(tr("Choose first. The answer is computed from what is shown."));
    column->addWidget(m_show);
    m_verdict = wrappedLabel({}, "label", m_body);
    m_verdict->setObjectName("lessonVerdict");
    m_answer = wrappedLabel({}, "fact", m_body);
    m_answer->setObjectName("lessonAnswer");
    m_answer->setTextInteractionFlags(Qt::TextSelectableByMouse);
    column->addWidget(m_verdict);
    column->addWidget(m_answer);
    connect(m_choices, &QButtonGroup::idClicked, this, [this] { m_show->setEnabled(true); });
    connect(m_show, &QPushButton::clicked, this, &LessonPanel::ask);
}

void LessonPanel::followStops() {
    // Several stops may ask for the same state ("Back to 10 %"): the one that was chosen is marked, else the first.
    const auto isHere = [&](std::size_t stop) { return isAt(m_workbench.session(), m_lesson->stops[stop]); };
    if (m_stop >= m_stops.size() || !isHere(m_stop))
        for (m_stop = 0; m_stop < m_stops.size() && !isHere(m_stop);) ++m_stop;
    for (std::size_t i = 0; i < m_stops.size(); ++i) m_stops[i]->setChecked(i == m_stop);
    if (m_place)
        m_place->setText(m_stop < m_stops.size() ? tr("LOOK AT: STOP %1 OF %2").arg(m_stop + 1).arg(m_stops.size())
                                                 : tr("LOOK AT: %1 STOPS").arg(m_stops.size()));
}

void LessonPanel::ask() {
    const auto request = m_workbench.request();
    if (!request || !m_lesson) return;
    m_askedKey = keyOf(*request);
    m_verdict->setText(tr("Computing…"));
    m_answer->clear();
    Scheduler::Job job;
    // The panel may be deleted before the answer arrives, because the chrome is rebuilt.
    job.work = [self = QPointer<LessonPanel>(this), runner = m_workbench.sharedRunner(), lesson = *m_lesson,
                request = *request](const Checkpoint& checkpoint, const auto& post) {
        const LessonAnswer answer = answerOf(lesson, *runner, request, checkpoint);
        post([self, answer] {
            if (self) self->show(answer);
        });
    };
    job.failed = [self = QPointer<LessonPanel>(this)](std::exception_ptr failure) {
        if (self) self->refuse(fromUtf8(messageOf(failure)));
    };
    m_workbench.submit(kAnswerSlot, std::move(job));
}

void LessonPanel::show(const LessonAnswer& answer) {
    if (!m_answer) return;
    const int predicted = m_choices->checkedId();
    const QString right = fromUtf8(m_lesson->choices[answer.choice].text);
    m_verdict->setText(predicted == answer.choice
                           ? tr("As you predicted: %1 (computed: %2)").arg(right, fromUtf8(answer.valueText))
                           : tr("Computed: %1. That is: %2. You predicted: %3")
                                 .arg(fromUtf8(answer.valueText), right,
                                      fromUtf8(m_lesson->choices.at(static_cast<std::size_t>(predicted)).text)));
    // The lesson's text explains the intended case; other settings show only the number.
    m_answer->setText(answer.choice == m_lesson->claim ? fromUtf8(answer.text)
                                                       : tr("You have changed what the lesson shows, and with it the "
                                                            "answer. Open the lesson again for its own case."));
    QMetaObject::invokeMethod(
        this, [this] { showInSight(m_answer); }, Qt::QueuedConnection); // it has its height then
    markAnswered(*m_lesson);
    emit answered();
}

void LessonPanel::refuse(const QString& why) {
    if (m_verdict) m_verdict->setText(why);
    if (m_answer) m_answer->clear();
}

} // namespace kvscope
