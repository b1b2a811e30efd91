#pragma once

#include <QDockWidget>

class QToolButton;

namespace kvscope {

/// A panel or view that docks, tabs, floats and hides. Its content can be replaced without moving the dock, because the
/// chrome is built anew when the interface scale changes.
class PanelDock : public QDockWidget {
    Q_OBJECT

public:
    /// `id` is the object name, by which arrangements and settings know it.
    PanelDock(const QString& id, const QString& title, QWidget* parent);

    QString id() const { return objectName(); }
    /// Takes both; the old ones are deleted. `header` is a 28 px row to which the dock's buttons are added.
    void fill(QWidget* body, QWidget* header);
    /// As above with the dock's title as header; `fillScrolled` puts the body into a vertical scroll area.
    void fillPlain(QWidget* body) { fill(body, plainHeader()); }
    void fillScrolled(QWidget* body);
    /// Shows it and brings it to the front of its tabs.
    void present();
    /// Whether a row of tabs stands above it.
    bool hasTabs() const;

protected:
    void showEvent(QShowEvent* event) override;
    void moveEvent(QMoveEvent* event) override;

private:
    QWidget* plainHeader();
    void addButtons(QWidget* header);
    void nameOnce();
};

} // namespace kvscope
