#pragma once

#include <QDialog>

namespace kvscope {

/// A page of Markdown: what a view shows and how to read it.
class HelpDialog : public QDialog {
    Q_OBJECT

public:
    HelpDialog(const QString& title, const QString& markdown, QWidget* parent = nullptr);
};

} // namespace kvscope
