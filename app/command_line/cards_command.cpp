// `kvscope policies` and `kvscope views`: the cards, as tables for people and as JSON for programs. `kvscope measures`:
// what `measure` and `sweep` can write as columns.
#include "app/command_line/command.h"
#include "core/base/json/json_text.h"
#include "core/metrics/measures.h"
#include "core/policies/policy.h"
#include "views/common/view_options.h"

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;

const char* needName(Need need) {
    switch (need) {
    case Need::Keys: return "keys";
    case Need::Values: return "values";
    case Need::Queries: return "queries";
    case Need::PreRopeKeys: return "pre-RoPE keys";
    case Need::ImportedScores: return "a file of scores";
    }
    return "";
}

Json defaultOf(const ParameterSpec& spec) {
    switch (spec.kind) {
    case ParameterKind::Flag: return spec.defaultValue != 0;
    case ParameterKind::Choice: return spec.choices[static_cast<std::size_t>(spec.defaultValue)].id;
    case ParameterKind::Text: return spec.defaultText;
    case ParameterKind::Integer: return static_cast<std::int64_t>(spec.defaultValue);
    case ParameterKind::Real: break;
    }
    return spec.defaultValue;
}

Json parameterJson(const ParameterSpec& spec) {
    Json choices = Json::array();
    for (const ParameterChoice& choice : spec.choices) choices.push_back(choice.id);
    const char* stage = spec.stage == Stage::Features  ? "features"
                        : spec.stage == Stage::Combine ? "combine"
                                                       : "select";
    return {{"id", spec.id},
            {"label", spec.label},
            {"symbol", spec.symbol},
            {"unit", spec.unit},
            {"min", spec.min},
            {"max", spec.max},
            {"default", defaultOf(spec)},
            {"choices", choices},
            {"help", spec.help},
            {"source", spec.source},
            {"stage", stage}};
}

Json parametersJson(const ParameterTable& table) {
    Json parameters = Json::array();
    for (const ParameterSpec& spec : table) parameters.push_back(parameterJson(spec));
    return parameters;
}

Json policyJson(const PolicyCard& card) {
    Json needs = Json::array(), variants = Json::array();
    for (const Need need : card.needs) needs.push_back(needName(need));
    for (const PolicyVariant& variant : card.variants) {
        Json values = Json::object();
        for (const auto& [id, text] : variant.values) values[id] = text;
        variants.push_back(
            {{"id", variant.id}, {"label", variant.label}, {"summary", variant.summary}, {"values", values}});
    }
    return {{"id", card.id},
            {"name", card.name},
            {"summary", card.summary},
            {"paper", card.paper},
            {"uses_seed", card.usesSeed},
            {"needs", needs},
            {"variants", variants},
            {"parameters", parametersJson(*card.parameters)}};
}

/// The dependencies of an option: conditions that must all hold, each a list of alternatives. An alternative without
/// values means that the option is not at its default.
Json conditionsJson(const View& view, const std::string& option) {
    Json conditions = Json::array();
    for (const OptionNeed& need : view.card().needs) {
        if (need.id != option) continue;
        Json terms = Json::array();
        for (const OptionIs& term : need.anyOf) terms.push_back({{"id", term.id}, {"values", term.values}});
        conditions.push_back({{"any_of", terms}, {"words", needWords(view, need)}});
    }
    return conditions;
}

Json viewJson(const View& view) {
    const ViewCard& card = view.card();
    Json needs = Json::array({"selection"}), options = parametersJson(*card.options);
    if (!card.data.empty()) needs.push_back(card.data);
    for (Json& option : options) option["matters_while"] = conditionsJson(view, option["id"]);
    return {{"id", card.id},  {"name", card.name},         {"summary", card.summary}, {"paper", card.paper},
            {"needs", needs}, {"variants", Json::array()}, {"parameters", options}};
}

void printParameter(const ParameterSpec& spec, const std::string& condition = {}) {
    std::string range;
    for (const ParameterChoice& choice : spec.choices) range += (range.empty() ? "" : "|") + choice.id;
    if (range.empty() && spec.kind == ParameterKind::Text)
        range = "text";
    else if (range.empty() && spec.kind != ParameterKind::Flag)
        range = fmt::format("{} to {}", spec.min, spec.max);
    const Json standard = defaultOf(spec);
    fmt::print("    {}={}  {}{}{}{}\n", spec.id,
               standard.is_string() ? standard.get<std::string>() : jsonLine(standard), range,
               spec.unit.empty() ? "" : " " + spec.unit, range.empty() ? spec.help : "; " + spec.help, condition);
}

/// A list of cards as text or JSON.
template <class Item> class CardsCommand final : public Command {
public:
    using Json1 = Json (*)(const Item&);
    using Print = void (*)(const Item&);
    CardsCommand(std::string name, std::string help, std::vector<const Item*> items, Json1 json, Print print)
        : m_name(std::move(name)), m_help(std::move(help)), m_items(std::move(items)), m_json(json), m_print(print) {}

    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand(m_name, m_help);
        m_command->add_flag("--json", m_asJson, "as an array of objects");
    }
    void run(const CommandContext&) override {
        if (!m_asJson) {
            for (const Item* item : m_items) m_print(*item);
            return;
        }
        Json cards = Json::array();
        for (const Item* item : m_items) cards.push_back(m_json(*item));
        fmt::print("{}\n", jsonLines(cards, 2));
    }

private:
    std::string m_name, m_help;
    std::vector<const Item*> m_items;
    Json1 m_json;
    Print m_print;
    bool m_asJson = false;
};

void printPolicy(const PolicyCard& card) {
    fmt::print("{}  {}\n  {}\n  {}\n", card.id, card.name, card.summary, card.paper);
    for (const PolicyVariant& variant : card.variants) fmt::print("  :{}  {}\n", variant.id, variant.summary);
    for (const ParameterSpec& spec : *card.parameters) printParameter(spec);
    fmt::print("\n");
}

void printView(const View& view) {
    const ViewCard& card = view.card();
    fmt::print("{}  {}\n  {}\n  {}\n", card.id, card.name, card.summary, card.paper);
    for (const ParameterSpec& spec : *card.options) {
        std::string condition;
        for (const OptionNeed& need : view.card().needs)
            if (need.id == spec.id)
                condition += (condition.empty() ? " Matters only while " : "; and ") + needWords(view, need);
        printParameter(spec, condition.empty() ? condition : condition + '.');
    }
    fmt::print("\n");
}

const char* shapeText(MeasureShape shape) {
    switch (shape) {
    case MeasureShape::PerQuery: return "per query and head";
    case MeasureShape::PerQueryHead: return "per query head";
    case MeasureShape::PerKvHead: return "per KV head";
    case MeasureShape::PerLayerQuery: return "per query, whole layer";
    }
    return "";
}

const char* directionText(MeasureDirection direction) {
    if (direction == MeasureDirection::Neither) return "describes";
    return direction == MeasureDirection::SmallerIsBetter ? "smaller is better" : "larger is better";
}

const char* needText(MeasureNeed need) {
    switch (need) {
    case MeasureNeed::Nothing:
    case MeasureNeed::AllQueries: return ""; // the queries that the capture holds
    case MeasureNeed::Scores: return "a policy with scores";
    case MeasureNeed::OutputProjection: return "o_proj in the capture";
    case MeasureNeed::PreRopeKeys: return "the keys before RoPE, stored or derived";
    }
    return "";
}

Json measureJson(const MeasureCard& card) {
    const std::string need = needText(card.need);
    return {{"id", card.id},
            {"label", card.label},
            {"unit", card.unit},
            {"shape", shapeText(card.shape)},
            {"direction", directionText(card.better)},
            {"needs", need.empty() ? Json::array() : Json::array({need})},
            {"help", card.help}};
}

void printMeasure(const MeasureCard& card) {
    const std::string need = needText(card.need);
    fmt::print("{:<24}{}{}{} ({}, {}{}{})\n{:24}{}\n", card.id, card.label, card.unit.empty() ? "" : ", ", card.unit,
               shapeText(card.shape), directionText(card.better), need.empty() ? "" : "; needs ", need, "", card.help);
}

} // namespace

std::unique_ptr<Command> makePoliciesCommand() {
    std::vector<const PolicyCard*> cards;
    for (const Policy* policy : allPolicies()) cards.push_back(&policy->card());
    return std::make_unique<CardsCommand<PolicyCard>>("policies",
                                                      "print what can be run, with parameters, papers and variants",
                                                      std::move(cards), policyJson, printPolicy);
}

std::unique_ptr<Command> makeViewsCommand() {
    return std::make_unique<CardsCommand<View>>("views", "print what can be drawn, with options", allViews(), viewJson,
                                                printView);
}

std::unique_ptr<Command> makeMeasuresCommand() {
    std::vector<const MeasureCard*> cards;
    for (const MeasureCard& card : allMeasures()) cards.push_back(&card);
    return std::make_unique<CardsCommand<MeasureCard>>("measures", "print what can be measured", std::move(cards),
                                                       measureJson, printMeasure);
}

} // namespace kvscope
