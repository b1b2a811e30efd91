#pragma once

#include "app/window/canvas/view_canvas.h"

#include <QDialog>
#include <QPointer>

#include <functional>

class QGridLayout;
class QHBoxLayout;
class QLabel;
class QLineEdit;

namespace kvscope {

/// A view's shown range as typed numbers: from and to in both directions, and colour limits where they can be chosen.
/// Not modal; a wrong entry turns its fields red with the reason, and changes nothing.
class RangeDialog : public QDialog {
    Q_OBJECT

public:
    RangeDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent);

private:
    struct Row {
        QLineEdit *from = nullptr, *to = nullptr;
        bool isTyped() const;
        void followAgain() const; ///< what was typed has been taken, or is no longer wanted
        void show(double low, double high) const;
    };

    Row addRow(int row, const QString& words, const QString& name);
    void addColourRow();
    QHBoxLayout* colourButtons();
    void addButtons();
    /// Reads two ascending numbers; false: the fields hold something else, and the dialog says so.
    bool read(const Row& row, double& low, double& high);
    void refuse(const Row& row, const QString& why); ///< an empty reason accepts the fields
    void apply();
    bool applyColours(); ///< false: the entries are invalid
    void applyColourChange(const std::optional<SettingChange>& settingChange);
    void followColours(); ///< updates the fields, unless the user has typed in them
    void followRange();   ///< the same
    bool isRangeTyped() const { return m_across.isTyped() || m_along.isTyped(); }
    /// False: nothing is shown that has a colour scale.
    bool withScale(const std::function<void(const ColourScale&)>& use) const;

    Workbench& m_workbench;
    const View& m_view;
    QPointer<ViewCanvas> m_canvas; ///< null once it is gone: a source that opens meanwhile may have fewer panes
    QGridLayout* m_grid;
    QLabel* m_why;
    Row m_across, m_along;
    Row m_colours; ///< without fields: the view has no colour limits
};

} // namespace kvscope
