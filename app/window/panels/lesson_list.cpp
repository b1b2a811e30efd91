// Rows are buttons, for keyboard and screen readers.
#include "app/window/panels/lesson_list.h"

#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QHBoxLayout>
#include <QSettings>
#include <QVBoxLayout>

namespace kvscope {

namespace {

constexpr const char* kAnsweredKey = "lessons/answered";

/// Titles of the lessons whose answers the reader has seen.
QStringList answeredLessons() { return QSettings().value(kAnsweredKey).toStringList(); }

QString rowName(const LessonFile& file) { return QString("lesson%1").arg(file.lesson.number); }

} // namespace

void markAnswered(const Lesson& lesson) {
    const QStringList answered = answeredLessons();
    const QString title = fromUtf8(lesson.title);
    if (!answered.contains(title)) QSettings().setValue(kAnsweredKey, answered + QStringList(title));
}

LessonList::LessonList(Workbench& workbench, const std::vector<LessonFile>& lessons, QWidget* parent)
    : QWidget(parent), m_workbench(workbench), m_lessons(lessons) {
    setObjectName("panelBody");
    auto* column = makeLayout<QVBoxLayout>(this, {8, 8, 8, 12}, 0);
    m_rows = innerLayout<QVBoxLayout>(column, {}, 1);
    column->addStretch();
    connect(&m_workbench, &Workbench::sessionChanged, this, &LessonList::refresh);
    refresh();
}

void LessonList::refresh() {
    const LessonFile* open = fileOf(m_workbench.session(), m_lessons);
    const QStringList answered = answeredLessons(); // read once, because each step of a drag calls this
    const auto isAnswered = [&](const LessonFile& file) { return answered.contains(fromUtf8(file.lesson.title)); };
    std::string shown = open ? open->path : "";
    for (const LessonFile& file : m_lessons) shown += (isAnswered(file) ? '+' : '-') + file.lesson.title;
    if (shown == m_shown && m_rows->count() > 0) return;
    m_shown = shown;
    const QWidget* focused = focusWidget();
    QString focusedRow = focused && focused->hasFocus() ? focused->objectName() : QString();
    const std::string opened = open ? open->path : "";
    if (!focusedRow.isEmpty() && open && opened != m_opened) focusedRow = rowName(*open); // as Page Down opens one
    m_opened = opened;
    while (QLayoutItem* item = m_rows->takeAt(0)) {
        item->widget()->setObjectName({}); // the new row takes this name
        discard(item->widget());
        delete item;
    }
    std::string group;
    for (const LessonFile& file : m_lessons) {
        if (file.lesson.group != group) {
            group = file.lesson.group;
            QLabel* head = added(m_rows, roleLabel(fromUtf8(group).toUpper(), "section", this));
            head->setContentsMargins(px(8), px(10), 0, px(4));
        }
        m_rows->addWidget(rowOf(file, &file == open, isAnswered(file)));
    }
    if (m_lessons.empty()) {
        m_rows->addWidget(wrappedLabel(tr("The lessons were not found: an installed program has them in "
                                          "../share/kvscope, seen from its own folder."),
                                       "quiet", this));
    }
    if (auto* row = focusedRow.isEmpty() ? nullptr : findChild<QPushButton*>(focusedRow)) row->setFocus();
}

QWidget* LessonList::rowOf(const LessonFile& file, bool open, bool answered) {
    auto* row = new QPushButton(this);
    row->setObjectName(rowName(file));
    row->setProperty("look", "row");
    row->setProperty("chosen", open);
    row->setFixedHeight(px(28));
    const QString whole = fromUtf8(file.lesson.title),
                  paper = fromUtf8(file.lesson.paper); // a narrow row cuts the title
    row->setToolTip(paper.isEmpty() ? whole : whole + "\n" + paper);
    row->setFocusPolicy(Qt::TabFocus); // after a click, Space and arrows belong to the steps of the lesson
    row->setAccessibleName(
        tr(answered ? "Lesson %1, %2, answered" : "Lesson %1, %2").arg(file.lesson.number).arg(whole));
    auto* layout = makeLayout<QHBoxLayout>(row, {8, 0, 8, 0}, 8);
    const Colour ink = open ? chrome().paper : chrome().text1;
    QLabel* number = numberLabel(11, QFont::Normal, row);
    number->setText(QString::number(file.lesson.number));
    auto* title = new ElidedLabel("label", Qt::ElideRight, row);
    title->setFullText(whole);
    for (QLabel* label : {number, static_cast<QLabel*>(title)}) {
        label->setStyleSheet(label->styleSheet() + QString("color: %1;").arg(qColor(ink).name()));
        label->setAttribute(Qt::WA_TransparentForMouseEvents);
    }
    layout->addWidget(number);
    layout->addWidget(title, 1);
    if (answered) {
        auto* check = added(layout, new QLabel(row));
        check->setPixmap(themedIcon("check", ink).pixmap(px(14), px(14)));
    }
    connect(row, &QPushButton::clicked, this, [this, path = fromUtf8(file.path)] { emit chosen(path); });
    return row;
}

} // namespace kvscope
