// Calibrations as files: JSON with everything, read back as a curve; CSV with one row per triple for tables and plots,
// which can be read back as triples.
#include "core/calibration/calibration.h"

#include "core/base/atomic_file.h"
#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/base/number_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "kvscope-calibration";
constexpr int kVersion = 1;

double numberAt(const Json& json, const char* key) {
    const auto at = json.find(key);
    return at == json.end() || at->is_null() ? NAN : at->get<double>();
}

Json jsonOf(const Calibration& c) {
    Json json = {{"format", kFormat},
                 {"version", kVersion},
                 {"policy", c.policy},
                 {"variant", c.variant},
                 {"spec", c.spec},
                 {"kind", c.given        ? "given"
                          : c.data.proxy ? "proxy"
                                         : "measured"},
                 {"origin", c.data.origin},
                 {"notes", c.data.notes},
                 {"tau", c.tau},
                 {"seen_queries", c.data.seenQueries},
                 {"simulated", c.data.simulated},
                 {"arithmetic", c.data.arithmetic}};
    json["fit"] = {{"alpha", c.fit.alpha},
                   {"beta", c.fit.beta},
                   {"weight", c.fit.weight},
                   {"loss", c.fit.loss},
                   {"triples", c.fit.triples},
                   {"contexts", c.fit.contexts},
                   {"slope_known", c.fit.slopeKnown},
                   {"at_edge", c.fit.atEdge}};
    json["contexts"] = Json::array();
    for (const CalibratedContext& context : c.contexts) {
        const auto cut = c.data.cuts.find(context.name);
        json["contexts"].push_back({{"name", context.name},
                                    {"cut_token", cut == c.data.cuts.end() ? Json(nullptr) : Json(cut->second)},
                                    {"nll", context.nll},
                                    {"k", context.k},
                                    {"retention", context.retention},
                                    {"retention_low", context.band.low},
                                    {"retention_high", context.band.high}});
    }
    json["triples"] = Json::array();
    for (const CalibrationTriple& triple : c.data.triples)
        json["triples"].push_back({{"context", triple.context},
                                   {"retention", triple.retention},
                                   {"nll_context", triple.contextNll},
                                   {"quality", triple.quality}});
    json["command"] = c.command;
    return json;
}

const CalibratedContext* contextOf(const std::vector<CalibratedContext>& contexts, const std::string& name) {
    const auto at = std::ranges::find(contexts, name, &CalibratedContext::name);
    return at == contexts.end() ? nullptr : &*at;
}

std::string field(double value) { return std::isfinite(value) ? shortest(value) : std::string(); }

std::string csvOf(const Calibration& c) {
    std::string text = csvLine(
        {"policy", "variant",  "spec",   "context", "nll_context",      "retention",  "quality",     "proxy",
         "fitted", "residual", "k",      "tau",     "retention_needed", "needed_low", "needed_high", "alpha",
         "beta",   "weight",   "origin", "notes",   "cut_token",        "simulated",  "arithmetic",  "seen_queries",
         "command"});
    for (const CalibrationTriple& triple : c.data.triples) {
        const CalibratedContext& context = *contextOf(c.contexts, triple.context);
        const double fitted = calibrationCurve(context.k, triple.retention);
        const auto cut = c.data.cuts.find(triple.context);
        text += csvLine({c.policy,
                         c.variant,
                         c.spec,
                         triple.context,
                         field(triple.contextNll),
                         field(triple.retention),
                         field(triple.quality),
                         c.data.proxy ? "true" : "false",
                         field(fitted),
                         field(fitted - triple.quality),
                         field(context.k),
                         field(c.tau),
                         field(context.retention),
                         field(context.band.low),
                         field(context.band.high),
                         field(c.fit.alpha),
                         field(c.fit.beta),
                         field(c.fit.weight),
                         c.data.origin,
                         fmt::format("{}", fmt::join(c.data.notes, "; ")),
                         cut == c.data.cuts.end() ? "" : std::to_string(cut->second),
                         c.data.simulated ? "true" : "false",
                         c.data.arithmetic,
                         c.data.seenQueries ? "true" : "false",
                         c.command});
    }
    return text;
}

void readFit(const Json& json, CalibrationFit& fit) {
    fit.alpha = json.at("alpha").get<double>();
    fit.beta = json.at("beta").get<double>();
    fit.weight = json.at("weight").get<double>();
    fit.loss = numberAt(json, "loss");
    fit.triples = json.at("triples").get<std::int64_t>();
    fit.contexts = json.at("contexts").get<std::int64_t>();
    fit.slopeKnown = json.at("slope_known").get<bool>();
    fit.atEdge = json.at("at_edge").get<bool>();
}

Calibration calibrationFrom(const Json& json) {
    Calibration c;
    c.policy = json.at("policy").get<std::string>();
    c.variant = json.at("variant").get<std::string>();
    c.spec = json.at("spec").get<std::string>();
    c.given = json.at("kind") == "given";
    c.data.proxy = json.at("kind") == "proxy";
    c.data.origin = json.at("origin").get<std::string>();
    c.data.notes = json.at("notes").get<std::vector<std::string>>();
    c.tau = json.at("tau").get<double>();
    c.data.seenQueries = json.value("seen_queries", false); // older files say nothing of the runs
    c.data.simulated = json.value("simulated", false);
    c.data.arithmetic = json.value("arithmetic", std::string());
    readFit(json.at("fit"), c.fit);
    for (const Json& context : json.at("contexts")) {
        if (const auto cut = context.find("cut_token"); cut != context.end() && !cut->is_null())
            c.data.cuts[context.at("name").get<std::string>()] = cut->get<TokenIndex>();
        c.contexts.push_back({context.at("name").get<std::string>(),
                              numberAt(context, "nll"),
                              context.at("k").get<double>(),
                              context.at("retention").get<double>(),
                              {numberAt(context, "retention_low"), numberAt(context, "retention_high")}});
    }
    for (const Json& triple : json.at("triples"))
        c.data.triples.push_back({triple.at("context").get<std::string>(), triple.at("retention").get<double>(),
                                  numberAt(triple, "nll_context"), triple.at("quality").get<double>()});
    c.command = json.at("command").get<std::string>();
    return c;
}

std::vector<CalibratedContext> contextsNeeding(const Calibration& c, std::span<const CalibrationFit> resampled) {
    std::vector<CalibratedContext> contexts;
    for (const CalibrationTriple& triple : c.data.triples) {
        if (contextOf(contexts, triple.context)) continue;
        const double k = c.fit.k(triple.contextNll);
        contexts.push_back({triple.context, triple.contextNll, k, retentionNeeded(k, c.tau),
                            retentionBand(resampled, triple.contextNll, c.tau)});
    }
    return contexts;
}

/// From few rows the retention is uncertain, and where a context has a single row, how uncertain is unknown.
void noteFewRows(const CalibrationFit& fit, CalibrationData& data) {
    constexpr std::int64_t kFew = 5; // per context; FEW_ROWS of kvscope-evaluate
    if (fit.triples >= kFew * fit.contexts) return;
    std::map<std::string, int> rows;
    for (const CalibrationTriple& triple : data.triples)
        if (triple.retention > 0 && triple.retention < 1) ++rows[triple.context];
    const bool single = std::any_of(rows.begin(), rows.end(), [](const auto& one) { return one.second == 1; });
    const std::string note = fmt::format(
        "few rows: {} between 0 and 1 for {} context{}; another row may move the retention far{}", fit.triples,
        fit.contexts, fit.contexts == 1 ? "" : "s", single ? ", and there is no interval" : "");
    const auto says = [&](const std::string& other) { return other.find(note) != std::string::npos; };
    if (std::ranges::none_of(data.notes, says)) data.notes.push_back(note); // a table's notes may hold it already
}

void checkTau(double tau) {
    if (!(tau > 0 && tau <= 1))
        throw Error({fmt::format("tau {} is no quality from above 0 to 1", tau), "--tau", "Give 0.95, say", ""});
}

Calibration begin(const PolicySpec& policy, double tau) {
    checkTau(tau);
    Calibration c;
    c.policy = policy.policy;
    c.variant = policy.variant;
    PolicySpec spec = policy;
    spec.budget.reset();
    c.spec = spec.text();
    c.tau = tau;
    return c;
}

} // namespace

Calibration calibrate(const PolicySpec& policy, CalibrationData data, double tau, double weight, int resamples) {
    Calibration c = begin(policy, tau);
    c.data = std::move(data);
    c.fit = fitCalibration(c.data.triples, weight);
    noteFewRows(c.fit, c.data);
    c.contexts = contextsNeeding(c, bootstrapCalibration(c.data.triples, c.fit, resamples, 0));
    return c;
}

CalibrationMisfit misfitOf(const Calibration& calibration) {
    const auto curvature = [&](const std::string& name) { return contextOf(calibration.contexts, name)->k; };
    return misfitOf(calibration.data.triples, curvature, calibration.fit.weight);
}

Calibration calibrationOfK(const PolicySpec& policy, double k, double tau) {
    if (!std::isfinite(k)) throw Error({fmt::format("k = {} is no curvature", k), "--k", "Give -5, say", ""});
    Calibration c = begin(policy, tau);
    c.given = true;
    c.data.origin = "given by hand";
    c.fit.beta = k;
    c.contexts.push_back({"any context", NAN, k, retentionNeeded(k, tau), {}});
    return c;
}

void writeCalibration(const std::string& path, const Calibration& calibration) {
    const bool json = path.ends_with(".json");
    writeFileAtomically(path, json ? jsonLines(jsonOf(calibration), 1) + "\n" : csvOf(calibration));
}

Calibration readCalibrationFile(const std::string& path) {
    const Json json = parsedOrderedJson(readJsonText(path));
    const auto is = [&](const char* key, const auto& value) { // copies nothing: it may be nested deeply
        const auto found = json.find(key);
        return found != json.end() && *found == value;
    };
    if (!json.is_object() || !is("format", kFormat))
        throw Error({std::string("the file is not a ") + kFormat, "",
                     "Write one with kvscope calibrate --out FILE.json", path});
    if (!is("version", kVersion))
        throw Error(
            {fmt::format("version {} of the calibration is not known",
                         json.contains("version") && json.at("version").is_number() ? jsonLine(json.at("version"))
                                                                                    : "without a number"),
             "version", fmt::format("This program reads version {}", kVersion), path});
    const auto refuse = [&](const std::string& why) {
        throw Error(
            {"the calibration contradicts its format: " + why, "", "Write it again with kvscope calibrate", path});
    };
    Calibration read;
    try {
        read = calibrationFrom(json);
    } catch (const Json::exception& error) {
        refuse(error.what());
    }
    for (const CalibrationTriple& triple : read.data.triples)
        if (!contextOf(read.contexts, triple.context)) refuse("its contexts lack '" + triple.context + "' of a triple");
    return read;
}

} // namespace kvscope
