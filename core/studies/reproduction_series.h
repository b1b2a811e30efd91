#pragma once

#include "core/studies/reproduction_data.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// What one point is made of.
struct PointSamples {
    double x = 0;
    std::int64_t rows = 0;
    std::string text;
    std::vector<Sample> samples = {};
    Summary vectors = {};                          ///< where the spread is over vectors
    std::map<std::string, std::string> notes = {}; ///< by wordsOf the note
};

/// A note without its numbers: the notes of many runs differ only in those.
std::string wordsOf(std::string note);
/// The row's `budget` when `visible` tokens lie before the cut. If some are kept exactly: in tokens, these and the
/// share of the others, rounded down as halving does, at least one.
Budget budgetOf(const Reproduction& reproduction, const std::string& budget, std::int64_t visible);
/// The row's budgets that equal `budget` when `visible` tokens lie before the cut: several if they round alike.
std::vector<std::string> budgetsLike(const Reproduction& reproduction, const Budget& budget, std::int64_t visible);

/// Averages rows of a sweep into points.
class GatheredSeries {
public:
    GatheredSeries(const LayerRunner& runner, const Reproduction& reproduction)
        : m_runner(runner), m_reproduction(reproduction) {}

    void add(const SweepRow& row);
    std::vector<ReproducedSeries> series() const;

private:
    using Key = std::pair<std::string, std::string>; ///< policy, label

    /// The numbers of a measure of a run: one per head, or one; one per vector where the row is over vectors.
    std::vector<double> numbersOf(const RunResult& result, const std::string& measure) const;
    std::vector<double> overlaps(const RunResult& result) const;
    void addNumbers(const SweepRow& row, const std::string& measure, const std::vector<double>& numbers);
    ReproducedPoint pointOf(const PointSamples& point) const;
    bool overVectors() const { return m_reproduction.over == "vectors"; }
    std::string labelOf(const RunRequest& run, const std::string& measure) const;
    std::string titleOf(const RunRequest& run, const std::string& measure, const std::string& label) const;
    void addAt(const std::string& place, const SweepRow& row, const std::string& measure,
               const std::vector<double>& numbers);
    /// Texts of the points that the run belongs to.
    std::vector<std::string> placesOf(const RunRequest& run) const;
    double xOf(const SweepRow& row, const std::string& measure) const;

    const LayerRunner& m_runner;
    const Reproduction& m_reproduction;
    std::map<Key, std::vector<PointSamples>> m_points;
    std::map<Key, std::string> m_measureOf, m_titleOf;
    std::map<const CaptureReader*, std::int64_t> m_captures; ///< numbered in the order seen
};

/// Converts a cache size of KeyDiff's Table 7 to these prompts: 8K holds 1,790 of 4,120 prompts whole there, so 8K
/// becomes the shortest length that holds at least that share of these prompts; other sizes in proportion.
double scaledTokens(double paperTokens, std::vector<std::int64_t> lengths);
/// Tokens up to the answer, or all without a marked answer.
std::int64_t promptTokens(const CaptureReader& capture);

/// Series that need no run, in the paper's sizes and, for several prompts, in scaled ones. Notes say how these were
/// scaled.
std::vector<ReproducedSeries> keptShareSeries(const std::vector<std::int64_t>& lengths,
                                              std::vector<std::string>& notes);
std::vector<ReproducedSeries> lengthSeries(const std::vector<std::int64_t>& lengths, std::vector<std::string>& notes);

struct ParameterSpec;

/// Label of a measure of core/metrics, or of one that only reproductions have. "policy_ms": features + combine +
/// select. "spectral_drawn", "spectral_top": the distortion of Compactor's Theorem 1 over drawn leverage, of the rows
/// drawn and of as many best ones (per KV head), at the share of rows drawn. "overlap": Jaccard of the kept list with
/// that of the reference, everything else the same. "kept_share": min(1, N / L). "prompts": how many. Throws Error for
/// an unknown id.
std::string reproductionMeasureLabel(const std::string& measure);

/// The parameter along the axis or over the series, as its policies hold it; null where none varies.
const ParameterSpec* variedSpec(const Reproduction& reproduction);
/// The label of a choice, any other text as it is.
std::string choiceLabel(const ParameterSpec& spec, const std::string& text);

} // namespace kvscope
