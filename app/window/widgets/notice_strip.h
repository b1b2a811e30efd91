#pragma once

#include <QString>
#include <QWidget>

#include <functional>

class QVBoxLayout;

namespace kvscope {

/// Errors and notices as rows below the bars, never as a modal box. Each gives a message, may offer one action, and can
/// be closed.
class NoticeStrip : public QWidget {
    Q_OBJECT

public:
    enum class Tone { Notice, Error };

    explicit NoticeStrip(QWidget* parent = nullptr);

    /// Replaces a row of the same `id`, so that repeated failures do not pile up.
    void show(const QString& id, Tone tone, const QString& message, const QString& actionText = {},
              std::function<void()> action = {});
    void dismiss(const QString& id);
    void dismissAll();
    QStringList messages() const; ///< from the top, for tests and screen readers

private:
    QVBoxLayout* m_rows;
};

} // namespace kvscope
