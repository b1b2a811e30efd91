#pragma once

#include "app/workbench/workbench.h"
#include "views/head_grid/head_grid_data.h"

#include <QObject>

#include <memory>
#include <string>

namespace kvscope {

/// The data of the layer x head grid for another pane: the next one by letter (cyclic) that has the quantity. Computed
/// in its own slot, after the grid and only while requested.
class OtherPaneHeads : public QObject {
    Q_OBJECT

public:
    OtherPaneHeads(Workbench& workbench, QObject* parent);
    ~OtherPaneHeads() override;

    /// Computes the data that correspond to `shown`, a finished grid of the active pane; null: nothing.
    void want(const HeadGridData* shown);
    const HeadGridData* data() const { return m_data.get(); } ///< as far as computed; null without another pane
    int pane() const { return m_pane; }                       ///< the pane of `data`

signals:
    void changed();

private:
    void forget();
    void submit(const ViewDataRequest& request);

    Workbench& m_workbench;
    std::string m_slot; ///< unique per object: while the chrome is rebuilt two of them exist
    std::string m_key;  ///< key of the data computed or being computed
    std::shared_ptr<const HeadGridData> m_data;
    int m_pane = 0;
};

} // namespace kvscope
