#pragma once

#include "core/metrics/averages.h"
#include "core/studies/sweep.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope {

/// Memory: bytes stored, as exact tokens of a KV head.
enum class ReproductionAxis { Retention, Layer, Tokens, Parameter, Memory };

enum class ReproductionMethod {
    Sweep,      ///< runs and their measures
    PowerLaw,   ///< a sweep; measure = factor x^exponent is fitted to each series
    KeptShares, ///< no run: how much of prompts of these lengths a fixed cache holds (KeyDiff Table 8)
    Lengths     ///< no run: how many prompts are how long (KeyDiff Table 7, Fig. 18)
};

/// A table or figure of the papers as a sweep with its own measures, or a note on where else it is made.
struct Reproduction {
    std::string id, item;  ///< "keydiff-fig12", "KeyDiff Fig. 12: ..."
    std::string paperData; ///< what the paper ran on, and with which parameters
    std::string elsewhere; ///< "needs the model ..." or the command that draws it; empty: it runs here
    std::vector<std::string> policies = {}, budgets = {}; ///< policies as specs; missing ones are left out
    /// id empty: none. A series for each value unless the axis is the parameter. Along memory the values are the points
    /// of the policies that have the parameter, and the budgets those of the others.
    VariedParameter varied = {};
    /// Ids of measures, or of those that only reproductions have (reproductionMeasureLabel).
    std::vector<std::string> measures = {};
    ReproductionAxis axis = ReproductionAxis::Retention;
    std::string cut = "default";
    int seeds = 1;
    bool overHeads = false; ///< heads are a level of their own; else a sample is the mean over the heads of a run
    /// What the spread of a point is over, where the paper says: "seeds", or "vectors" (every key, value or query by
    /// itself, pooled as in BalanceKV Table 3). Empty: the outermost of captures, layers, heads and seeds of which the
    /// point has several.
    std::string over = {};
    bool showDeviation = false; ///< bars are standard deviations and not 95 % intervals of the mean
    bool allQueries = false;    ///< refuses a capture that holds the queries of a window only
    std::string reference = {}; ///< value of the varied parameter whose lists "overlap" compares with
    ReproductionMethod method = ReproductionMethod::Sweep;
    /// First tokens that every policy of the row keeps exactly: budgets and retentions are shares of the others before
    /// the cut.
    std::int64_t exactFirst = 0;
    std::vector<double> powers = {}; ///< exponents that theory expects, drawn beside the fits
    std::string caveat = {};         ///< what a reader of the numbers must know besides
};

struct ReproducedPoint {
    double x = 0;
    std::string xText; ///< the value of a parameter that is no number, else empty
    Summary summary;
    std::string over = {};               ///< what the summary's spread is over: "layers"; empty: it has none
    std::vector<std::string> notes = {}; ///< of its runs; the first of those that differ only in numbers
};

struct ReproducedSeries {
    std::string label, policyId, measure; ///< label: policy, then the parameter's value and the measure where they vary
    std::vector<ReproducedPoint> points;  ///< ascending in x, parameters in the order of their values
    std::optional<PowerLaw> law = {};
    std::string title = {}; ///< `label` in names that people read, for figures; empty: the label itself
};

struct ReproductionResult {
    std::vector<ReproducedSeries> series;
    std::string xTitle, yTitle;
    std::vector<std::string> notes; ///< parameters used, notes of the runs, and how the data differ from the paper's
};

} // namespace kvscope
