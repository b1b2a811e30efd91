#pragma once

#include "app/workbench/workbench.h"

#include <QWidget>

class QLabel;
class QLineEdit;
class QPushButton;

namespace kvscope {

class Error;
class LiveNumber;
class ValueSlider;

/// The main control for all panes: layer and head, budget, cut.
class BudgetBar : public QWidget {
    Q_OBJECT

public:
    explicit BudgetBar(Workbench& workbench, QWidget* parent = nullptr);
    ValueSlider* slider() const { return m_slider; }

signals:
    void refused(const QString& message); ///< a typed value is invalid
    void accepted();                      ///< a value is valid: what was refused before no longer matters

protected:
    bool event(QEvent* event) override;

private:
    void build();
    /// A narrow bar first narrows the slider; then it hides bytes, the number of tokens, the words of the cut and the
    /// removed share, in this order.
    void fitWidth();
    QLineEdit* placeField(const QString& name, double width);
    void refresh();
    void refreshBudget();
    std::optional<Budget> resolvedBudget(const Budget& budget) const;
    bool keepsAsAsked() const; ///< the active pane; also where it is not known yet
    void applyPlace(QLineEdit* field);
    void refuse(const Error& error);
    void applyTokens();
    void applyFraction(double fraction);
    void buildCutMenu();
    void applyCut(const std::string& cut);

    Workbench& m_workbench;
    QLineEdit *m_layer = nullptr, *m_kvHead = nullptr, *m_queryHead = nullptr, *m_tokens = nullptr;
    ValueSlider* m_slider = nullptr;
    QLabel *m_of = nullptr, *m_word = nullptr;
    LiveNumber *m_kept = nullptr, *m_removed = nullptr, *m_bytes = nullptr;
    QPushButton *m_cut = nullptr, *m_link = nullptr;
};

} // namespace kvscope
