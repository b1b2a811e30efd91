// The reader predicts first: the answer is computed and shown only after a choice, or when a lecturer asks for it.
#include "app/window/panels/lesson_question.h"

#include "app/window/panels/lesson_list.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QButtonGroup>
#include <QKeyEvent>
#include <QPointer>
#include <QRadioButton>
#include <QVBoxLayout>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr const char* kAnswerSlot = "lesson";

std::string keyOf(const ViewDataRequest& request) {
    std::string key = fmt::format("{}|{}|{}", request.layer.value, request.kvHead.value, request.queryHead.value);
    for (const PaneRequest& pane : request.panes) key.append("|").append(resultKey(pane));
    for (const TokenIndex token : request.selected) key.append(",").append(std::to_string(token));
    return key;
}

} // namespace

LessonQuestion::LessonQuestion(Workbench& workbench, const Lesson& lesson, LessonProgress& progress, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_lesson(lesson), m_progress(progress),
      m_predict(roleLabel(tr("PREDICT"), "section", this)), m_choices(new QButtonGroup(this)),
      m_show(named("lessonAnswerButton", wordButton(tr("Show the answer"), this))),
      m_verdict(named("lessonVerdict", wrappedLabel({}, "label", this))),
      m_answer(named("lessonAnswer", wrappedLabel({}, "fact", this))) {
    auto* column = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 6);
    column->addWidget(m_predict);
    column->addWidget(wrappedLabel(fromUtf8(m_lesson.question), "label", this));
    addChoices();
    m_show->setEnabled(m_progress.predicted >= 0);
    m_show->setToolTip(tr("Choose first. The answer is computed from what is shown."));
    m_answer->setTextInteractionFlags(Qt::TextSelectableByMouse);
    for (QWidget* part : std::initializer_list<QWidget*>{m_show, m_verdict, m_answer}) column->addWidget(part);
    setTabOrder(m_choices->buttons().back(), m_show);
    connect(m_choices, &QButtonGroup::idClicked, this, [this](int choice) {
        m_progress.predicted = choice;
        m_show->setEnabled(true);
    });
    connect(m_show, &QPushButton::clicked, this, &LessonQuestion::ask);
    connect(&m_workbench, &Workbench::engineChanged, this, [this] {
        if (!m_askedKey.empty()) compute();
    });
    withhold();
    if (m_progress.asked) compute();
}

void LessonQuestion::withhold() const {
    if (m_progress.asked)
        m_workbench.withhold({});
    else
        m_workbench.withhold(m_lesson.withheld, m_isAlone);
}

void LessonQuestion::addChoices() {
    for (int i = 0; i < static_cast<int>(m_lesson.choices.size()); ++i) {
        auto* choice = new QRadioButton(fromUtf8(m_lesson.choices[i].text), this);
        choice->setObjectName(QString("lessonChoice%1").arg(i));
        choice->setChecked(i == m_progress.predicted);
        choice->installEventFilter(this);
        m_choices->addButton(choice, i);
        layout()->addWidget(choice);
    }
}

/// Qt's arrow keys move the focus, but choose nothing while no choice is checked.
bool LessonQuestion::eventFilter(QObject* watched, QEvent* event) {
    auto* choice = qobject_cast<QRadioButton*>(watched);
    if (!choice || event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key != Qt::Key_Up && key != Qt::Key_Down) return QWidget::eventFilter(watched, event);
    const int last = static_cast<int>(m_lesson.choices.size()) - 1;
    const int next =
        m_choices->checkedId() < 0 ? m_choices->id(choice) : m_choices->id(choice) + (key == Qt::Key_Up ? -1 : 1);
    QAbstractButton* to = m_choices->button(std::clamp(next, 0, last));
    to->setFocus(Qt::TabFocusReason);
    to->click();
    return true;
}

void LessonQuestion::ask() {
    // A stop may show another case than the question's. The reader's own changes are answered as they are, once.
    if (!isOwnCase() && (m_atStop || m_progress.asked))
        m_workbench.change([this](Session& s) { applySetting(s, m_lesson.asked); }, tr("Lesson step"));
    m_progress.asked = true;
    compute();
}

void LessonQuestion::hideAnswer() {
    m_workbench.cancel(kAnswerSlot);
    m_progress.asked = false;
    m_askedKey.clear();
    m_verdict->clear();
    m_answer->clear();
    m_show->setVisible(true);
    m_show->setText(tr("Show the answer"));
    withhold();
}

void LessonQuestion::setAlone(bool alone) {
    if (std::exchange(m_isAlone, alone) != alone) withhold();
}

void LessonQuestion::setChoicesVisible(bool visible) {
    m_predict->setVisible(visible);
    for (QAbstractButton* choice : m_choices->buttons()) choice->setVisible(visible);
}

void LessonQuestion::follow(bool atStop) {
    m_atStop = atStop;
    const auto request = m_workbench.request();
    if (!m_askedKey.empty() && request && keyOf(*request) != m_askedKey) compute();
}

void LessonQuestion::compute() {
    const auto request = m_workbench.request();
    if (!request) return;
    m_askedKey = keyOf(*request);
    m_verdict->setText(tr("Computing…"));
    m_answer->clear();
    Scheduler::Job job;
    // The panel may be deleted before the answer arrives, because the chrome is rebuilt.
    job.work = [self = QPointer<LessonQuestion>(this), runner = m_workbench.sharedRunner(), lesson = m_lesson,
                request = *request](const Checkpoint& checkpoint, const auto& post) {
        const LessonAnswer answer = answerOf(lesson, *runner, request, checkpoint);
        post([self, answer] {
            if (self) self->show(answer);
        });
    };
    job.failed = [self = QPointer<LessonQuestion>(this)](std::exception_ptr failure) {
        if (self) self->m_verdict->setText(fromUtf8(messageOf(failure)));
    };
    m_workbench.submit(kAnswerSlot, std::move(job));
}

void LessonQuestion::show(const LessonAnswer& answer) {
    const QString right = fromUtf8(m_lesson.choices[static_cast<std::size_t>(answer.choice)].text);
    const QString value = fromUtf8(answer.valueText);
    const int predicted = m_choices->checkedId();
    const QString how = answer.isRecorded ? tr("recorded from the model") : tr("computed");
    QString verdict = tr("%1: %2. That is: %3").arg(how.left(1).toUpper() + how.mid(1), value, right);
    if (predicted == answer.choice)
        verdict = tr("As you predicted: %1 (%2: %3)").arg(right, how, value);
    else if (predicted >= 0)
        verdict += tr(". You predicted: %1").arg(fromUtf8(m_lesson.choices[static_cast<std::size_t>(predicted)].text));
    // The lesson's text explains the question's own case; other settings show only the number.
    const bool own = isOwnCase();
    if (answer.isRecorded && !own) verdict = tr("For the number of other settings start the model.");
    m_verdict->setText(verdict);
    m_answer->setText(answer.isRecorded && !own ? QString() : explanationOf(answer, own));
    m_show->setText(tr("Back to the question’s own setting"));
    m_show->setEnabled(true);
    m_show->setVisible(!own);
    m_workbench.withhold({});
    markAnswered(m_lesson);
    emit answered();
}

QString LessonQuestion::explanationOf(const LessonAnswer& answer, bool own) const {
    if (own)
        return answer.choice == m_lesson.claim ? fromUtf8(answer.text)
                                               : tr("The lesson explains another choice than the number falls into.");
    return m_atStop ? tr("This is the number at this stop.") : tr("This is the number of what you have set yourself.");
}

} // namespace kvscope
