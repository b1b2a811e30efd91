#pragma once

#include <QDialog> // before the standard library, whose concepts moc cannot read

#include "app/live/model_facts.h"
#include "app/workbench/workbench.h"

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QSpinBox;

namespace kvscope {

/// Describes a live context: model, Python, text, question, expected answer and cut. A worker that runs while the
/// dialog is open says what the model needs and where the cut lies before anything is loaded; an error is shown below
/// its field.
class FromTextDialog : public QDialog {
    Q_OBJECT

public:
    FromTextDialog(Workbench& workbench, const live::LiveDescription& first, QWidget* parent);
    ~FromTextDialog() override;

    /// What was opened last; at first the example, with `python` to run it.
    static live::LiveDescription remembered(const std::string& python);
    live::LiveDescription description() const;

signals:
    void chosen(const live::LiveDescription& description);

private:
    struct Worker; ///< the worker that answers; used by one job at a time
    struct Found;  ///< what the worker has said so far
    QLabel* addRow(const QString& label, QWidget* field, QWidget* beside = nullptr, const char* said = nullptr);
    QWidget* buildRun();
    QWidget* buildText();
    QWidget* buildCut();
    void fill(const live::LiveDescription& description);
    void readTextFile();
    void showText();
    void checkSoon();
    void check();
    void tell(const Found& found);
    void offerModels(const std::vector<std::string>& cached);
    void say(QLabel* label, const QString& text, bool isWrong = false);
    QString needs(const Found& found) const;
    QString cutText(const Found& found) const;
    void openContext();

    Workbench& m_workbench;
    std::shared_ptr<Worker> m_worker;
    std::unique_ptr<Clock::Timer> m_soon;
    bool m_isChecking = false;           ///< a job uses m_worker
    bool m_isRefused = false;            ///< something is known to be wrong
    std::vector<live::TextPart> m_parts; ///< of the context as given; used while the text is not edited
    live::ModelChoice m_givenModel;      ///< with its revision, which is used while the model is not edited
    QString m_shownText;                 ///< what the text field makes of m_parts
    QStringList m_offered;               ///< models
    QGridLayout* m_grid;
    QComboBox *m_model, *m_device, *m_dtype, *m_cut;
    QLineEdit *m_python, *m_question, *m_answer;
    QPlainTextEdit* m_text;
    QCheckBox *m_chat, *m_bos;
    QSpinBox* m_cutNumber;
    QLabel *m_modelSays, *m_pythonSays, *m_textSays, *m_cutSays;
};

} // namespace kvscope
