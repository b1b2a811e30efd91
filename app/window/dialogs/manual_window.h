#pragma once

#include "app/window/style/appearance.h"

#include <QTextBrowser>
#include <QWidget>

namespace kvscope {

/// The manual's pages, which travel inside the program: Markdown with pictures, links between pages, links outwards.
class ManualPage : public QTextBrowser {
    Q_OBJECT

public:
    explicit ManualPage(QWidget* parent = nullptr);
    /// SVG becomes an image at the interface scale, at most as wide as the page; everything else is Qt's.
    QVariant loadResource(int type, const QUrl& name) override;

protected:
    void doSetSource(const QUrl& name, QTextDocument::ResourceType type) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;  ///< Esc is the window's
    void resizeEvent(QResizeEvent* event) override; ///< keeps the place that is read

private:
    void scrollTo(int top);
    /// Where the reader is; not where a page that is still the old one in the new window has put him.
    int place() const;

    int m_wanted = 0, m_given = -1;    ///< of the last scrollTo
    Appearance m_drawn = appearance(); ///< what the page was laid out for
};

/// The manual in a window of its own, so that it can be read beside the picture. Deletes itself when closed.
class ManualWindow : public QWidget {
    Q_OBJECT

public:
    explicit ManualWindow(QWidget* parent = nullptr);
    void openPage(const QString& page); ///< "disagreements.md#b7": a file of resources/manual, a heading of it

protected:
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void fit(); ///< grows and shrinks with the interface, within the screen

    double m_scale = 1;       ///< that the size was made for
    QSize m_design{720, 760}; ///< at scale 1
    QSize m_given = size();   ///< the size that fit() gave
};

} // namespace kvscope
