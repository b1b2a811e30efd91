#pragma once

#include "app/workbench/workbench.h"

#include <QDialog>

class QLabel;
class QLineEdit;

namespace kvscope {

/// Go to a layer, KV head, query head, key and query, all 0-based; an empty field changes nothing. A key is selected;
/// key and query together zoom the attention map. Not modal; a wrong entry turns its field red with an explanation, and
/// nothing moves.
class GoToDialog : public QDialog {
    Q_OBJECT

public:
    GoToDialog(Workbench& workbench, QWidget* parent);

private:
    QLineEdit* field(const char* name, const QString& label, int row);
    bool apply();
    bool refuse(QLineEdit* field, const QString& why); ///< always false

    Workbench& m_workbench;
    QLineEdit *m_layer, *m_kvHead, *m_queryHead, *m_key, *m_query;
    QLabel* m_why;
};

} // namespace kvscope
