#pragma once

#include "app/session/workbench.h"

#include <QWidget>

class QGridLayout;
class QLabel;

namespace kvscope {

class ElidedLabel;

/// The capture browser: facts of the capture and the head picker.
class CapturePanel : public QWidget {
    Q_OBJECT

public:
    explicit CapturePanel(Workbench& workbench, QWidget* parent = nullptr);

private:
    void refreshFacts();
    QLabel* addFact(QGridLayout* grid, const QString& name);

    Workbench& m_workbench;
    ElidedLabel *m_name, *m_model;
    QLabel *m_tokens, *m_layers, *m_heads, *m_dim, *m_stored, *m_size;
};

} // namespace kvscope
