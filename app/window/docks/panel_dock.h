#pragma once

#include <QDockWidget>

namespace kvscope {

/// A panel or view that docks, tabs, floats and hides. Its content can be replaced in place when the interface scale
/// changes.
class PanelDock : public QDockWidget {
    Q_OBJECT

public:
    /// `id` is the object name, used by arrangements and settings.
    PanelDock(const QString& id, const QString& title, QWidget* parent);

    QString id() const { return objectName(); }
    /// Takes ownership of both; the old ones are deleted. `header` is a 28 px row to which the dock's buttons are
    /// added.
    void fill(QWidget* body, QWidget* header);
    /// As above with the dock's title as header; `fillScrolled` puts the body into a vertical scroll area.
    void fillPlain(QWidget* body) { fill(body, plainHeader(windowTitle())); }
    static QWidget* plainHeader(const QString& title); ///< the row with a title, without buttons
    void fillScrolled(QWidget* body);
    /// Hides the content, even of a dock in front; the dock keeps its place and size.
    void suspend(bool suspended);
    /// Shows the dock in front of its tabs.
    void present();
    /// Whether a tab bar is above the dock.
    bool hasTabs() const;
    /// Floats the dock in a window of its own, larger than its place was, over the middle of the main window.
    void floatLarger();
    /// A floating dock fills the screen, or has its own size again.
    void fillScreen();

signals:
    void maximiseWanted();

protected:
    bool event(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void moveEvent(QMoveEvent* event) override;

private:
    void addButtons(QWidget* header);
    /// Qt leaves a dock behind another tab visible, outside the window. Its content is hidden here, so that it computes
    /// nothing, takes no keys and is no tab stop.
    void showContent(bool inSight);
    void nameOnce();
    void fitHeader();    ///< narrows or hides chips, and hides the export button, in a narrow dock
    void nameFloating(); ///< the button says what it does next

    bool m_inSight = true, m_suspended = false;
    QRect m_beforeScreen; ///< null: the dock does not fill the screen
};

} // namespace kvscope
