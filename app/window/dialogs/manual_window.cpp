// The manual window: the pages of resources/manual, embedded at build time.
#include "app/window/dialogs/manual_window.h"

#include "app/export/embedded_fonts.h"

#include <QFile>
#include <QHBoxLayout>
#include <QImage>
#include <QKeyEvent>
#include <QPainter>
#include <QPushButton>
#include <QScreen>
#include <QScrollBar>
#include <QSvgRenderer>
#include <QTextBlock>
#include <QTextCursor>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>
#include <vector>

// Q_INIT_RESOURCE declares a global function, so it cannot be called from inside a namespace.
static void initManualResources() { Q_INIT_RESOURCE(manual); }

namespace kvscope {

namespace {

const QUrl kContents(QStringLiteral("qrc:/manual/README.md"));

constexpr double kWidestPicture = 620; // of the design: fits the page beside its scroll bar

/// Draws an SVG at the interface scale, so that its text matches the page. Lists of font families are cut to the first
/// one, because Qt reads a list as one name.
QImage drawSvg(const QString& path, double pixelRatio) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return {};
    QByteArray svg = file.readAll();
    for (const FontFace face : {FontFace::Interface, FontFace::Monospace}) {
        const QByteArray families = cssFamilies(face);
        svg.replace(families, families.left(families.indexOf(',')));
    }
    QSvgRenderer renderer(svg);
    QSizeF size = renderer.defaultSize();
    if (!renderer.isValid() || size.isEmpty()) return {};
    size *= appearance().scale * std::min(1.0, kWidestPicture / size.width());
    QImage image((size * pixelRatio).toSize(), QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::white); // exported figures are light
    QPainter painter(&image);
    renderer.render(&painter);
    painter.end();
    image.setDevicePixelRatio(pixelRatio);
    return image;
}

/// Spacing below paragraphs; commands wrap on a background of their own.
void setBlock(const QTextBlock& block) {
    const bool code = block.blockFormat().hasProperty(QTextFormat::BlockCodeFence);
    QTextBlockFormat format;
    format.setNonBreakableLines(false);
    format.setBottomMargin(code ? 0 : px(6));
    if (code) format.setBackground(qColor(chrome().sunken));
    QTextCursor(block).mergeBlockFormat(format);
}

/// Makes a heading an anchor, named as GitHub names it: "All policies" is #all-policies.
void nameHeading(const QTextBlock& block) {
    if (block.blockFormat().headingLevel() == 0) return;
    QTextCharFormat anchor;
    anchor.setAnchor(true);
    anchor.setAnchorNames({block.text().toLower().replace(' ', '-')});
    QTextCursor(block).mergeBlockCharFormat(anchor);
}

void underlineLinks(const QTextBlock& block) {
    std::vector<std::pair<int, int>> links; // collected first: underlining changes the fragments
    for (auto at = block.begin(); !at.atEnd(); ++at)
        if (at.fragment().charFormat().isAnchor())
            links.emplace_back(at.fragment().position(), at.fragment().position() + at.fragment().length());
    QTextCharFormat underlined;
    underlined.setFontUnderline(true);
    for (const auto& [from, to] : links) {
        QTextCursor cursor(block);
        cursor.setPosition(from);
        cursor.setPosition(to, QTextCursor::KeepAnchor);
        cursor.mergeCharFormat(underlined);
    }
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
    return drawSvg(":" + url.path(), devicePixelRatioF());
}

void ManualPage::doSetSource(const QUrl& name, QTextDocument::ResourceType type) {
    QTextBrowser::doSetSource(name, type);
    for (QTextBlock block = document()->begin(); block.isValid(); block = block.next()) {
        setBlock(block);
        nameHeading(block);
        underlineLinks(block);
    }
    if (!name.hasFragment()) return;
    (void)document()->size(); // lays the page out to its end; otherwise it cannot be scrolled that far
    scrollToAnchor(name.fragment().toLower());
}

void ManualPage::changeEvent(QEvent* event) {
    const int top = place();
    QTextBrowser::changeEvent(event);
    const bool restyled = event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange;
    if (!restyled || source().isEmpty() || appearance() == m_drawn)
        return scrollTo(top); // a new font changes the page's height
    reload();                 // background, margins and pictures depend on theme and interface scale
    scrollTo(static_cast<int>(top * appearance().scale / m_drawn.scale));
    m_drawn = appearance();
}

void ManualPage::resizeEvent(QResizeEvent* event) {
    const int top = place();
    QTextBrowser::resizeEvent(event);
    scrollTo(top);
}

void ManualPage::scrollTo(int top) {
    (void)document()->size(); // lays out the whole page: a page that is still growing would limit the scroll position
    verticalScrollBar()->setValue(top);
    m_wanted = top;
    m_given = verticalScrollBar()->value();
}

int ManualPage::place() const {
    const int now = verticalScrollBar()->value();
    return now == m_given ? m_wanted : now;
}

void ManualPage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape)
        event->ignore();
    else
        QTextBrowser::keyPressEvent(event);
}

ManualWindow::ManualWindow(QWidget* parent) : QWidget(parent, Qt::Window) {
    setAttribute(Qt::WA_DeleteOnClose);
    setObjectName("manualWindow");
    setAttribute(Qt::WA_StyledBackground);
    setWindowTitle(tr("KVScope manual"));
    fit();
    auto* page = new ManualPage(this);
    auto* contents = new QPushButton(tr("Contents"), this);
    auto* back = new QPushButton(tr("Back"), this);
    back->setEnabled(false);
    connect(contents, &QPushButton::clicked, page,
            [page] { page->setSource(kContents, QTextDocument::MarkdownResource); });
    connect(back, &QPushButton::clicked, page, &QTextBrowser::backward);
    connect(page, &QTextBrowser::backwardAvailable, back, &QPushButton::setEnabled);
    auto* column = new QVBoxLayout(this);
    auto* row = new QHBoxLayout;
    row->addWidget(contents);
    row->addWidget(back);
    row->addStretch();
    column->addLayout(row);
    column->addWidget(page);
    page->setFocus(); // for arrow keys and Page Down
}

void ManualWindow::openPage(const QString& page) {
    findChild<ManualPage*>()->setSource(QUrl("qrc:/manual/" + page), QTextDocument::MarkdownResource);
}

void ManualWindow::fit() {
    if (size() != m_given) m_design = size() / m_scale; // resized by the user
    m_scale = appearance().scale;
    m_given = (m_design * m_scale).boundedTo(screen()->availableSize());
    resize(m_given);
}

void ManualWindow::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::StyleChange && appearance().scale != m_scale) fit();
}

void ManualWindow::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape || event->matches(QKeySequence::Close))
        close();
    else
        QWidget::keyPressEvent(event);
}

} // namespace kvscope
