#pragma once

#include "app/workbench/workbench.h"

#include <QWidget>

class QHBoxLayout;
class QLabel;
class QPushButton;
class QToolButton;

namespace kvscope {

class ElidedLabel;
class LetterBadge;
class LiveNumber;

/// The header of a pane: policy colour, letter, name, variant; below: error, mass, kept, hits of the selection. The
/// numbers are those of the drawn selection; they are dimmed while the selection or its measurement is older than what
/// the session asks for.
class PaneHeader : public QWidget {
    Q_OBJECT

public:
    PaneHeader(Workbench& workbench, int pane, QWidget* parent = nullptr);

signals:
    void exportWanted();
    void maximiseWanted();
    void pressed();
    void menuWanted(const QPoint& globalPosition);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent*) override { emit maximiseWanted(); }
    void resizeEvent(QResizeEvent* event) override;

private:
    void build();
    void refresh();
    void fillVariants();
    void refreshMetrics();
    void showRealised(const RunResult& result, const HeadSelection& head);
    void fit();
    void fitTitle();
    void fitMetrics(); ///< a narrow pane shows fewer numbers, never a part of one

    Workbench& m_workbench;
    int m_pane;
    std::string m_policyId;
    LetterBadge* m_badge = nullptr;
    ElidedLabel* m_name = nullptr;
    QPushButton *m_variant = nullptr, *m_realised = nullptr;
    LiveNumber *m_error = nullptr, *m_mass = nullptr, *m_kept = nullptr, *m_hits = nullptr;
    QToolButton *m_export = nullptr, *m_maximise = nullptr;
    QHBoxLayout* m_title = nullptr;
    QString m_variantText, m_realisedText;
    QString m_realisedShort;   ///< what the chip says where the name needs the room
    QStringList m_titleFitted; ///< the texts for which the buttons of the title were chosen
    QLabel *m_errorName = nullptr, *m_massName = nullptr, *m_keptName = nullptr;
    ElidedLabel* m_hitsName = nullptr;
    bool m_hasHits = false;
};

} // namespace kvscope
