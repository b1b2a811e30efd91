#pragma once

#include <QFrame>
#include <QPointer>

class QVBoxLayout;

namespace kvscope {

/// Panels beside the rail and over the pictures, where the window has no room for their docks. They go, and are
/// deleted, by their cross, by Esc and by a press elsewhere in the window.
class RailPanels : public QFrame {
    Q_OBJECT

public:
    RailPanels(QWidget& rail, QWidget* window);
    void add(const QString& title, QWidget* body, int stretch); ///< below those before, scrolled
    void open();                                                ///< with the focus

    bool eventFilter(QObject* watched, QEvent* event) override;

protected:
    void closeEvent(QCloseEvent* event) override;

private:
    void place();

    QWidget& m_rail;
    QVBoxLayout* m_column;
    QPointer<QWidget> m_before; ///< had the focus
};

} // namespace kvscope
