#pragma once

#include "core/metrics/theory.h"
#include "core/run/run.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// One statement of a theorem about one KV head, at the head's norms, beside the measured value.
struct TheoryRow {
    enum class Kind {
        AtLeast,   ///< `set` must be at least `demanded` for the theorem to hold
        Describes, ///< a number that the theorem uses
        Bound      ///< the theorem promises that every measurement is at most `demanded`
    };
    Kind kind = Kind::AtLeast;
    std::string theorem, quantity, formula;
    int kvHead = 0;
    double demanded = 0;                  ///< the requirement or the bound; infinity beyond the double range
    double set = NAN;                     ///< current value of the parameter, if any
    double measured = NAN;                ///< mean over queries where there are many
    double worst = NAN;                   ///< the largest measurement, which a bound is compared with
    std::vector<double> overEpsilon = {}; ///< `demanded` at theoryEpsilons(); empty where ε does not occur
    std::string unit = {};                ///< written after a number: "°"
    std::int64_t count = 0;               ///< measurements; 0: one
    double beyond = NAN;                  ///< share of the measurements above the bound
    double mayFail = NAN;                 ///< share that the theorem allows above it
    bool isSigned = false;                ///< cosines: a ratio to the bound means nothing
    std::string caveat = {};   ///< constants set to 1, vacuous bounds, empty regimes, nothing balanced; empty: none
    std::string ifBroken = {}; ///< of a bound: what a measurement above it would mean

    /// The paper with its version, from the table of citations.
    std::string paper() const;
    bool hasMargin() const;
    /// Set over demanded, or bound over worst (isSigned: 1 + bound - worst): at least 1 where the theorem holds.
    double margin() const { return marginAgainst(demanded); }
    double marginAgainst(double otherDemand) const;
};

/// From 0.01 to 0.99, evenly on a logarithmic axis.
const std::vector<double>& theoryEpsilons();

struct TheoryAsked {
    double epsilon = 0.5, delta = 0.01;
};

struct TheoryTable {
    std::shared_ptr<const RunResult> run; ///< measured, with steps: what the rows are about
    std::vector<TheoryRow> rows;
};

/// The theorems' statements about the request's policy (BalanceKV in both forms, SubGen, Compactor, leverage, KeyDiff),
/// for all KV heads of its layer in ascending order. Throws Error for a policy without theorems, a recorded list, a
/// layer with softcap or attention sinks, and without evaluation queries.
TheoryTable theoryTable(const LayerRunner& runner, const RunRequest& request, const TheoryAsked& asked,
                        const Checkpoint& checkpoint);

/// Per KV head: the largest norms of the keys before the cut and of the evaluation queries, and the dimensions.
std::vector<TheoryNorms> theoryNorms(const LayerRunner& runner, const RunResult& result, const Checkpoint& checkpoint);

/// BalanceKV's Theorem 3.3 at fixed queries, a row for each KV head that walked, from a run with steps: the measured
/// ||sum eta_i e^{s<k_i,q>} v_i|| in units of R e^{s|q|^2/2}, R = max e^{s|k|^2/2} max|v| over the walk's tokens, is at
/// most the number of these tokens. At most 64 evaluation queries of each query head, evenly spread, are used.
std::vector<TheoryRow> discrepancyRows(const LayerRunner& runner, const RunResult& result, double delta,
                                       const Checkpoint& checkpoint);

/// Why no walk of BalanceKV ran in a KV head of a run with steps; empty where one did.
std::string nothingBalanced(const RunResult& result, int kvHead);

} // namespace kvscope
