// Reads the options back from CLI11, so that completions and man page say what --help says.
#include "app/command_line/option_facts.h"

#include "core/metrics/measures.h"
#include "core/policies/policy.h"
#include "core/studies/reproduction.h"
#include "views/view.h"

#include <CLI/CLI.hpp>

namespace kvscope {

namespace {

/// Ids that are too many for the help, which names the command that lists them.
std::vector<std::string> idsFor(const CLI::Option& option) {
    std::vector<std::string> ids;
    if (option.check_name("--policy"))
        for (const Policy* policy : allPolicies()) {
            ids.push_back(policy->card().id);
            for (const PolicyVariant& variant : policy->card().variants)
                ids.push_back(policy->card().id + ":" + variant.id);
        }
    if (option.check_name("--metrics"))
        for (const MeasureCard& card : allMeasures()) ids.push_back(card.id);
    if (option.check_name("--views") || option.check_name("view"))
        for (const View* view : allViews()) ids.push_back(view->card().id);
    if (option.check_name("id"))
        for (const Reproduction& row : allReproductions()) ids.push_back(row.id);
    return ids;
}

OptionFacts factsOf(const CLI::Option& option) {
    OptionFacts facts;
    for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
    if (option.get_positional()) facts.positional = option.get_name();
    facts.help = option.get_description();
    facts.standard = option.get_default_str();
    facts.isList = option.get_delimiter() == ',';
    if (option.get_type_size() == 0) return facts;
    const std::string type = option.get_type_name(); // "TEXT:{auto,hnd}"
    facts.value = type.substr(type.find(':') + 1);
    facts.choices = facts.value.starts_with('{')
                        ? CLI::detail::split(facts.value.substr(1, facts.value.size() - 2), ',')
                        : idsFor(option);
    return facts;
}

} // namespace

std::vector<OptionFacts> optionsOf(const CLI::App& app) {
    std::vector<OptionFacts> facts;
    for (const CLI::Option* option : app.get_options()) facts.push_back(factsOf(*option));
    return facts;
}

std::vector<const CLI::App*> subcommandsOf(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); });
}

} // namespace kvscope
