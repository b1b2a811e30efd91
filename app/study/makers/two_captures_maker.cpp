// Runs every pane on both captures, in the shown layer or in all, and takes one measure of both.
#include "app/study/makers/further_captures.h"
#include "app/study/makers/measured_heads.h"
#include "app/study/makers/view_data_maker.h"
#include "core/base/error.h"
#include "core/run/head_means.h"
#include "views/common/measure_options.h"
#include "views/two_captures/two_captures_data.h"

#include <memory>
#include <utility>

namespace kvscope {

namespace {

using Pane = TwoCapturesData::Pane;

class TwoCapturesMaker : ViewDataWork {
public:
    explicit TwoCapturesMaker(const ViewDataWork& work)
        : ViewDataWork(work), m_measure(measureById(request.options.choice("measure"))) {}

    ViewDataMaker::Value run() {
        if (!request.compared)
            throw Error({"no second capture is open", "",
                         "Compare with another prompt of the same model (on the command line, --compare-with FILE)"});
        m_cut = Cut::resolve(request.cut.text, *request.compared);
        m_data.first = {request.capture->info().fileName, request.cut.token};
        m_data.second = {request.compared->info().fileName, m_cut.token};
        m_data.what = m_measure.label;
        m_data.unit = m_measure.unit;
        m_data.perQueryHead = m_measure.shape != MeasureShape::PerKvHead;
        m_data.higherIsBetter = higherWins(m_measure);
        m_data.ofPane = m_measure.subject == MeasureSubject::KeptTokens;
        m_data.takesNoSide = m_measure.better == MeasureDirection::Neither;
        for (std::size_t pane = 0; pane < request.panes.size(); ++pane) addPane(pane);
        return std::make_shared<const TwoCapturesData>(std::move(m_data));
    }

private:
    void addPane(std::size_t index) {
        const PaneRequest& asked = request.panes[index];
        const std::size_t count = request.panes.size();
        Pane pane;
        pane.letter = static_cast<char>('A' + index);
        try {
            const std::pair runs{resolvePane(asked), onCapture(asked, request.compared)};
            static_cast<PaneName&>(pane) = policyIdentityOf(runs.first, index);
            const std::vector<LayerIndex> layers = layersToRun();
            for (std::size_t i = 0; i < layers.size(); ++i)
                addLayer(pane, runs, layers[i], checkpoint.step(index * layers.size() + i, count * layers.size()));
        } catch (const Error& error) { // for example a list of only one capture: the other panes go on
            if (pane.policyName.empty()) pane.policyName = asked.recordedPath;
            pane.refusal = error.parts().sentence;
        }
        m_data.panes.push_back(std::move(pane));
        if (index + 1 < count) deliver(m_data);
    }

    std::vector<LayerIndex> layersToRun() const {
        if (request.options.choice("heads") == "layer") return {request.layer};
        std::vector<LayerIndex> layers = {request.layer}; // comes first
        for (const LayerInfo& layer : request.capture->info().layers)
            if (layer.layer != request.layer) layers.push_back(layer.layer);
        return layers;
    }

    /// Errors say which capture refuses.
    std::shared_ptr<const RunResult> runOn(const TwoCapturesData::Side& side, const RunRequest& run,
                                           const Checkpoint& part) const {
        try {
            return runner.run(run, part);
        } catch (const Error& error) {
            Error::Parts parts = error.parts();
            parts.sentence = side.name + ": " + parts.sentence;
            throw Error(std::move(parts));
        }
    }

    void addLayer(Pane& pane, std::pair<RunRequest, RunRequest> runs, LayerIndex layer, const Checkpoint& part) {
        runs.first.layer = runs.second.layer = layer;
        const auto first = runOn(m_data.first, runs.first, part.part(0, 0.4)),
                   second = runOn(m_data.second, runs.second, part.part(0.4, 0.8));
        const std::vector<double> a = headValues(runner, *first, m_measure, part.part(0.8, 0.9)),
                                  b = headValues(runner, *second, m_measure, part.part(0.9, 1));
        for (std::size_t head = 0; head < a.size() && head < b.size(); ++head)
            pane.heads.push_back({layer.value, static_cast<std::int32_t>(head), a[head], b[head]});
        pane.nothingFirst |= balancedNothing(*first);
        pane.nothingSecond |= balancedNothing(*second);
        if (layer != request.layer) return;
        pane.tauFirst = first->calibrated;
        pane.tauSecond = second->calibrated;
        const KvHeadIndex shown = request.kvHead;
        pane.keptFirst = meanAttendedTokens(*first, shown);
        pane.keptSecond = meanAttendedTokens(*second, shown);
        const LayerInfo& info = request.capture->info().layerInfo(layer);
        const auto ofHead = [&](const std::vector<double>& values) {
            return m_data.perQueryHead ? meanOverHeads(values, info, shown) : values.at(shown.value);
        };
        pane.first = ofHead(a);
        pane.second = ofHead(b);
    }

    const MeasureCard& m_measure;
    Cut m_cut;
    TwoCapturesData m_data;
};

} // namespace

ViewDataMaker twoCapturesMaker() {
    using enum DataScope;
    return {kTwoCaptures, {Layer, KvHead, Cut, Panes, Compared}, runMaker<TwoCapturesMaker>};
}

} // namespace kvscope
