// `kvscope calibrate`: from measured qualities (or a proxy) to the retention that each context needs. Its output is a
// curve for budgets: --policy snapkv:kvpress@tau=0.95:FILE.json.
#include "app/command_line/command.h"
#include "app/study/regenerating_command.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "core/run/calibrated_budget.h"
#include "views/scene/axes.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace kvscope {

namespace {

class CalibrateCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("calibrate", "fit the retention that keeps a quality (Compactor 3.5)");
        m_command->add_option("captures", m_captures, "capture files; their measured rows (/calibration) are fitted");
        m_options.addTo(*m_command, false);
        m_command->add_option(
            "--triples", m_triples,
            "FILE.csv instead of the captures' rows: retention, quality (or nll_full, nll_compressed), "
            "nll_context, context, policy, variant");
        m_command->add_flag("--proxy", m_proxy, "attention-output fidelity of the captures instead of measured losses");
        m_command->add_option("--k", m_k, "a curvature instead of a fit; below 0: the context can be compressed");
        m_command->add_option("--tau", m_tau, "quality to keep, NLL(full) / NLL(compressed)")->capture_default_str();
        m_command
            ->add_option("--weight", m_weight,
                         "w: how much more a curve above a point weighs than one below it (1 to 20)")
            ->capture_default_str();
        m_command->add_option("--out", m_out, "FILE.json or FILE.csv")->required();
    }

    void run(const CommandContext& context) override {
        if (m_options.policies.size() != 1)
            throw Error({"a calibration is of one policy", "--policy", "Name one; run calibrate once per policy"});
        if ((m_triples.empty() ? 0 : 1) + (m_proxy ? 1 : 0) + (std::isnan(m_k) ? 0 : 1) > 1)
            throw Error({"--triples, --proxy and --k contradict each other", "",
                         "Give one of them, or none for the captures' rows"});
        if (!m_captures.empty() && (!m_triples.empty() || !std::isnan(m_k)))
            throw Error({fmt::format("captures are not read beside {}", m_triples.empty() ? "--k" : "--triples"),
                         m_captures.front(),
                         fmt::format("Omit the captures, or omit {}", m_triples.empty() ? "--k" : "--triples")});
        refuseRepeated(m_captures);
        const PolicySpec policy = PolicySpec::parse(m_options.policies.front());
        if (policy.budget)
            throw Error({"a calibration finds the budget, and " + m_options.policies.front() + " has one", "--policy",
                         "Leave @BUDGET out"});
        Calibration calibration = std::isnan(m_k) ? calibrate(policy, dataFor(policy, context), m_tau, m_weight)
                                                  : calibrationOfK(policy, m_k, m_tau);
        calibration.command = context.commandLine();
        if (calibration.given && m_out.ends_with(".csv"))
            throw Error({"a k without triples has no table", "--out", "Write FILE.json", m_out});
        writeCalibration(m_out, calibration);
        context.clearProgress();
        print(calibration);
    }

private:
    CalibrationData dataFor(const PolicySpec& policy, const CommandContext& context) const {
        if (!m_triples.empty()) {
            CalibrationData data = readTriplesCsv(m_triples, policy.policy, policy.variant);
            noteParametersOfTable(data, policy);
            return data;
        }
        if (m_captures.empty())
            throw Error({"there is nothing to calibrate from", "", "Name captures, or give --triples or --k"});
        std::vector<std::shared_ptr<const CaptureReader>> captures;
        for (const std::string& path : m_captures) captures.push_back(openCapture(path));
        if (m_proxy)
            return proxyTriples(*m_options.makeRunner(), {captures, policy, m_options.cut, m_options.seed, {}},
                                context.checkpoint("calibrate"));
        CalibrationData all;
        const std::vector<std::string> names = contextNamesOf(captures);
        for (std::size_t i = 0; i < captures.size(); ++i) {
            const TokenIndex cut = Cut::resolve(m_options.cut, *captures[i]).token;
            CalibrationData one = measuredTriples(*captures[i], policy, cut, names[i]);
            all.cuts.merge(one.cuts);
            addMeasuring(all, one.simulated, one.arithmetic);
            all.origin += (all.origin.empty() ? "" : ", ") + one.origin;
            std::move(one.triples.begin(), one.triples.end(), std::back_inserter(all.triples));
            std::move(one.notes.begin(), one.notes.end(), std::back_inserter(all.notes));
        }
        return all;
    }

    void print(const Calibration& c) const {
        const char* kind = c.given ? "given by hand" : c.data.proxy ? "PROXY, no model's losses" : "measured";
        fmt::print("{} ({})\n", c.spec, kind);
        if (!c.given)
            fmt::print("{}, {}; {}; w = {}\n", formatCounted(c.fit.triples, "triple"),
                       formatCounted(c.fit.contexts, "context"), c.data.origin, c.fit.weight);
        if (c.fit.slopeKnown) fmt::print("k = {:.4g} NLL(c) {:+.4g}\n", c.fit.alpha, c.fit.beta);
        for (const CalibratedContext& context : c.contexts) {
            printPoints(c, context.name);
            fmt::print("{}: k = {:.4g}, retention {:.4f} for tau = {}", context.name, context.k, context.retention,
                       c.tau);
            if (!std::isnan(context.band.low))
                fmt::print(" (bootstrap 5-95 %: {:.4f} to {:.4f})", context.band.low, context.band.high);
            fmt::print("\n");
        }
        if (!c.given) printMisfit(c);
        if (c.fit.atEdge)
            fmt::print("a k lies at the end of the searched range, {} to {}\n", -kMostCurvature, kMostCurvature);
        for (const std::string& note : c.data.notes) fmt::print("{}\n", note);
    }

    /// Prints the retention that the points themselves need, without a fitted curve.
    static void printPoints(const Calibration& c, const std::string& context) {
        std::vector<CalibrationTriple> triples;
        std::ranges::copy_if(c.data.triples, std::back_inserter(triples),
                             [&](const CalibrationTriple& triple) { return triple.context == context; });
        if (triples.empty()) return;
        const double retention = retentionOfPoints(triples, c.tau);
        if (std::isnan(retention))
            fmt::print("{}: its points do not keep {}\n", context, c.tau);
        else
            fmt::print("{}: its points keep {} from retention {:.4f} on\n", context, c.tau, retention);
    }

    /// Prints how far the points lie from the curves.
    void printMisfit(const Calibration& c) const {
        const CalibrationMisfit misfit = misfitOf(c);
        fmt::print("residual {:.3f}\n", misfit.rms);
        if (misfit.isPoor())
            fmt::print("POOR FIT: the curve misses its points, so the retention says little; draw them with\n"
                       "kvscope plot calibration {} --policy {} --view-set source={} --out calibration.svg\n",
                       m_captures.empty() ? "CAPTURE" : shellWord(m_captures.front()), shellWord(c.spec + "@0.25"),
                       m_triples.empty() ? m_proxy ? "proxy" : "measured"
                                         : "table --view-set " + shellWord("table=" + m_triples));
    }

    RunOptions m_options;
    std::vector<std::string> m_captures;
    std::string m_triples, m_out;
    bool m_proxy = false;
    double m_k = NAN, m_tau = 0.95, m_weight = kCalibrationWeight;
};

} // namespace

std::unique_ptr<Command> makeCalibrateCommand() { return std::make_unique<CalibrateCommand>(); }

} // namespace kvscope
