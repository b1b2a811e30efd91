// The words of the choices follow from the bounds, unless a lesson that was read has words of its own.
#include "app/window/dialogs/question_maker.h"

#include "app/lessons/lesson_quantities.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/choice_box.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/error.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QPlainTextEdit>
#include <QPointer>
#include <QPushButton>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>
#include <set>

namespace kvscope {

namespace {

constexpr const char* kSlot = "questionMaker";

using Form = LessonQuantity::Form;

double unitOf(const LessonQuantity& quantity) {
    return quantity.form == Form::Percent ? 0.01 : quantity.form == Form::Bytes ? 1 << 20 : 1;
}

QString boundsText(const std::vector<LessonChoice>& choices, const LessonQuantity& quantity) {
    QStringList bounds;
    for (std::size_t i = 0; i + 1 < choices.size(); ++i)
        bounds += QString::number(choices[i].below / unitOf(quantity), 'g', 10);
    return bounds.join(", ");
}

/// The views of the start and of all stops.
std::set<std::string> viewsOf(const Lesson& lesson) {
    std::set<std::string> views(lesson.views.begin(), lesson.views.end());
    for (const LessonStop& stop : lesson.stops) views.insert(stop.views.begin(), stop.views.end());
    return views;
}

QPlainTextEdit* textField(const char* name, const QString& hint, QWidget* parent) {
    auto* field = named(name, new QPlainTextEdit(parent));
    field->setAccessibleName(hint);
    field->setPlaceholderText(hint);
    field->setTabChangesFocus(true);
    return field;
}

} // namespace

QuestionMaker::QuestionMaker(Workbench& workbench, QWidget* parent)
    : QWidget(parent), m_workbench(workbench),
      m_text(textField("makerQuestion", tr("What the reader is to predict. Empty: the lesson asks nothing"), this)),
      m_answer(textField("makerAnswer", tr("What the answer explains. {value} stands for the number"), this)),
      m_quantity(named("makerQuantity", new ChoiceBox(this))), m_pane(named("makerPane", new ChoiceBox(this))),
      m_bounds(named("makerBounds", new QLineEdit(this))),
      m_withhold(new QCheckBox(
          tr("Hide findings until the answer is shown; presenter mode also hides the pictures with the question"),
          this)),
      m_now(named("makerNow", messageLabel("fact", this))) {
    m_quantity->setAccessibleName(tr("The number that decides"));
    m_quantity->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    m_quantity->addItem(tr("The number that decides…"));
    for (const LessonQuantity& quantity : lessonQuantities())
        m_quantity->addItem(fromUtf8(quantity.help + " {" + quantity.id + "}"), fromUtf8(quantity.id));
    m_pane->setAccessibleName(tr("Of which pane"));
    for (int pane = 0; pane < kMaxPanes; ++pane) m_pane->addItem(tr("of pane %1").arg(QChar('A' + pane)));
    m_bounds->setAccessibleName(tr("Bounds between the choices"));
    m_bounds->setPlaceholderText(tr("Bounds between the choices, like 20, 60"));
    m_withhold->setObjectName("makerWithhold");
    auto* again = named("makerAsk", wordButton(tr("Ask about what is shown now"), this));
    again->setAutoDefault(false);
    auto* column = makeLayout<QVBoxLayout>(this, {0, 6, 0, 0}, 6);
    column->addWidget(m_text, 1);
    auto* row = innerLayout<QHBoxLayout>(column);
    row->addWidget(m_quantity, 1);
    row->addWidget(m_pane);
    for (QWidget* part : std::initializer_list<QWidget*>{again, m_bounds, m_now}) column->addWidget(part);
    column->addWidget(m_answer, 1);
    column->addWidget(m_withhold);
    const QWidgetList order{m_text, m_quantity, m_pane, again, m_bounds, m_answer, m_withhold};
    for (qsizetype i = 1; i < order.size(); ++i) setTabOrder(order[i - 1], order[i]);
    for (const ChoiceBox* box : {m_quantity, m_pane}) connect(box, &QComboBox::activated, this, &QuestionMaker::ask);
    connect(again, &QPushButton::clicked, this, &QuestionMaker::ask);
    connect(m_bounds, &QLineEdit::textChanged, this, &QuestionMaker::refresh);
    for (const QPlainTextEdit* text : {m_text, m_answer})
        connect(text, &QPlainTextEdit::textChanged, this, &QuestionMaker::edited);
}

void QuestionMaker::show(const Lesson& lesson) {
    m_of = lesson;
    m_text->setPlainText(fromUtf8(lesson.question));
    m_answer->setPlainText(fromUtf8(lesson.answer));
    m_withhold->setChecked(!lesson.withheld.empty());
    m_pane->setCurrentIndex(lesson.pane);
    m_quantity->setCurrentIndex(std::max(0, m_quantity->findData(fromUtf8(lesson.quantity))));
    m_readOf = lesson.quantity;
    if (!lesson.question.empty()) m_read = boundsText(lesson.choices, lessonQuantityById(lesson.quantity));
    m_bounds->setText(m_read);
    refresh();
}

void QuestionMaker::ask() {
    m_of.quantity = m_quantity->currentData().toString().toStdString();
    m_of.pane = m_pane->currentIndex();
    m_of.asked = m_workbench.session();
    m_of.asked.lesson.clear();
    m_asked = true;
    m_value.reset();
    m_workbench.cancel(kSlot); // its job computes the value for the previous question
    refresh();
    const auto request = m_workbench.request();
    if (!request || m_of.quantity.empty()) return;
    m_now->setText(tr("Computing…"));
    Scheduler::Job job;
    job.work = [self = QPointer<QuestionMaker>(this), runner = m_workbench.sharedRunner(), request = *request,
                of = &lessonQuantityById(m_of.quantity),
                pane = static_cast<std::size_t>(m_of.pane)](const Checkpoint& checkpoint, const auto& post) {
        const double value = of->compute({*runner, request, pane, checkpoint});
        post([self, value] {
            if (!self) return;
            self->m_value = value;
            self->refresh();
        });
    };
    job.failed = [self = QPointer<QuestionMaker>(this)](std::exception_ptr failure) {
        if (self) self->m_now->setText(fromUtf8(messageOf(failure)));
    };
    m_workbench.submit(kSlot, std::move(job));
}

std::vector<LessonChoice> QuestionMaker::choices() const {
    if (m_of.quantity.empty()) return {};
    if (!m_read.isEmpty() && m_of.quantity == m_readOf && m_bounds->text() == m_read) return m_of.choices;
    const LessonQuantity& quantity = lessonQuantityById(m_of.quantity);
    const QString unit = quantity.form == Form::Percent ? " %" : quantity.form == Form::Bytes ? " MiB" : "";
    std::vector<LessonChoice> choices;
    QString before;
    for (const QString& part : m_bounds->text().split(',')) {
        bool isNumber = false;
        const QString word = part.trimmed();
        const double below = word.toDouble(&isNumber) * unitOf(quantity);
        if (!isNumber || !std::isfinite(below) || (!choices.empty() && below <= choices.back().below)) return {};
        const QString text =
            before.isEmpty() ? tr("Below %1%2").arg(word, unit) : tr("%1 to %2%3").arg(before, word, unit);
        choices.push_back({text.toStdString(), below});
        before = word;
    }
    choices.push_back({tr("%1%2 or more").arg(before, unit).toStdString()});
    return choices;
}

void QuestionMaker::refresh() {
    if (!m_value) {
        m_now->clear();
    } else {
        const QString number = fromUtf8(quantityText(lessonQuantityById(m_of.quantity), *m_value));
        const std::vector<LessonChoice> all = choices();
        const auto falls = std::ranges::find_if(all, [this](const LessonChoice& c) { return *m_value < c.below; });
        m_of.claim = falls == all.end() ? m_of.claim : static_cast<int>(falls - all.begin());
        m_now->setText(falls == all.end() ? tr("Computed: %1").arg(number)
                                          : tr("Computed: %1. That is: %2").arg(number, fromUtf8(falls->text)));
    }
    emit edited();
}

void QuestionMaker::writeTo(Lesson& lesson) const {
    lesson.question = m_text->toPlainText().trimmed().toStdString();
    if (lesson.question.empty()) return;
    lesson.quantity = m_of.quantity;
    lesson.pane = m_of.pane;
    lesson.asked = m_of.asked;
    if (m_asked) lesson.recorded.clear(); // which belongs to the question as read
    lesson.choices = choices();
    lesson.claim = m_of.claim;
    lesson.answer = m_answer->toPlainText().trimmed().toStdString();
    lesson.answeredViews = m_of.answeredViews;
    lesson.withheld = m_withhold->isChecked() ? withheldOf(lesson) : std::vector<std::string>();
}

/// Where the author of the lesson as read withheld some views, the other views of that lesson are not withheld now.
std::vector<std::string> QuestionMaker::withheldOf(const Lesson& lesson) const {
    std::vector<std::string> withheld = m_of.withheld;
    const std::set<std::string> known = withheld.empty() ? std::set<std::string>() : viewsOf(m_of);
    for (const std::string& view : viewsOf(lesson))
        if (!known.contains(view) && std::ranges::find(withheld, view) == withheld.end()) withheld.push_back(view);
    return withheld;
}

QString QuestionMaker::missing() const {
    if (m_text->toPlainText().trimmed().isEmpty()) return {};
    if (m_of.quantity.empty()) return tr("The question needs the number that decides it.");
    if (choices().empty()) return tr("Bounds between the choices are ascending numbers, like 20, 60.");
    if (!m_value && (m_asked || m_of.question.empty() || m_bounds->text() != m_read))
        return tr("The number must be computed: ask about what is shown now, and wait for it.");
    try {
        for (const std::string& id : quantitiesIn(m_answer->toPlainText().toStdString()))
            if (id != "value") lessonQuantityById(id);
    } catch (const Error& error) {
        return fromUtf8(error.what());
    }
    return {};
}

} // namespace kvscope
