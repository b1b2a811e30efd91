#pragma once

#include <QDialog> // before the standard library, whose concepts moc cannot read

#include "app/lessons/lesson.h"
#include "app/workbench/workbench.h"

class QLabel;
class QLineEdit;
class QListWidget;
class QPlainTextEdit;
class QPushButton;
class QStackedWidget;

namespace kvscope {

class QuestionMaker;
class SegmentedSwitch;

/// Makes a lesson of the session, or edits the open lesson: a title, a text, stops that store what is shown when they
/// are added, and perhaps a question. Not modal: the user sets up the next stop meanwhile. Writes a lesson file.
class LessonMaker : public QDialog {
    Q_OBJECT

public:
    LessonMaker(Workbench& workbench, QWidget* parent);

    /// Where the lessons of users are kept; the list of lessons shows them after the program's own.
    static QString folder();
    void reject() override; ///< asks first if there are unsaved changes

signals:
    void saved(const QString& path);

private:
    QWidget* buildStops();
    void showPage(int page); ///< 0: the stops, 1: the question
    QPushButton* button(const QString& text, const char* name, const std::function<void()>& run);
    void addStop();
    void takeStart();
    void retake();
    void removeStop();
    void moveStop(int by);
    void goTo(int stop);
    void takeTexts(); ///< of the chosen stop, from the fields
    void refresh(int chosen);
    void save();
    QString whyNot();   ///< why the lesson cannot be saved as it stands; empty: it can
    void followEdits(); ///< a message goes when what it says is mended
    bool isOfOneCapture() const;
    void takeFields(); ///< of the start and the question
    Session session(); ///< of the lesson as it stands in the fields
    std::vector<std::string> shownViews() const;
    LessonStop* chosen();

    Workbench& m_workbench;
    Session m_of; ///< what session() starts from: the capture of the lesson, and the text of the edited lesson, if any
    Lesson m_lesson;
    Session m_saved;         ///< the lesson's session when it was opened or last saved
    bool m_filling = false;  ///< fields are set by the program
    bool m_isFaulty = false; ///< the message says what of the lesson must be mended
    QLineEdit *m_title, *m_stopTitle = nullptr;
    QPlainTextEdit *m_text, *m_stopText = nullptr;
    QListWidget* m_stops = nullptr;
    SegmentedSwitch* m_switch;
    QStackedWidget* m_pages;
    QuestionMaker* m_question;
    QLabel* m_why;
    std::vector<QPushButton*> m_forChosen;
};

} // namespace kvscope
