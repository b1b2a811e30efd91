#pragma once

#include "app/window/canvas/canvas_widget.h"
#include "app/workbench/workbench.h"

#include <QFrame>

class QGridLayout;

namespace kvscope {

/// The box with the facts under the pointer: position, token text, segment, score and rank, kept or evicted per pane.
/// The box lies 12 pixels off the point and flips at the window's edges; when pinned, it lies in the corner of the
/// plot that is farthest from the point, which keeps legend and axes free, else in that corner of the canvas, as long
/// as it fits there and leaves the point free. It ignores the mouse. It is a child of the window, because a low strip
/// has no room for it.
class ReadOut : public QFrame {
    Q_OBJECT

public:
    ReadOut(const Workbench& workbench, QWidget* parent);

    /// `at` in coordinates of `over`. `more`: the view's own facts about the token.
    void showToken(TokenIndex token, CanvasWidget& over, const QPointF& at, bool pinned, const PointFacts& more = {});
    /// Facts about a mark that is not a token.
    void showFacts(const PointFacts& facts, CanvasWidget& over, const QPointF& at, bool pinned = false);
    void dismiss();
    TokenIndex token() const { return m_token; }
    bool isPinned() const { return m_pinned; }
    QString text() const; ///< all lines, for tests and the clipboard

private:
    void addRow(QWidget* name, const QString& value);
    void addFacts();
    void clearBody();
    void fill();
    void placeBeside(CanvasWidget& over, const QPointF& at);

    const Workbench& m_workbench;
    QWidget* m_body = nullptr; ///< made anew for each token
    QGridLayout* m_grid = nullptr;
    TokenIndex m_token = -1;
    PointFacts m_facts;
    bool m_pinned = false;
    QStringList m_lines;
};

} // namespace kvscope
