#pragma once

#include "app/window/style/appearance.h"

#include <QTextBrowser>
#include <QWidget>

namespace kvscope {

/// A page of the embedded manual: Markdown with pictures and links.
class ManualPage : public QTextBrowser {
    Q_OBJECT

public:
    explicit ManualPage(QWidget* parent = nullptr);
    /// Draws SVG at the interface scale, at most as wide as the page; other resources are loaded by Qt.
    QVariant loadResource(int type, const QUrl& name) override;

protected:
    void doSetSource(const QUrl& name, QTextDocument::ResourceType type) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;  ///< leaves Esc to the window
    void resizeEvent(QResizeEvent* event) override; ///< keeps the scroll position

private:
    void scrollTo(int top);
    /// The scroll position to keep: the wanted one unless the user has scrolled since.
    int place() const;

    int m_wanted = 0, m_given = -1;    ///< asked of, and reached by, the last scrollTo
    Appearance m_drawn = appearance(); ///< what the page was laid out for
};

/// The manual in its own window, to be read beside the views. Deletes itself when closed.
class ManualWindow : public QWidget {
    Q_OBJECT

public:
    explicit ManualWindow(QWidget* parent = nullptr);
    void openPage(const QString& page); ///< "disagreements.md#b7": a file of resources/manual, a heading of it

protected:
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void fit(); ///< resizes with the interface scale, within the screen

    double m_scale = 1;       ///< the interface scale that the size was made for
    QSize m_design{720, 760}; ///< the size at scale 1
    QSize m_given = size();   ///< the size that fit() gave
};

} // namespace kvscope
