#pragma once

#include "app/workbench/workbench.h"

#include <QObject>

#include <optional>
#include <set>
#include <string>

namespace kvscope {

class NoticeStrip;

/// Says once, for all panes and views, that the file holds no usable numbers of the session's layer, and offers the
/// nearest layer that has some. A layer that is skipped is left again in the direction in which it was entered.
class LayerErrors : public QObject {
    Q_OBJECT

public:
    LayerErrors(Workbench& workbench, NoticeStrip& notices, QObject* parent);

private:
    void follow();
    void forget();
    void say(const std::string& error);
    void leaveSkipped();
    std::optional<LayerIndex> soundLayer(int direction) const; ///< 0: the nearest
    void goTo(LayerIndex layer);

    Workbench& m_workbench;
    NoticeStrip& m_notices;
    std::set<std::int32_t> m_broken, m_skipped;
    LayerIndex m_layer; ///< as of the last change of the session
    std::string m_said; ///< the error that the notice shows
};

} // namespace kvscope
