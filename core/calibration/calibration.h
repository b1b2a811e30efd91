#pragma once

#include "core/capture/capture.h"
#include "core/metrics/calibration.h"
#include "core/policies/policy_spec.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kvscope {

/// Default w of the asymmetric loss; the paper gives none.
inline constexpr double kCalibrationWeight = 5;

/// Triples (r, NLL(c), y) of one policy, and their source.
struct CalibrationData {
    std::vector<CalibrationTriple> triples;
    bool proxy = false;
    std::string origin;             ///< "calibration/snapkv/kvpress of needle-1k.h5"; contains "proxy" for a proxy
    std::vector<std::string> notes; ///< notes for the reader
    std::map<std::string, TokenIndex> cuts = {}; ///< of the contexts whose cut is known
    std::vector<std::string> specs = {};         ///< policies with parameters that a table names for its rows
    bool seenQueries = false;                    ///< a proxy's runs were measured on queries that the policy saw
    bool simulated = false;                      ///< of a proxy's runs, or of the rows
    std::string arithmetic = {};                 ///< of the runs or rows; empty: unknown
};

/// Adds how further rows were measured. An arithmetic that is not exact takes precedence.
void addMeasuring(CalibrationData& data, bool simulated, const std::string& arithmetic);

/// The same, and adds notes that say so in words.
void noteMeasuring(CalibrationData& data, bool simulated, const std::string& arithmetic);
/// Notes that ratios to a loss through the full cache say little where that loss is almost 0.
void noteTinyLoss(CalibrationData& data, double fullNll);

/// Names the parameters of `mine` whose values differed when `origin` was measured: "...: measured with window=64, this
/// run has window=16". `theirs` gives the text of a parameter by id, or nothing where unknown. Empty: none differs.
std::string otherParameters(const std::string& origin, const ParameterValues& mine,
                            const std::function<std::optional<std::string>(const std::string& id)>& theirs);
/// Notes where the run of `policy` differs from how `data` was measured: its cut on the capture that has a context's
/// name, and its parameters, if the rows come from a table.
void noteOtherCut(CalibrationData& data, const CaptureReader& capture, TokenIndex cut);
void noteParametersOfTable(CalibrationData& data, const PolicySpec& policy);
/// For a source without parameters: a sentence if the policy's values are not those of its variant.
std::string unstatedParameters(const std::string& origin, const PolicySpec& policy);

/// NLL(c): mean NLL of the tokens before the cut under the full cache, in nats; NaN where the capture has none.
double contextNllOf(const CaptureReader& capture, TokenIndex cut);

/// Names of the contexts of some captures: the file's name, or its path where another capture has the same name.
std::vector<std::string> contextNamesOf(std::span<const std::shared_ptr<const CaptureReader>> captures);
bool isContextOf(const std::string& context, const CaptureInfo& info);

/// The capture's rows for the policy and variant. A context has the given name, by default the file's, with "#id" where
/// the capture has several. Throws Error that lists the existing rows when these are missing.
CalibrationData measuredTriples(const CaptureReader& capture, const PolicySpec& policy, TokenIndex cut,
                                std::string name = {});

/// A CSV with a header line. Columns, in any order: `retention`; `quality`, or `nll_full` and `nll_compressed`;
/// optional are `nll_context`, `context` (default "0"), `policy` and `variant` (rows of others are left out), `proxy`
/// (true or false), `cut_token`, `spec` (the policy with its parameters), `simulated`, `arithmetic`, and `notes` of a
/// table with an `origin`. Lines that start with # and other columns are ignored, and rows with an empty quality are
/// left out with a note. Throws Error with line and column.
CalibrationData readTriplesCsv(const std::string& path, const std::string& policy, const std::string& variant);

/// The retention that one context needs.
struct CalibratedContext {
    std::string name;
    double nll = 0; ///< NaN: unknown
    double k = 0, retention = 1;
    CalibrationBand band; ///< of the retention; NaN without a bootstrap
};

/// A fit with all data for its use and evaluation.
struct Calibration {
    std::string policy, variant, spec;
    double tau = 0.95;
    bool given = false; ///< k was typed, nothing was fitted
    CalibrationData data;
    CalibrationFit fit;
    std::vector<CalibratedContext> contexts; ///< in order of appearance
    std::string command;
};
/// Fits, and bootstraps the band of every context's retention from `resamples` (seed 0).
Calibration calibrate(const PolicySpec& policy, CalibrationData data, double tau, double weight, int resamples = 500);
/// Over all contexts, each with its own k; NaN for a given k.
CalibrationMisfit misfitOf(const Calibration& calibration);
/// A curve with a given k.
Calibration calibrationOfK(const PolicySpec& policy, double k, double tau);

/// `kvscope-calibration` version 1. JSON: everything, read back by readCalibrationFile. CSV: one row per triple with
/// fitted value, residual and what its context needs; readTriplesCsv reads it back. Writes are atomic. Throws Error.
void writeCalibration(const std::string& path, const Calibration& calibration);
Calibration readCalibrationFile(const std::string& path);

} // namespace kvscope
