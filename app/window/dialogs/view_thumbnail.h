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
    bool matches(const QString& words) const; ///< every word is in its name, summary, papers or question
    /// The view's picture for this input, or why there is none.
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
    QImage m_picture;
    QString m_reason;
};

} // namespace kvscope
