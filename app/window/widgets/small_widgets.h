#pragma once

#include "app/window/style/appearance.h"

#include <QBoxLayout>
#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QMargins>
#include <QPushButton>
#include <QScrollArea>
#include <QToolButton>
#include <QWidget>

#include <string>

namespace kvscope {

/// A layout of a widget with these margins and this spacing in design pixels; a negative spacing is the style's own.
template <class Layout> Layout* makeLayout(QWidget* widget, const QMargins& margins, int spacing = -1) {
    auto* layout = new Layout(widget);
    layout->setContentsMargins(px(margins.left()), px(margins.top()), px(margins.right()), px(margins.bottom()));
    if (spacing >= 0) layout->setSpacing(px(spacing));
    return layout;
}

/// The same, added at the end of a box layout.
template <class Layout>
Layout* innerLayout(QBoxLayout* box, const QMargins& margins = {}, int spacing = -1, int stretch = 0) {
    auto* layout = makeLayout<Layout>(nullptr, margins, spacing);
    box->addLayout(layout, stretch);
    return layout;
}

/// Gives the widget the name by which the style sheet and tests find it, and returns it.
template <class Widget> Widget* named(const char* name, Widget* widget) {
    widget->setObjectName(name);
    return widget;
}

/// Adds the widget to a layout or a stack and returns it; `where`: further arguments of addWidget.
template <class Place, class Widget, class... Where> Widget* added(Place* place, Widget* widget, Where... where) {
    place->addWidget(widget, where...);
    return widget;
}

/// A label styled by its role ("section", "fact", "quiet", "title" ...).
QLabel* roleLabel(const QString& text, const char* role, QWidget* parent = nullptr);
/// The same, wrapped into as many lines as it needs.
QLabel* wrappedLabel(const QString& text, const char* role, QWidget* parent = nullptr);
/// A wrapped label that keeps room for two lines, so that nothing moves when a message comes or goes.
QLabel* messageLabel(const char* role, QWidget* parent);
/// Sets a text that often stays the same: QLabel::setText lays out and paints even then.
void showText(QLabel* label, const QString& text);
/// A monospaced, right-aligned label for numbers.
QLabel* numberLabel(double designSize = 12, int weight = QFont::Normal, QWidget* parent = nullptr);
QFrame* separatorLine(QWidget* parent = nullptr);
/// A 24 x 24 button with an icon, a tooltip and the same text as accessible name.
QToolButton* iconButton(const char* icon, const QString& tip, QWidget* parent = nullptr);
QPushButton* wordButton(const QString& text, QWidget* parent = nullptr);
/// A scroll area that scrolls vertically only, without a frame and without the focus.
QScrollArea* scrollArea(QWidget* parent = nullptr);
/// A rounded chip, which elides its text where it is narrow; tone "plain", "warning" or "error".
QPushButton* chipButton(const QString& text, const char* tone, QWidget* parent = nullptr);
/// A field that leaves Ctrl+E to the window, and undo and redo except for a typed value that is not taken yet.
class ValueField : public QLineEdit {
public:
    using QLineEdit::QLineEdit;

protected:
    bool event(QEvent* event) override;
};

/// A right-aligned field for typed numbers; `designWidth` in design pixels.
QLineEdit* numberField(double designWidth, const QString& accessibleName, QWidget* parent = nullptr);
void setWrong(QLineEdit* field, bool wrong);
/// Makes Tab go from `before` to the tab stops in `place`, in their present order. Returns the last of them; `before`
/// if there is none. New widgets are otherwise last in the whole window.
QWidget* tabAfter(QWidget* before, QWidget* place);
void discard(QWidget* widget);  ///< hides it now and deletes it later, when none of its functions runs; null: nothing
void repolish(QWidget* widget); ///< a property that the style sheet reads has changed

/// The letter of a pane on its policy's colour.
class LetterBadge : public QWidget {
public:
    explicit LetterBadge(double designSize = 18, QWidget* parent = nullptr);
    void show(char letter, const std::string& policyId);

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    char m_letter = 'A';
    std::string m_policyId;
};

/// A label that elides its text; the whole text is its tooltip.
class ElidedLabel : public QLabel {
    Q_OBJECT

public:
    ElidedLabel(const char* role, Qt::TextElideMode mode, QWidget* parent = nullptr);
    /// Shows the text, or the first of the shorter texts that fits, or the last of them elided. Tool tip and accessible
    /// name hold the whole text.
    void setFullText(const QString& text, const QStringList& shorter = {});
    QSize minimumSizeHint() const override;
    QSize sizeHint() const override;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void elide();
    QString m_full;
    QStringList m_shorter;
    Qt::TextElideMode m_mode;
};

} // namespace kvscope
