#pragma once

#include "app/window/widgets/value_slider.h"
#include "core/parameters/parameters.h"

#include <QWidget>

#include <array>
#include <vector>

class QCheckBox;
class QComboBox;
class QFrame;
class QLabel;
class QLineEdit;
class QPushButton;
class QToolButton;
class QVBoxLayout;

namespace kvscope {

/// A row of a parameter table as a control: name, symbol, typed field with unit, reset, slider with a tick at the
/// variant's value; a drop-down for a choice, a box for a flag, a field for a text. A narrow row has its control below
/// the name. Shows values and emits edits, but changes nothing.
class ParameterRow : public QWidget {
    Q_OBJECT

public:
    explicit ParameterRow(const ParameterSpec& spec, QWidget* parent = nullptr);

    const ParameterSpec& spec() const { return m_spec; }
    const std::string& id() const { return m_spec.id; }
    /// Number of tokens before the cut, for sliders that end there.
    void setTokens(std::int64_t tokens);
    /// `variant`: what reset gives back, where the slider has its tick, and from which a changed value differs.
    void showValue(const ParameterValues& values, const ParameterValues& variant);
    bool differs() const; ///< from the variant
    /// Whether label, symbol, id or a choice has the text in it.
    bool isAbout(const QString& text) const;
    void dropTyped(); ///< forgets a text that is typed and not confirmed: it was meant for another pane or policy
    /// An invalid text stays in the field, red, with the reason below, until the next valid value.
    void showError(const QString& message);
    QString errorMessage() const;

signals:
    void edited(const QString& text, bool dragging);      ///< as ParameterValues::setText takes it
    void resetWanted(const QString& text, bool dragging); ///< the same for the variant's value
    void editingEnded();

private:
    QLabel* nameLabel();
    void addLine(QWidget* control); ///< name and control
    void buildNumber();
    void buildChoice();
    void buildFlag();
    void buildText();
    void proposeTyped(const QString& text);
    QString helpText() const;

    ParameterSpec m_spec;
    QFrame* m_changedBar = nullptr;
    QToolButton* m_reset = nullptr;
    QLabel* m_message = nullptr;
    QLineEdit* m_field = nullptr;
    ValueSlider* m_slider = nullptr;
    QComboBox* m_choices = nullptr;
    QCheckBox* m_flag = nullptr;
};

/// The rows of a parameter table: those that the paper is about first, the others folded by stage under a line that
/// says how many of them differ from the variant. A search shows rows wherever they are. Rows are rebuilt only when the
/// table changes, so that a drag keeps its slider.
class ParameterPanel : public QWidget {
    Q_OBJECT

public:
    explicit ParameterPanel(QWidget* parent = nullptr);

    /// `variant`: the values that reset gives back, and from which changed rows differ.
    void show(const std::shared_ptr<const ParameterTable>& table, const ParameterValues& values,
              const ParameterValues& variant, std::int64_t tokens);
    void dropTyped();                               ///< as ParameterRow's, of all rows
    ParameterRow* row(const std::string& id) const; ///< null without one
    std::size_t rowCount() const { return m_rows.size(); }

signals:
    /// Values with one edited and checked parameter. `dragging` edits of one parameter merge into one undo step.
    void edited(const ParameterValues& values, const QString& label, bool dragging);
    void editingEnded();

private:
    struct Fold {
        QPushButton* head = nullptr;
        bool open = false; ///< also for the next policy
    };

    void rebuild();
    void addFold(Stage stage);
    void addRow(const ParameterSpec& spec);
    void tryEdit(ParameterRow* row, const QString& text, bool dragging);
    void arrange();

    std::shared_ptr<const ParameterTable> m_table;
    ParameterValues m_values, m_variant;
    std::vector<ParameterRow*> m_rows; ///< as shown
    std::array<Fold, 3> m_folds;       ///< by Stage
    QLineEdit* m_search;
    QLabel* m_nothing;
    QVBoxLayout* m_layout;
};

} // namespace kvscope
