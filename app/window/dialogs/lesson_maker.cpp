// The lesson is edited as a value; a stop holds the whole setting that was shown when the stop was taken.
#include "app/window/dialogs/lesson_maker.h"

#include "app/study/resources.h"
#include "app/study/session_file.h"
#include "app/study/session_source.h"
#include "app/window/dialogs/question_maker.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/segmented_switch.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/write_aside.h"
#include "core/base/error.h"

#include <QDir>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QListWidget>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QStackedWidget>
#include <QStandardPaths>
#include <QVBoxLayout>

#include <algorithm>

namespace kvscope {

QString LessonMaker::folder() {
    return QDir(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation)).filePath("lessons");
}

LessonMaker::LessonMaker(Workbench& workbench, QWidget* parent)
    : QDialog(parent), m_workbench(workbench), m_title(named("makerTitle", new QLineEdit(this))),
      m_text(named("makerText", new QPlainTextEdit(this))),
      m_switch(new SegmentedSwitch({tr("Stops"), tr("Question")}, tr("Part of the lesson"), this)),
      m_pages(new QStackedWidget(this)), m_question(new QuestionMaker(workbench, this)),
      m_why(named("makerWhy", messageLabel("error", this))) {
    setObjectName("lessonMaker");
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Make a lesson"));
    m_title->setAccessibleName(tr("Title of the lesson"));
    m_text->setAccessibleName(tr("Text of the lesson"));
    m_text->setPlaceholderText(tr("What the lesson is about, in Markdown"));
    m_text->setTabChangesFocus(true);
    m_text->setFixedHeight(px(110));
    auto* column = makeLayout<QVBoxLayout>(this, {16, 12, 16, 12}, 6);
    column->addWidget(roleLabel(tr("Title"), "label", this));
    column->addWidget(m_title);
    column->addWidget(roleLabel(tr("Text"), "label", this));
    column->addWidget(m_text);
    column->addWidget(button(tr("Start with what is shown now"), "makerStart", [this] { takeStart(); }));
    m_switch->setObjectName("makerPages");
    connect(m_switch, &SegmentedSwitch::chosen, this, &LessonMaker::showPage);
    m_pages->addWidget(buildStops());
    m_pages->addWidget(m_question);
    column->addWidget(m_switch, 0, Qt::AlignLeft);
    column->addWidget(m_pages, 1);
    column->addWidget(m_why);
    auto* row = innerLayout<QHBoxLayout>(column);
    row->addStretch();
    row->addWidget(button(tr("Save the lesson…"), "makerSave", [this] { save(); }));
    row->addWidget(button(tr("Close"), "makerClose", [this] { close(); }));
    resize(px(460), px(620));
    if (const auto open = lessonOf(workbench.session())) m_lesson = *open;
    m_of = workbench.session();
    if (m_of.lesson.empty()) takeStart();
    if (m_lesson.group.empty() || workbench.session().lesson.empty()) m_lesson.group = tr("Your lessons").toStdString();
    m_title->setText(fromUtf8(m_lesson.title));
    m_text->setPlainText(fromUtf8(m_lesson.text));
    m_question->show(m_lesson);
    connect(m_title, &QLineEdit::textChanged, this, &LessonMaker::followEdits);
    connect(m_question, &QuestionMaker::edited, this, &LessonMaker::followEdits);
    refresh(m_lesson.stops.empty() ? -1 : 0);
    m_saved = session();
}

QPushButton* LessonMaker::button(const QString& text, const char* name, const std::function<void()>& run) {
    QPushButton* made = named(name, wordButton(text, this));
    made->setAutoDefault(false);
    connect(made, &QPushButton::clicked, this, run);
    return made;
}

void LessonMaker::showPage(int page) {
    m_switch->setCurrent(page);
    m_pages->setCurrentIndex(page);
}

QWidget* LessonMaker::buildStops() {
    auto* box = new QWidget(this);
    auto* column = makeLayout<QVBoxLayout>(box, {0, 6, 0, 0}, 6);
    m_stops = added(column, named("makerStops", new QListWidget(box)), 1);
    m_stops->setAccessibleName(tr("Stops of the lesson"));
    auto* row = innerLayout<QHBoxLayout>(column);
    row->addWidget(button(tr("Add a stop"), "makerAdd", [this] { addStop(); }));
    m_forChosen = {button(tr("Take it again"), "makerRetake", [this] { retake(); }),
                   button(tr("Remove"), "makerRemove", [this] { removeStop(); }),
                   button(tr("Up"), "makerUp", [this] { moveStop(-1); }),
                   button(tr("Down"), "makerDown", [this] { moveStop(1); })};
    m_forChosen.front()->setToolTip(tr("The chosen stop shows what is shown now."));
    for (QPushButton* one : m_forChosen) row->addWidget(one);
    row->addStretch();
    m_stopTitle = added(column, named("makerStopTitle", new QLineEdit(box)));
    m_stopTitle->setPlaceholderText(tr("Title of the stop"));
    m_stopText = added(column, named("makerStopText", new QPlainTextEdit(box)));
    m_stopText->setPlaceholderText(tr("What to look at here"));
    m_stopText->setTabChangesFocus(true);
    m_stopText->setFixedHeight(px(72));
    connect(m_stops, &QListWidget::currentRowChanged, this, &LessonMaker::goTo);
    connect(m_stopTitle, &QLineEdit::textEdited, this, &LessonMaker::takeTexts);
    connect(m_stopText, &QPlainTextEdit::textChanged, this, &LessonMaker::takeTexts);
    return box;
}

LessonStop* LessonMaker::chosen() {
    const int row = m_stops->currentRow();
    return row < 0 || row >= std::ssize(m_lesson.stops) ? nullptr : &m_lesson.stops[static_cast<std::size_t>(row)];
}

/// Views with steps come first, because the step player plays the steps of the first view.
std::vector<std::string> LessonMaker::shownViews() const {
    std::vector<const View*> views = m_workbench.shownViews();
    std::erase_if(views, [](const View* view) { return view->card().perPane; });
    std::ranges::stable_sort(views, std::ranges::greater(), [](const View* view) {
        return view->card().teaching == TeachingRole::Steps || view->card().teaching == TeachingRole::StepsFirst;
    });
    std::vector<std::string> ids;
    for (const View* view : views) ids.push_back(view->card().id);
    return ids;
}

void LessonMaker::takeStart() {
    m_lesson.start = m_workbench.session();
    std::string edited = std::move(m_of.lesson); // stays, whatever lesson is open by now
    m_of = m_lesson.start;
    m_of.lesson = std::move(edited);
    m_lesson.views = shownViews();
    followEdits();
}

void LessonMaker::addStop() {
    const int at = m_stops->currentRow() < 0 ? static_cast<int>(m_lesson.stops.size()) : m_stops->currentRow() + 1;
    m_lesson.stops.insert(m_lesson.stops.begin() + at, LessonStop{{}, {}, shownViews(), m_workbench.session()});
    refresh(at);
    m_stopTitle->setFocus();
}

void LessonMaker::retake() {
    chosen()->setting = m_workbench.session();
    chosen()->views = shownViews();
    followEdits();
}

void LessonMaker::removeStop() {
    const int row = m_stops->currentRow();
    m_lesson.stops.erase(m_lesson.stops.begin() + row);
    refresh(std::min(row, static_cast<int>(m_lesson.stops.size()) - 1));
}

void LessonMaker::moveStop(int by) {
    const int row = m_stops->currentRow(), to = row + by;
    if (to < 0 || to >= std::ssize(m_lesson.stops)) return;
    std::swap(m_lesson.stops[static_cast<std::size_t>(row)], m_lesson.stops[static_cast<std::size_t>(to)]);
    refresh(to);
}

void LessonMaker::goTo(int) {
    if (m_filling) return;
    if (const LessonStop* stop = chosen())
        m_workbench.change([stop](Session& s) { applySetting(s, stop->setting); }, tr("Lesson step"));
    refresh(m_stops->currentRow());
}

void LessonMaker::takeTexts() {
    LessonStop* stop = chosen();
    if (m_filling || !stop) return;
    stop->title = m_stopTitle->text().toStdString();
    stop->text = m_stopText->toPlainText().toStdString();
    m_stops->currentItem()->setText(fromUtf8(stop->title.empty() ? stop->text : stop->title));
}

void LessonMaker::refresh(int row) {
    m_filling = true;
    m_stops->clear();
    for (const LessonStop& stop : m_lesson.stops)
        m_stops->addItem(fromUtf8(!stop.title.empty() ? stop.title : stop.text).section('\n', 0, 0));
    m_stops->setCurrentRow(row);
    const LessonStop* stop = chosen();
    m_stopTitle->setText(stop ? fromUtf8(stop->title) : QString());
    m_stopText->setPlainText(stop ? fromUtf8(stop->text) : QString());
    for (QWidget* part : {static_cast<QWidget*>(m_stopTitle), static_cast<QWidget*>(m_stopText)})
        part->setEnabled(stop != nullptr);
    for (QPushButton* one : m_forChosen) one->setEnabled(stop != nullptr);
    m_filling = false;
    followEdits();
}

void LessonMaker::takeFields() {
    m_lesson.title = m_title->text().trimmed().toStdString();
    m_lesson.text = m_text->toPlainText().trimmed().toStdString();
    m_question->writeTo(m_lesson);
}

Session LessonMaker::session() {
    takeFields();
    return sessionWith(m_lesson, m_of);
}

void LessonMaker::reject() {
    if (session() == m_saved || // which compares the start, too
        QMessageBox::question(this, windowTitle(), tr("Close without saving the lesson?")) == QMessageBox::Yes)
        QDialog::reject();
}

/// A lesson's file names one capture, that of the start.
bool LessonMaker::isOfOneCapture() const {
    const auto isHere = [here = sourceOf(m_of)](const Session& setting) { return sourceOf(setting) == here; };
    return std::ranges::all_of(m_lesson.stops, isHere, &LessonStop::setting) &&
           (m_lesson.question.empty() || isHere(m_lesson.asked));
}

QString LessonMaker::whyNot() {
    takeFields();
    if (m_lesson.title.empty()) return tr("The lesson needs a title: the list shows it.");
    if (const QString missing = m_question->missing(); !missing.isEmpty()) return missing;
    return isOfOneCapture() ? QString()
                            : tr("A stop or the question was taken on another capture than the start: take it again, "
                                 "or start with what is shown now.");
}

void LessonMaker::followEdits() {
    if (m_isFaulty) m_why->setText(whyNot());
    m_isFaulty = m_isFaulty && !m_why->text().isEmpty();
}

void LessonMaker::save() {
    m_why->setText(whyNot());
    m_isFaulty = !m_why->text().isEmpty();
    if (!m_lesson.title.empty() && !m_question->missing().isEmpty()) showPage(1);
    if (m_isFaulty) return;
    const Session made = session();
    QDir().mkpath(folder());
    QString name = fromUtf8(m_lesson.title).toLower();
    name.replace(QRegularExpression("[^\\w]+"), "-");
    const QString path =
        fileToWrite(this, tr("Save the lesson"), QDir(folder()).filePath(name + ".kvscope"), tr("Lessons (*.kvscope)"));
    if (path.isEmpty()) return;
    const QString ours = fromUtf8(findResource("resources/lessons"));
    if (!ours.isEmpty() && QFileInfo(path).absoluteDir() == QDir(ours))
        return m_why->setText(tr("That is the folder of the program's own lessons: choose another one."));
    try {
        writeAside(this, path, [file = path.toStdString(), made] { writeSession(file, made); });
    } catch (const Error& error) {
        return m_why->setText(fromUtf8(error.what()));
    }
    m_saved = made;
    m_why->clear();
    emit saved(path);
}

} // namespace kvscope
