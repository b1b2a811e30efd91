#pragma once

#include "app/window/widgets/small_widgets.h"
#include "app/workbench/workbench.h"

namespace kvscope {

/// Names a capture above its pictures while two are compared: "1  needle-1k.h5 · 995 tokens seen". A view's finding on
/// that capture, if set, replaces the number of tokens.
class CaptureCaption : public ElidedLabel {
    Q_OBJECT

public:
    CaptureCaption(Workbench& workbench, int number, QWidget* parent);
    void setFinding(const QString& finding);

private:
    void refresh();

    Workbench& m_workbench;
    int m_number;
    QString m_finding;
};

/// The title of a view's picture without a caption: the view's name, and its capture's file while two are compared.
QString pictureName(const Workbench& shown, const View& view);

} // namespace kvscope
