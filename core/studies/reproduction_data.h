#pragma once

#include "core/metrics/statistics.h"
#include "core/studies/sweep.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// Memory: bytes stored, as exact tokens of a KV head.
enum class ReproductionAxis { Retention, Layer, Tokens, Parameter, Memory };

enum class ReproductionMethod {
    Sweep,      ///< runs and their measures
    PowerLaw,   ///< a sweep; to each series measure = factor x^exponent is fitted
    KeptShares, ///< no run: how much of prompts of these lengths a fixed cache holds (KeyDiff Table 8)
    Lengths     ///< no run: how many prompts are how long (KeyDiff Table 7, Fig. 18)
};

/// A table or figure of the papers as a sweep with its own measures, or a word on where else it is.
struct Reproduction {
    std::string id, item;  ///< "keydiff-fig12", "KeyDiff Fig. 12: ..."
    std::string paperData; ///< what the paper ran on, and with which parameters
    std::string elsewhere; ///< "needs the model ..." or the command that draws it; empty: it runs here
    std::vector<std::string> policies = {}, budgets = {}; ///< policies as specs; one that is not there is left out
    /// id empty: none. A series for each value unless the axis is the parameter. Along memory the values are the points
    /// of the policies that have the parameter, and the budgets those of the others.
    VariedParameter varied = {};
    /// Ids of measures, or of own ones (reproductionMeasureLabel).
    std::vector<std::string> measures = {};
    ReproductionAxis axis = ReproductionAxis::Retention;
    std::string cut = "default";
    int seeds = 1;
    bool overHeads = false;     ///< a sample is a head, as in BalanceKV Table 3; else the mean over the heads of a run
    std::string reference = {}; ///< value of the varied parameter whose lists "overlap" compares with
    ReproductionMethod method = ReproductionMethod::Sweep;
    /// First tokens that every policy of the row keeps exactly: budgets and retentions are shares of the others before
    /// the cut.
    std::int64_t exactFirst = 0;
    std::vector<double> powers = {}; ///< that theory expects of the fits, drawn beside them
    std::string caveat = {};         ///< what a reader of the numbers must know besides
};

struct ReproducedPoint {
    double x = 0;
    std::string xText; ///< the value of a parameter that is no number, else empty
    Summary summary;   ///< over captures when there are several, else over layers, seeds or heads
};

struct ReproducedSeries {
    std::string label, policyId, measure; ///< label: policy, then the parameter's value and the measure where they vary
    std::vector<ReproducedPoint> points;  ///< ascending in x, parameters in the order of their values
    std::optional<PowerLaw> law = {};
};

struct ReproductionResult {
    std::vector<ReproducedSeries> series;
    std::string xTitle, yTitle, samples; ///< what the interval is over
    std::vector<std::string> notes;      ///< parameters used, and how the data differ from the paper's
};

} // namespace kvscope
