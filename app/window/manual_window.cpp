// The manual inside the program. The same files as in resources/manual, embedded when the program is built.
#include "app/window/manual_window.h"

#include "app/window/appearance.h"

#include <QFile>
#include <QHBoxLayout>
#include <QImage>
#include <QKeyEvent>
#include <QPainter>
#include <QPushButton>
#include <QSvgRenderer>
#include <QTextBlockFormat>
#include <QTextCursor>
#include <QVBoxLayout>

// Q_INIT_RESOURCE declares a global function, so it cannot be called from inside a namespace.
static void initManualResources() { Q_INIT_RESOURCE(manual); }

namespace kvscope {

namespace {

const QUrl kContents(QStringLiteral("qrc:/manual/README.md"));

QImage drawSvg(const QString& path, int mostWidth, double pixelRatio) {
    QSvgRenderer renderer(path);
    QSizeF size = renderer.defaultSize();
    if (!renderer.isValid() || size.isEmpty())
        return {};
    if (size.width() > mostWidth)
        size *= mostWidth / size.width();
    QImage image((size * pixelRatio).toSize(), QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::white); // exported figures are light
    QPainter painter(&image);
    renderer.render(&painter);
    painter.end();
    image.setDevicePixelRatio(pixelRatio);
    return image;
}

} // namespace

ManualPage::ManualPage(QWidget* parent) : QTextBrowser(parent) {
    initManualResources();
    setObjectName("manualPage");
    setOpenExternalLinks(true);
    setSource(kContents, QTextDocument::MarkdownResource);
}

QVariant ManualPage::loadResource(int type, const QUrl& name) {
    if (type != QTextDocument::ImageResource || !name.path().endsWith(".svg"))
        return QTextBrowser::loadResource(type, name);
    const QUrl url = source().resolved(name);
    return drawSvg(":" + url.path(), px(620), devicePixelRatioF());
}

// Commands are longer than a page is wide: they wrap, so that nothing has to be scrolled to be read.
void ManualPage::doSetSource(const QUrl& name, QTextDocument::ResourceType type) {
    QTextBrowser::doSetSource(name, type);
    QTextBlockFormat wrapped;
    wrapped.setNonBreakableLines(false);
    QTextCursor all(document());
    all.select(QTextCursor::Document);
    all.mergeBlockFormat(wrapped);
}

ManualWindow::ManualWindow(QWidget* parent) : QWidget(parent, Qt::Window) {
    setAttribute(Qt::WA_DeleteOnClose);
    setObjectName("manualWindow");
    setAttribute(Qt::WA_StyledBackground);
    setWindowTitle(tr("KVScope manual"));
    resize(px(720), px(760));
    auto* page = new ManualPage(this);
    auto* contents = new QPushButton(tr("Contents"), this);
    auto* back = new QPushButton(tr("Back"), this);
    back->setEnabled(false);
    connect(contents, &QPushButton::clicked, page, [page] { page->setSource(kContents, QTextDocument::MarkdownResource); });
    connect(back, &QPushButton::clicked, page, &QTextBrowser::backward);
    connect(page, &QTextBrowser::backwardAvailable, back, &QPushButton::setEnabled);
    auto* column = new QVBoxLayout(this);
    auto* row = new QHBoxLayout;
    row->addWidget(contents);
    row->addWidget(back);
    row->addStretch();
    column->addLayout(row);
    column->addWidget(page);
    page->setFocus(); // arrows and Page Down read on
}

void ManualWindow::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Cancel) || event->matches(QKeySequence::Close))
        close();
    else
        QWidget::keyPressEvent(event);
}

} // namespace kvscope
