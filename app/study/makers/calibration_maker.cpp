// What the calibration view shows: for every pane the triples of its policy, measured where the capture or a table has
// them or a live context's model can be asked, else made from attention outputs, with the fitted curve and its
// resamples.
#include "app/study/makers/view_data_maker.h"

#include "app/live/live_client.h"
#include "app/study/live_calibration.h"
#include "core/base/error.h"
#include "core/capture/calibration_rows.h"
#include "core/capture/named_dataset.h"
#include "core/policies/policy.h"
#include "core/run/calibrated_budget.h"
#include "views/calibration/calibration_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace kvscope {

namespace {

constexpr int kResamples = 200;

class CalibrationMaker : ViewDataWork {
public:
    explicit CalibrationMaker(const ViewDataWork& work)
        : ViewDataWork(work), m_source(request.options.choice("source")),
          m_live(std::dynamic_pointer_cast<const live::LiveCapture>(request.capture)) {}

    ViewDataMaker::Value run() const {
        CalibrationViewData data;
        data.weight = request.options.real("weight");
        for (std::size_t i = 0; i < request.panes.size(); ++i) {
            addPane(i, data);
            if (i + 1 < request.panes.size()) deliver(data);
        }
        return std::make_shared<const CalibrationViewData>(data);
    }

private:
    void addPane(std::size_t index, CalibrationViewData& data) const {
        const PaneRequest& pane = request.panes[index];
        try {
            if (!pane.recordedPath.empty())
                throw Error(
                    {"a recorded list has one retention: there is nothing to calibrate", "", "Choose a policy"});
            const PolicyCard& card = policyById(pane.run.policy.policy).card();
            if (!card.usesBudget)
                throw Error({card.name + " takes no budget: there is nothing to calibrate", "",
                             "Choose a policy with a budget"});
            addSeries(index, data);
        } catch (const live::WorkerLost&) {
            throw; // it concerns all panes
        } catch (const Error& error) {
            data.failures.push_back({static_cast<char>('A' + index), error.what()});
        }
    }

    CalibrationData proxyOf(std::size_t index) const {
        const RunRequest& run = request.panes[index].run;
        return proxyTriples(runner, {{request.capture}, run.policy, request.cut.text, request.seed, run.random},
                            checkpoint.step(index, request.panes.size()));
    }

    bool isMeasured(const PolicySpec& policy) const {
        if (m_live) return isCalibratable(m_live, request.cut);
        const auto all = readCalibration(request.capture->info().path);
        return std::ranges::any_of(all, [&](const CalibrationRows& rows) {
            return rows.policy == policy.policy && rows.variant == policy.variant;
        });
    }

    CalibrationData measuredOf(std::size_t index) const {
        const PaneRequest& pane = request.panes[index];
        if (m_live) return *liveTriples(runner, m_live, pane, checkpoint.step(index, request.panes.size()));
        return measuredTriples(*request.capture, pane.run.policy, request.cut.token);
    }

    CalibrationData dataOf(std::size_t index) const {
        const PolicySpec& policy = request.panes[index].run.policy;
        if (m_source == "measured" || (m_source == "best" && isMeasured(policy))) return measuredOf(index);
        if (m_source == "proxy" || m_source == "best") return proxyOf(index);
        if (request.options.text("table").empty())
            throw Error({"no table of triples is named", "option table", "Set table to a FILE.csv"});
        CalibrationData read = readTriplesCsv(request.options.text("table"), policy.policy, policy.variant);
        noteParametersOfTable(read, policy);
        noteOtherCut(read, *request.capture, request.cut.token);
        return read;
    }

    void addSeries(std::size_t index, CalibrationViewData& data) const {
        const PolicySpec& policy = request.panes[index].run.policy;
        CalibrationSeries series{policyIdentityOf(policy, index), static_cast<int>(index)};
        series.variant = policy.variant; // as typed: a curve is looked up by it
        if (m_source == "given") {
            series.given = series.own = true;
            series.context = request.capture->info().fileName;
            series.origin = "k given by hand";
            data.series.push_back(std::move(series));
            return;
        }
        const Calibration fitted = calibrate(request.panes[index].run.policy, dataOf(index), 0.5, data.weight, 0);
        const auto resamples = bootstrapCalibration(fitted.data.triples, fitted.fit, kResamples, request.seed);
        series.proxy = fitted.data.proxy;
        series.live = m_live && m_source != "table" && !series.proxy;
        series.origin = fitted.data.origin;
        series.atEdge = fitted.fit.atEdge;
        series.notes = fitted.data.notes;
        if (series.atEdge)
            series.notes.push_back(
                fmt::format("k lies at the end of the searched range, {} to {}", -kMostCurvature, kMostCurvature));
        series.curve = m_source == "table" ? request.options.text("table") : series.proxy ? "proxy" : "";
        const auto begin = data.series.size();
        for (const CalibratedContext& context : fitted.contexts) {
            series.context = context.name;
            const bool isOpen = isContextOf(context.name, request.capture->info());
            series.own = isOpen || fitted.contexts.size() == 1;
            series.foreign = series.own && !isOpen;
            const auto cut = fitted.data.cuts.find(context.name);
            series.measuredCut = cut == fitted.data.cuts.end() ? std::nullopt : std::optional(cut->second);
            series.k = context.k;
            series.resampledK.clear();
            for (const CalibrationFit& fit : resamples) series.resampledK.push_back(fit.k(context.nll));
            series.triples.clear();
            std::ranges::copy_if(fitted.data.triples, std::back_inserter(series.triples),
                                 [&](const CalibrationTriple& triple) { return triple.context == context.name; });
            data.series.push_back(series);
        }
        addOpenContext(index, series, fitted, resamples, data);
        std::stable_partition(data.series.begin() + static_cast<std::ptrdiff_t>(begin), data.series.end(),
                              [](const CalibrationSeries& s) { return s.own; });
    }

    /// For a table about other contexts: adds the open capture, with k of the fitted line at the capture's own NLL.
    void addOpenContext(std::size_t index, CalibrationSeries series, const Calibration& fitted,
                        const std::vector<CalibrationFit>& resamples, CalibrationViewData& data) const {
        const double nll = contextNllOf(*request.capture, request.cut.token);
        const bool there = std::ranges::any_of(
            data.series, [&](const CalibrationSeries& s) { return s.own && s.pane == static_cast<int>(index); });
        if (there || !fitted.fit.slopeKnown || std::isnan(nll)) return;
        series.own = true;
        series.foreign = false;
        series.measuredCut.reset();
        series.context = request.capture->info().fileName;
        series.triples.clear();
        series.k = fitted.fit.k(nll);
        series.resampledK.clear();
        for (const CalibrationFit& fit : resamples) series.resampledK.push_back(fit.k(nll));
        data.series.push_back(std::move(series));
    }

    std::string m_source;
    std::shared_ptr<const live::LiveCapture> m_live; ///< null: the open capture is a file
};

/// The stamp of the file that holds the triples: a table may be edited while it is shown, and a capture may get rows.
std::string detail(const ViewDataRequest& request) {
    return pathStamp(request.options.choice("source") == "table" ? request.options.text("table")
                                                                 : request.capture->info().path);
}

} // namespace

ViewDataMaker calibrationMaker() {
    using enum DataScope;
    return {"calibration", {Cut, Policies, Seed}, runMaker<CalibrationMaker>, detail};
}

} // namespace kvscope
