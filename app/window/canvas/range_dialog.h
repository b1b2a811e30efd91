#pragma once

#include "app/window/canvas/view_canvas.h"

#include <QDialog>
#include <QPointer>

#include <functional>

class QGridLayout;
class QLineEdit;

namespace kvscope {

/// A view's shown range as typed numbers: from and to in both directions, and colour limits where they can be chosen.
/// Not modal; a wrong entry turns its field red and changes nothing.
class RangeDialog : public QDialog {
    Q_OBJECT

public:
    RangeDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent);

private:
    QLineEdit* field(int row, int column, const QString& name, double value);
    void addColourRow();
    void apply();
    bool applyColours(); ///< false: the entries are invalid
    void applyColourChange(const std::optional<SettingChange>& settingChange);
    void followColours();
    void followRange(); ///< in fields that nobody typed in
    bool isRangeTyped() const;
    /// False: nothing is shown that has a colour scale.
    bool withScale(const std::function<void(const ColourScale&)>& use) const;

    Workbench& m_workbench;
    const View& m_view;
    QPointer<ViewCanvas> m_canvas; ///< null once it is gone: a source that opens meanwhile may have fewer panes
    QGridLayout* m_grid;
    QLineEdit *m_xFrom, *m_xTo, *m_yFrom, *m_yTo;
    QLineEdit *m_colourFrom = nullptr, *m_colourTo = nullptr; ///< null: the view has no colour limits
};

} // namespace kvscope
