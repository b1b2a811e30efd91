#pragma once

#include "app/window/canvas/view_canvas.h"

#include <QFrame>

#include <vector>

class QBoxLayout;

namespace kvscope {

class CaptureCaption;
class ElidedLabel;

/// A view that shows all panes: its canvas, and a header of 28 pixels with name, options as chips and finding. The
/// header is the title bar of the dock. While two captures are compared, the canvas of the second one stands beside or
/// below the first, each under its caption; a view of both captures has one canvas.
class ViewDock : public QFrame {
    Q_OBJECT

public:
    ViewDock(Workbench& workbench, const View& view, const TextService& text, QWidget* parent = nullptr);
    ViewCanvas* canvas() const { return m_canvas; }
    std::vector<ViewCanvas*> canvases() const; ///< the first capture's, and the second's once there was one
    QWidget* header() const { return m_header; }

signals:
    void secondMade(ViewCanvas* canvas); ///< for the first comparison

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    bool hasSecond() const; ///< two captures are compared, and the view shows one of them
    void addPicture(ViewCanvas* canvas, CaptureCaption* caption);
    void followCaptures();
    void refresh();

    Workbench& m_workbench;
    const TextService& m_text;
    ViewCanvas *m_canvas, *m_second = nullptr; ///< second: made for the first comparison
    CaptureCaption *m_caption, *m_secondCaption = nullptr;
    QBoxLayout* m_pictures;
    ElidedLabel* m_finding;
    QWidget* m_header = nullptr;
};

} // namespace kvscope
