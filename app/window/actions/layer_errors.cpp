// A layer's numbers are read when the layer is shown, so an error in them is found only then.
#include "app/window/actions/layer_errors.h"

#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "views/common/view_facts.h"

#include <cstdlib>
#include <utility>

namespace kvscope {

constexpr const char* kNotice = "layer";

LayerErrors::LayerErrors(Workbench& workbench, NoticeStrip& notices, QObject* parent)
    : QObject(parent), m_workbench(workbench), m_notices(notices) {
    connect(&m_workbench, &Workbench::captureChanged, this, &LayerErrors::forget);
    connect(&m_workbench, &Workbench::panesChanged, this, &LayerErrors::follow);
    connect(&m_workbench, &Workbench::sessionChanged, this, &LayerErrors::leaveSkipped);
}

void LayerErrors::forget() {
    m_broken.clear();
    m_skipped.clear();
    m_layer = m_workbench.session().layer;
    m_said.clear();
    m_notices.dismiss(kNotice);
    follow();
}

void LayerErrors::follow() {
    const ViewInput input = m_workbench.viewInput();
    if (!input.capture) return;
    if (isLayerBroken(input)) {
        const std::string& error = input.panes.front().error;
        // A pane that has not yet begun the new layer still has the error of the previous one.
        if (error != m_said) m_broken.insert(input.layer.value);
        return say(error);
    }
    if (m_said.empty()) return;
    m_said.clear();
    m_notices.dismiss(kNotice);
}

void LayerErrors::say(const std::string& error) {
    if (std::exchange(m_said, error) == error) return;
    std::vector<NoticeStrip::Action> actions;
    if (const auto sound = soundLayer(0)) {
        actions.push_back({tr("Go to layer %1").arg(sound->value), [this, to = *sound] { goTo(to); }});
        actions.push_back({tr("Skip layer %1").arg(m_workbench.session().layer.value), [this, to = *sound] {
                               m_skipped.insert(m_workbench.session().layer.value);
                               goTo(to);
                           }});
    }
    m_notices.show(kNotice, NoticeStrip::Tone::Error, fromUtf8(withFullStop(asSentence(error))), std::move(actions));
}

void LayerErrors::leaveSkipped() {
    const LayerIndex before = std::exchange(m_layer, m_workbench.session().layer);
    if (m_layer == before || !m_workbench.capture() || !m_skipped.contains(m_layer.value)) return;
    // After an undo there are steps to redo. Skipping this layer would be a new step: it would end redo, and undoing it
    // would lead here again.
    if (m_workbench.history().canRedo()) return;
    const std::int32_t skipped = m_layer.value;
    std::optional<LayerIndex> next = soundLayer(skipped > before.value ? 1 : -1);
    if (!next) next = before;
    goTo(*next);
    m_notices.show(kNotice, NoticeStrip::Tone::Notice,
                   tr("Layer %1 is skipped: its numbers cannot be read.").arg(skipped), tr("Show it"), [this, skipped] {
                       m_skipped.erase(skipped);
                       goTo(LayerIndex(skipped));
                   });
}

std::optional<LayerIndex> LayerErrors::soundLayer(int direction) const {
    const std::int32_t here = m_workbench.session().layer.value;
    std::optional<LayerIndex> nearest;
    for (const LayerInfo& info : m_workbench.capture()->info().layers) {
        const std::int32_t layer = info.layer.value;
        if (m_broken.contains(layer) || m_skipped.contains(layer) || (layer - here) * direction < 0) continue;
        if (!nearest || std::abs(layer - here) < std::abs(nearest->value - here)) nearest = info.layer;
    }
    return nearest;
}

void LayerErrors::goTo(LayerIndex layer) {
    m_workbench.change([layer](Session& s) { s.layer = layer; }, tr("Layer"));
}

} // namespace kvscope
