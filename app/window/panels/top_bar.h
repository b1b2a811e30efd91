#pragma once

#include "app/study/prompt_text.h"
#include "app/workbench/workbench.h"

#include <QWidget>

class QLabel;
class QLineEdit;
class QMenuBar;
class QPushButton;

namespace kvscope {

class SegmentedSwitch;
class WindowActions;

/// Menus, layout switch, undo and redo, find, export: one bar instead of a menu bar and tool bars.
class TopBar : public QWidget {
    Q_OBJECT

public:
    TopBar(Workbench& workbench, WindowActions& actions, QWidget* parent = nullptr);
    void fitWidth(int windowWidth);
    void focusFind();
    bool leaveFind();          ///< true when the find field had the focus
    void findNext(int by = 1); ///< -1: the place before

signals:
    void notFound(const QString& text);
    void foundAll(const QString& text); ///< all places are selected

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void build(WindowActions& actions);
    void buildFind();
    std::vector<TokenRun> places() const; ///< of what is in the field
    void findWhileTyping();
    void findAll();
    void select(const TokenRun& place); ///< one step of undo while the user types
    void sayPlace();                    ///< "2 of 7" in the field

    Workbench& m_workbench;
    QMenuBar* m_menus = nullptr;
    SegmentedSwitch* m_layout = nullptr;
    QLineEdit* m_find = nullptr;
    QLabel* m_place = nullptr;
    TokenIndex m_from = 0;              ///< where the search began
    std::vector<TokenIndex> m_followed; ///< the selection that m_place is about
    QPushButton* m_export = nullptr;
};

} // namespace kvscope
