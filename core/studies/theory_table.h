#pragma once

#include "core/metrics/theory.h"
#include "core/run/run.h"

#include <limits>
#include <string>
#include <vector>

namespace kvscope {

/// "The theory beside the measurement": one statement of a theorem about one KV head, at the head's present norms.
struct TheoryRow {
    enum class Kind {
        AtLeast,   ///< `set` must be at least `demanded` for the theorem to promise anything
        Describes, ///< a number that the theorem works with
        Bound      ///< `measured` is promised to be at most `demanded`
    };
    Kind kind = Kind::AtLeast;
    std::string theorem, quantity, formula;
    int kvHead = 0;
    double demanded = 0; ///< the demand or the bound; infinity beyond the double range
    double set = std::numeric_limits<double>::quiet_NaN();      ///< what the parameter is, where there is one
    double measured = std::numeric_limits<double>::quiet_NaN(); ///< the mean where there are many queries
    double worst = std::numeric_limits<double>::quiet_NaN();    ///< the largest of them
    std::vector<double> overEpsilon; ///< what `demanded` is at theoryEpsilons(); empty where ε plays no part
    std::string unit = {};           ///< behind a number: "°"

    bool hasMargin() const;
    /// Set over demanded, or bound over measured: 1 and more is what the theorem asks for or promises.
    double margin() const { return marginAgainst(demanded); }
    double marginAgainst(double otherDemand) const;
};

/// From 0.01 to 0.99, evenly on a logarithmic axis.
const std::vector<double>& theoryEpsilons();

struct TheoryAsked {
    double epsilon = 0.5, delta = 0.01;
};

/// The statements of the papers that speak about the request's policy (BalanceKV in both forms, SubGen, Compactor,
/// leverage, KeyDiff), for all KV heads of its layer in ascending order. Throws Error for a policy that no theorem
/// speaks about, for recorded lists, and where no query can judge.
std::vector<TheoryRow> theoryRows(const LayerRunner& runner, const RunRequest& request, const TheoryAsked& asked,
                                  const Checkpoint& checkpoint);

/// The norms of one KV head that theorems speak about: keys and values before the cut, the queries that judge the
/// result.
std::vector<TheoryNorms> theoryNorms(const LayerRunner& runner, const RunResult& result, const Checkpoint& checkpoint);

} // namespace kvscope
