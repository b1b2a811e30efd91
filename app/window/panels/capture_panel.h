#pragma once

#include "app/workbench/workbench.h"

#include <QWidget>

class QGridLayout;
class QLabel;

namespace kvscope {

class ChoiceBox;
class ElidedLabel;

/// The capture browser: facts of the capture and the head picker.
class CapturePanel : public QWidget {
    Q_OBJECT

public:
    explicit CapturePanel(Workbench& workbench, QWidget* parent = nullptr);

private:
    void refreshFacts();
    void refreshMeasure();
    QLabel* addFact(QGridLayout* grid, const QString& name);
    QWidget* makeMeasureBox();

    Workbench& m_workbench;
    ElidedLabel *m_name, *m_model;
    ChoiceBox* m_measure;
    QLabel *m_tokens, *m_layers, *m_heads, *m_dim, *m_stored, *m_size, *m_check;
};

} // namespace kvscope
