#pragma once

#include "views/view.h"

#include <QAbstractButton>
#include <QImage>

namespace kvscope {

/// A view as a card: a small picture, or grey with the reason why there is none; name and summary below.
class ViewThumbnail : public QAbstractButton {
    Q_OBJECT

public:
    ViewThumbnail(const View& view, QWidget* parent);

    const View& view() const { return m_view; }
    /// The card is about one head; `name` is its title.
    void showHead(QueryHeadIndex head, const QString& name);
    const std::optional<QueryHeadIndex>& head() const { return m_head; } ///< empty: the session's
    /// Whether every word is in the heading, the title, the view's summary or papers; for a head only in the title.
    bool matches(const QString& words, const QString& heading) const;
    /// Draws the view's picture for this input, or sets the reason why there is none.
    void draw(const ViewInput& input, const ParameterValues& options, const TextService& text);
    void setReason(const QString& reason);
    const QString& reason() const { return m_reason; } ///< empty: it has a picture
    const QImage& picture() const { return m_picture; }
    static QSize frame(); ///< logical size at which a view is drawn for its card
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    const View& m_view;
    std::optional<QueryHeadIndex> m_head;
    QString m_summary; ///< text below the title: the view's summary, or a head's finding
    QImage m_picture;
    QString m_reason;
};

} // namespace kvscope
