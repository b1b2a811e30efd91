// Reads triples that a model measured: from the capture's own rows or from a CSV table.
#include "core/calibration/calibration.h"

#include "core/base/atomic_file.h"
#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/base/number_text.h"
#include "core/base/one_line.h"
#include "core/capture/calibration_rows.h"
#include "core/policies/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

namespace kvscope {

namespace {

constexpr double kTinyLoss = 0.01; // nats a token; tau = 0.95 then allows a rise below 0.0006

std::string remedyFor(const std::vector<CalibrationRows>& all, const PolicySpec& policy) {
    std::vector<std::string> variants, others;
    for (const CalibrationRows& rows : all)
        (rows.policy == policy.policy ? variants : others).push_back(rows.policy + ":" + rows.variant);
    const std::string proxy = "use a proxy (tau=0.95:proxy, or calibrate --proxy) or a manual k "
                              "(tau=0.95:k=-5, or calibrate --k -5)";
    if (!variants.empty())
        return fmt::format("There are rows of {}; name that variant, or {}", fmt::join(variants, ", "), proxy);
    if (!others.empty())
        return fmt::format("There are rows of {}; measure this policy with kvscope-evaluate, or {}",
                           fmt::join(others, ", "), proxy);
    return "Measure some with the model (kvscope-evaluate), or " + proxy;
}

struct CsvTable {
    std::string path;
    std::map<std::string, std::size_t> columns;

    [[noreturn]] void fail(const std::string& sentence, std::int64_t line, const std::string& remedy) const {
        throw Error({sentence, fmt::format("line {}", line), remedy, path});
    }

    bool has(const std::string& name) const { return columns.contains(name); }

    std::string text(const std::vector<std::string>& fields, const std::string& name, std::int64_t line) const {
        const std::size_t column = columns.at(name);
        if (column >= fields.size())
            fail(fmt::format("the line has {} fields, {} is number {}", fields.size(), name, column + 1), line,
                 "Write as many fields as the header names");
        return fields[column];
    }

    double number(const std::vector<std::string>& fields, const std::string& name, std::int64_t line) const {
        const std::string field = text(fields, name, line);
        const auto value = parseNumber<double>(field);
        if (!value || !std::isfinite(*value))
            fail(fmt::format("'{}' in column {} is not a number", field, name), line, "Write it like 0.25");
        return *value;
    }
};

CsvTable tableFrom(const std::string& path, const std::vector<std::string>& header, std::int64_t line) {
    CsvTable table{path, {}};
    for (std::size_t i = 0; i < header.size(); ++i)
        if (!table.columns.emplace(header[i], i).second)
            table.fail("column '" + header[i] + "' is there twice", line, "Name each column once");
    const bool losses = table.has("nll_full") && table.has("nll_compressed");
    if (!table.has("retention") || (!table.has("quality") && !losses))
        table.fail(fmt::format("the header has the columns {}", fmt::join(header, ", ")), line,
                   "Needed are retention, and quality or nll_full and nll_compressed");
    return table;
}

double qualityIn(const CsvTable& table, const std::vector<std::string>& fields, std::int64_t line) {
    if (table.has("quality")) return table.number(fields, "quality", line);
    const double full = table.number(fields, "nll_full", line),
                 compressed = table.number(fields, "nll_compressed", line);
    if (!(full > 0) || !(compressed > 0))
        table.fail("a loss is not positive", line, "Give mean losses in nats a token");
    return full / compressed;
}

CalibrationTriple tripleIn(const CsvTable& table, const std::vector<std::string>& fields, std::int64_t line) {
    CalibrationTriple triple;
    triple.context = table.has("context") ? table.text(fields, "context", line) : "0";
    triple.retention = table.number(fields, "retention", line);
    if (!(triple.retention >= 0 && triple.retention <= 1))
        table.fail(fmt::format("retention {} is not from 0 to 1", triple.retention), line, "Give the fraction kept");
    if (table.has("nll_context") && !table.text(fields, "nll_context", line).empty())
        triple.contextNll = table.number(fields, "nll_context", line);
    triple.quality = qualityIn(table, fields, line);
    if (!(triple.quality > 0))
        table.fail(fmt::format("quality {} is not positive", triple.quality), line, "Give NLL(full) / NLL(compressed)");
    return triple;
}

bool isOther(const CsvTable& table, const std::vector<std::string>& fields, const char* column,
             const std::string& wanted, std::int64_t line) {
    return table.has(column) && table.text(fields, column, line) != wanted;
}

void addNew(std::vector<std::string>& texts, const std::string& text) {
    if (!text.empty() && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
}

/// What a table that this program wrote says about its rows beside the triple.
void takeMarks(const CsvTable& table, const std::vector<std::string>& fields, std::int64_t line,
               const CalibrationTriple& triple, CalibrationData& data) {
    const auto textIn = [&](const char* column) {
        return table.has(column) ? table.text(fields, column, line) : std::string();
    };
    addNew(data.specs, textIn("spec"));
    if (table.has("origin")) { // a calibration, whose notes say how it was measured; others state it in columns
        addNew(data.notes, textIn("notes"));
        addMeasuring(data, textIn("simulated") == "true", textIn("arithmetic"));
        data.seenQueries |= textIn("seen_queries") == "true";
    } else {
        noteMeasuring(data, textIn("simulated") == "true", textIn("arithmetic"));
    }
    if (const auto cut = parseNumber<TokenIndex>(textIn("cut_token"))) data.cuts[triple.context] = *cut;
    data.proxy |= textIn("proxy") == "true";
}

/// nullopt where the text is no policy of this program.
std::optional<PolicySpec> specIn(const std::string& text) {
    try {
        return PolicySpec::parse(text);
    } catch (const Error&) {
        return {};
    }
}

/// The policy's parameters as the capture states them: a JSON object of texts.
std::function<std::optional<std::string>(const std::string&)> statedIn(const std::string& text) {
    const auto json = std::make_shared<const nlohmann::json>(parsedJson(text));
    return [json](const std::string& id) -> std::optional<std::string> {
        if (!json->is_object() || !json->contains(id)) return {};
        const nlohmann::json& value = json->at(id);
        return value.is_string() ? value.get<std::string>() : jsonLine(value);
    };
}

} // namespace

void addMeasuring(CalibrationData& data, bool simulated, const std::string& arithmetic) {
    data.simulated |= simulated;
    const bool exact = data.arithmetic.empty() || data.arithmetic.starts_with("exact");
    if (exact && !arithmetic.empty()) data.arithmetic = arithmetic;
}

void noteMeasuring(CalibrationData& data, bool simulated, const std::string& arithmetic) {
    addMeasuring(data, simulated, arithmetic);
    if (simulated) addNew(data.notes, "simulated on full-attention tensors");
    if (!arithmetic.empty() && !arithmetic.starts_with("exact")) addNew(data.notes, "measured with " + arithmetic);
}

void noteTinyLoss(CalibrationData& data, double fullNll) {
    if (fullNll < kTinyLoss)
        data.notes.push_back(fmt::format("{}: the loss through the full cache is at most {:.2g} nats a token, and a "
                                         "quality is a ratio to it",
                                         data.origin, fullNll));
}

void noteOtherCut(CalibrationData& data, const CaptureReader& capture, TokenIndex cut) {
    for (const auto& [context, measured] : data.cuts)
        if (measured != cut && (isContextOf(context, capture.info()) ||
                                isContextOf(context.substr(0, context.rfind('#')), capture.info())))
            data.notes.push_back(fmt::format("{}: {} was measured with the cut {}, this cut is {}", data.origin,
                                             context, measured, cut));
}

void noteParametersOfTable(CalibrationData& data, const PolicySpec& policy) {
    std::set<std::string> notes;
    for (const std::string& spec : data.specs) {
        const std::optional<PolicySpec> measured = specIn(spec);
        const auto theirs = [&](const std::string& id) {
            return std::optional<std::string>(measured->values.text(id));
        };
        notes.insert(measured && measured->policy == policy.policy ? otherParameters(data.origin, policy.values, theirs)
                                                                   : unstatedParameters(data.origin, policy));
    }
    if (data.specs.empty()) notes.insert(unstatedParameters(data.origin, policy));
    notes.erase("");
    data.notes.insert(data.notes.end(), notes.begin(), notes.end());
}

double contextNllOf(const CaptureReader& capture, TokenIndex cut) {
    const std::vector<float>& nll = capture.tokens().nll;
    double sum = 0;
    std::int64_t count = 0;
    for (std::size_t token = 0; token < std::min(nll.size(), static_cast<std::size_t>(cut)); ++token)
        if (std::isfinite(nll[token])) {
            sum += static_cast<double>(nll[token]);
            ++count;
        }
    return count > 0 ? sum / static_cast<double>(count) : NAN;
}

std::string otherParameters(const std::string& origin, const ParameterValues& mine,
                            const std::function<std::optional<std::string>(const std::string& id)>& theirs) {
    std::vector<std::string> measured, here;
    for (const ParameterSpec& row : mine.table())
        if (const auto text = theirs(row.id); text && *text != mine.text(row.id)) {
            measured.push_back(row.id + "=" + *text);
            here.push_back(row.id + "=" + mine.text(row.id));
        }
    if (here.empty()) return {};
    return fmt::format("{}: measured with {}, this run has {}", origin, fmt::join(measured, ", "),
                       fmt::join(here, ", "));
}

std::string unstatedParameters(const std::string& origin, const PolicySpec& policy) {
    const ParameterValues plain = variantValues(policyById(policy.policy).card(), policy.variant);
    const ParameterTable& rows = policy.values.table();
    const bool changed = std::ranges::any_of(
        rows, [&](const ParameterSpec& row) { return policy.values.text(row.id) != plain.text(row.id); });
    return changed ? origin +
                         " does not say with which parameters it was measured, and this run changes some of its variant"
                   : std::string();
}

std::vector<std::string> contextNamesOf(std::span<const std::shared_ptr<const CaptureReader>> captures) {
    std::vector<std::string> names;
    for (const auto& capture : captures) {
        const CaptureInfo& info = capture->info();
        const auto shared =
            std::ranges::count_if(captures, [&](const auto& other) { return other->info().fileName == info.fileName; });
        names.push_back(shared > 1 ? info.path : info.fileName);
    }
    return names;
}

bool isContextOf(const std::string& context, const CaptureInfo& info) {
    return context == info.fileName || context == info.path;
}

CalibrationData measuredTriples(const CaptureReader& capture, const PolicySpec& policy, TokenIndex cut,
                                std::string name) {
    const CaptureInfo& info = capture.info();
    if (name.empty()) name = info.fileName;
    const auto all = readCalibration(info.path);
    const auto at = std::ranges::find_if(all, [&](const CalibrationRows& rows) {
        return rows.policy == policy.policy && rows.variant == policy.variant;
    });
    if (at == all.end())
        throw Error({fmt::format("the capture has no measured qualities of {}:{}", policy.policy, policy.variant),
                     fmt::format("calibration/{}/{}", policy.policy, policy.variant), remedyFor(all, policy),
                     info.path});
    std::set<std::int64_t> contexts;
    for (const CalibrationRow& row : at->rows) contexts.insert(row.context);
    CalibrationData data;
    data.origin = at->place() + " of " + name;
    for (const CalibrationRow& row : at->rows) {
        data.triples.push_back({contexts.size() > 1 ? fmt::format("{}#{}", name, row.context) : name, row.retention,
                                row.contextNll, row.fullNll / row.compressedNll});
        if (at->cut) data.cuts[data.triples.back().context] = static_cast<TokenIndex>(*at->cut);
    }
    if (const std::string warning = info.checkWarning(); !warning.empty()) data.notes.push_back(name + ": " + warning);
    noteMeasuring(data, at->simulated, at->arithmetic);
    if (at->cut && *at->cut != cut)
        data.notes.push_back(
            fmt::format("{} was measured with the cut {}, this cut is {}", data.origin, *at->cut, cut));
    const std::string note = at->parameters.empty()
                                 ? unstatedParameters(data.origin, policy)
                                 : otherParameters(data.origin, policy.values, statedIn(at->parameters));
    if (!note.empty()) data.notes.push_back(note);
    double full = 0;
    for (const CalibrationRow& row : at->rows) full = std::max(full, row.fullNll);
    noteTinyLoss(data, full);
    return data;
}

CalibrationData readTriplesCsv(const std::string& path, const std::string& policy, const std::string& variant) {
    const std::string text = readWholeFile(path);
    CsvRecords records(withoutByteOrderMark(text));
    CalibrationData data;
    std::optional<CsvTable> table;
    int unmeasured = 0;
    for (std::string comment; !records.atEnd();) {
        if (records.takeComment(comment)) continue;
        const std::int64_t line = records.line() + 1;
        const std::vector<std::string> fields = records.takeRecord();
        if (fields.size() == 1 && fields.front().empty()) continue;
        if (!table) {
            table = tableFrom(path, fields, line);
            continue;
        }
        if (isOther(*table, fields, "policy", policy, line) || isOther(*table, fields, "variant", variant, line))
            continue;
        if (table->has("quality") && table->text(fields, "quality", line).empty()) { // its loss was not finite
            ++unmeasured;
            continue;
        }
        data.triples.push_back(tripleIn(*table, fields, line));
        takeMarks(*table, fields, line, data.triples.back(), data);
    }
    if (data.triples.empty() && unmeasured > 0)
        throw Error({fmt::format("the table has no triples of {}:{} with a quality", policy, variant), "column quality",
                     "Measure an answer whose losses are finite", path});
    if (data.triples.empty())
        throw Error({fmt::format("the table has no triples of {}:{}", policy, variant), "",
                     "Check its columns policy and variant, or leave them out", path});
    if (unmeasured > 0) data.notes.push_back(fmt::format("rows without a quality are left out: {}", unmeasured));
    data.origin = (data.proxy ? "proxy triples of " : "triples of ") + std::filesystem::path(path).filename().string();
    return data;
}

} // namespace kvscope
