// Many runs one after another: the loop under sweeps, curves, maps and grids. The runner's caches make the inner steps
// cheap: a new budget only selects, a new seed only draws, a new layer reads.
#include "core/run/run_grid.h"

#include "core/base/spare_memory.h"
#include "core/base/thread_wait.h"
#include "core/run/layer_work.h"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <optional>

namespace kvscope {

namespace {

using Points = std::span<const GridPoint>;

bool sameLayer(const GridPoint& a, const GridPoint& b) {
    return a.run.capture == b.run.capture && a.run.layer == b.run.layer;
}

/// The points at the front that read the same layer.
Points firstLayer(Points points) {
    const auto other =
        std::ranges::find_if(points, [&](const GridPoint& point) { return !sameLayer(point, points.front()); });
    return points.first(static_cast<std::size_t>(other - points.begin()));
}

/// What the points of one layer are going to read.
std::vector<LayerRead> readsOfAll(Points points) {
    std::vector<LayerRead> all;
    for (const GridPoint& point : points) {
        if (point.refused) continue;
        for (const LayerRead& read : readsOf(point.run))
            if (std::ranges::find(all, read) == all.end()) all.push_back(read);
    }
    std::ranges::stable_sort(all, {}, &LayerRead::role); // keys before RoPE come last: derived from the keys
    return all;
}

/// Two layers with their intermediate results must fit into the runner's cache, or they would evict each other. The
/// next layer may take an eighth of the machine's memory, and at least 1.5 GiB, enough for a usual layer.
double mostBytesAhead() {
    return std::max(1.5 * 0x1p30,
                    static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 8);
}

/// The first run, with the budgets of the points that differ from it in nothing else.
RunRequest withLaterBudgets(Points points) {
    constexpr std::size_t kMost = 32;
    RunRequest run = points.front().run;
    if (!run.measure || run.recorded) return run;
    for (const GridPoint& point : points.subspan(1)) {
        const RunRequest& other = point.run;
        PolicySpec policy = other.policy;
        policy.budget = run.policy.budget;
        const bool isBudget = !point.refused && other.measure && !other.recorded && policy == run.policy &&
                              other.cut.text == run.cut.text && other.seed == run.seed && other.random == run.random &&
                              other.budget.unit != Budget::Unit::Quality;
        if (isBudget && run.later.size() < kMost) run.later.push_back(other.budget);
    }
    return run;
}

double bytesToRead(const CaptureInfo& info, const std::vector<LayerRead>& reads) {
    double floats = 0;
    for (const LayerRead& read : reads)
        floats += static_cast<double>(read.end - read.begin) *
                  (read.role == TensorRole::Queries ? info.numQueryHeads : info.numKvHeads) *
                  (read.role == TensorRole::Values ? info.valueDim : info.headDim);
    return floats * sizeof(float);
}

/// Reads the next layer while the current one is computed; the runner's cache passes it on. An error here is ignored:
/// it occurs again when the layer is read for use.
class ReadAhead {
public:
    ReadAhead(const LayerRunner& runner, const Checkpoint& checkpoint)
        : m_runner(runner), m_checkpoint(checkpoint.silent()) {}

    ~ReadAhead() { finish(); }
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    void start(Points layer) {
        finish();
        if (layer.front().run.capture)
            m_reading = std::async(std::launch::async, [this, layer] {
                try {
                    read(layer);
                } catch (const Error&) {
                } catch (const Cancelled&) {
                }
            });
    }

private:
    void finish() const {
        if (!m_reading.valid()) return;
        const ThreadWait wait(ThreadWait::After::AtOnce); // the read may wait for the worker of a live model
        m_reading.wait();
    }
    void read(Points layer) const {
        const RunRequest& run = layer.front().run;
        const std::vector<LayerRead> reads = readsOfAll(layer);
        if (bytesToRead(run.capture->info(), reads) > mostBytesAhead()) return;
        readLayer(m_runner, run.capture, run.layer, reads, m_checkpoint);
    }

    const LayerRunner& m_runner;
    Checkpoint m_checkpoint;
    std::future<void> m_reading; ///< finished before the next one starts
};

} // namespace

void runGrid(const LayerRunner& runner, std::span<const GridPoint> points, const Checkpoint& checkpoint,
             const GridSink& sink, LayersLeft left) {
    std::optional<SpareMemory> spare;
    if (left == LayersLeft::Forget) spare.emplace();
    ReadAhead ahead(runner, checkpoint);
    int brokenGroup = -1;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const GridPoint& point = points[i];
        const Checkpoint part = checkpoint.step(i, points.size());
        part.at(0, 1);
        const bool isFirst = i == 0 || !sameLayer(point, points[i - 1]);
        const Points ofLayer = isFirst ? firstLayer(points.subspan(i)) : Points();
        if (isFirst) {
            if (i > 0 && spare && points[i - 1].run.capture)
                forgetLayer(runner, points[i - 1].run.capture, points[i - 1].run.layer);
            if (const Points next = points.subspan(i + ofLayer.size()); !next.empty()) ahead.start(firstLayer(next));
        }
        if (point.group >= 0 && point.group == brokenGroup) continue;
        try {
            if (point.refused) throw Error(*point.refused);
            sink.finished(i, runner.run(isFirst ? withLaterBudgets(ofLayer) : point.run, part.part(0, 0.9)),
                          part.part(0.9, 1));
        } catch (const Error& error) {
            if (!sink.failed) throw;
            sink.failed(i, error);
            brokenGroup = point.group;
        }
    }
    checkpoint.at(1, 1);
}

} // namespace kvscope
