#pragma once

#include "app/workbench/workbench.h"
#include "views/head_grid/head_grid_data.h"

#include <QObject>

#include <memory>
#include <string>

namespace kvscope {

/// What the layer x head grid would show of another pane: the next one by letter, after the last the first, that has
/// the quantity. Computed in a slot of its own, after the grid itself and only while somebody wants it.
class OtherPaneHeads : public QObject {
    Q_OBJECT

public:
    OtherPaneHeads(Workbench& workbench, QObject* parent);
    ~OtherPaneHeads() override;

    /// Computes what fits `shown`, a finished grid of the active pane; null: nothing is wanted.
    void want(const HeadGridData* shown);
    const HeadGridData* data() const { return m_data.get(); } ///< as far as it has come; null without another pane
    int pane() const { return m_pane; }                       ///< the one that `data` is of

signals:
    void changed();

private:
    void forget();
    void submit(const ViewDataRequest& request);

    Workbench& m_workbench;
    std::string m_slot; ///< of this object alone: a rebuilt window has an old and a new one for a moment
    std::string m_key;  ///< of what is computed or known
    std::shared_ptr<const HeadGridData> m_data;
    int m_pane = 0;
};

} // namespace kvscope
