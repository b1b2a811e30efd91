#pragma once

#include "core/studies/reproduction_data.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Samples of one point.
struct PointSamples {
    using PerSeed = std::vector<std::vector<double>>;

    double x = 0;
    std::int64_t rows = 0;
    std::string text;
    std::map<const CaptureReader*, std::map<int, PerSeed>> values = {}; ///< separate for each capture and layer
};

/// A budget of the row where so many tokens lie before the cut: in tokens where some are exact, then of the others as
/// many as halving leaves, rounded down and at least one.
Budget budgetOf(const Reproduction& reproduction, const std::string& budget, std::int64_t visible);

/// Averages rows of a sweep into points.
class GatheredSeries {
public:
    GatheredSeries(const LayerRunner& runner, const Reproduction& reproduction)
        : m_runner(runner), m_reproduction(reproduction) {}

    void add(const SweepRow& row);
    /// `overCaptures`: a sample is a capture's mean.
    std::vector<ReproducedSeries> series(bool overCaptures) const;

private:
    using Key = std::pair<std::string, std::string>; ///< policy, label

    std::vector<double> samplesOf(const RunResult& result, const std::string& measure) const;
    std::vector<double> overlaps(const RunResult& result) const;
    void addSamples(const SweepRow& row, const std::string& measure, const std::vector<double>& values);
    std::string labelOf(const RunRequest& run, const std::string& measure) const;
    std::string placeOf(const RunRequest& run) const;
    double xOf(const SweepRow& row) const;

    const LayerRunner& m_runner;
    const Reproduction& m_reproduction;
    std::map<Key, std::vector<PointSamples>> m_points;
    std::map<Key, std::string> m_measureOf;
};

/// Converts a cache size of KeyDiff's Table 7 to these prompts: its 8K hold 1,790 of 4,120 prompts whole, so 8K becomes
/// the length that as large a share of these prompts does not exceed; other sizes in proportion.
double scaledTokens(double paperTokens, std::vector<std::int64_t> lengths);
/// Tokens up to the answer, or all without a marked answer.
std::int64_t promptTokens(const CaptureReader& capture);

/// Series that need no run. Notes say how cache sizes and edges were scaled.
std::vector<ReproducedSeries> keptShareSeries(const std::vector<std::int64_t>& lengths,
                                              std::vector<std::string>& notes);
std::vector<ReproducedSeries> lengthSeries(const std::vector<std::int64_t>& lengths, std::vector<std::string>& notes);

} // namespace kvscope
