#pragma once

#include <QTextBrowser>
#include <QWidget>

namespace kvscope {

/// The manual's pages, which travel inside the program: Markdown with pictures, links between pages, links outwards.
class ManualPage : public QTextBrowser {
    Q_OBJECT

public:
    explicit ManualPage(QWidget* parent = nullptr);
    /// SVG becomes an image as wide as the page; everything else is Qt's.
    QVariant loadResource(int type, const QUrl& name) override;

protected:
    void doSetSource(const QUrl& name, QTextDocument::ResourceType type) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override; ///< Esc is the window's
};

/// The manual in a window of its own, so that it can be read beside the picture. Deletes itself when closed.
class ManualWindow : public QWidget {
    Q_OBJECT

public:
    explicit ManualWindow(QWidget* parent = nullptr);

protected:
    void keyPressEvent(QKeyEvent* event) override;
};

} // namespace kvscope
