// `kvscope completion`: what bash, zsh and fish offer after the program's name, from the same options as --help.
#include "app/command_line/command.h"
#include "core/metrics/measures.h"
#include "core/policies/policy.h"
#include "core/studies/reproduction.h"
#include "views/view.h"

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace kvscope {

namespace {

/// What completions and the man page are made of: the options as the help shows them.
struct OptionFacts {
    std::vector<std::string> names;   ///< "--out"; none for a positional
    std::string positional;           ///< name of a positional, else empty
    std::string value;                ///< what it takes: "{cpu,torch,cuda}", "INT in [0 - 1024]"; empty for a flag
    std::vector<std::string> choices; ///< all values it takes, where they can be listed
    std::string help, standard;       ///< sentence and default value
    bool isList = false;              ///< values may be joined by commas
};

/// The ids that an option takes where they are too many for its help, which names the command that lists them.
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

std::vector<OptionFacts> optionsOf(const CLI::App& app) {
    std::vector<OptionFacts> facts;
    for (const CLI::Option* option : app.get_options()) facts.push_back(factsOf(*option));
    return facts;
}

std::vector<const CLI::App*> subcommandsOf(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); });
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

/// The help up to its first semicolon or full stop.
std::string brief(const std::string& help) {
    return help.substr(0, std::min({help.find(';'), help.find(". "), help.size()}));
}

std::string spaced(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

std::vector<std::string> namesOf(const CLI::App& app) {
    std::vector<std::string> names;
    for (const OptionFacts& option : optionsOf(app))
        names.insert(names.end(), option.names.begin(), option.names.end());
    return names;
}

constexpr const char* kBash = R"(# Completions of kvscope for bash, printed by `kvscope completion bash`.
_kvscope() {{
    local line current previous command= words= list= head= i
    read -ra line <<< "${{COMP_LINE:0:COMP_POINT}}"
    [[ ${{COMP_LINE:0:COMP_POINT}} == *[[:space:]] ]] && line+=("")
    current=${{line[-1]}} previous=${{line[-2]}}
    [[ $current == --*=* ]] && previous=${{current%%=*}} current=${{current#*=}}
    for ((i = 1; i < ${{#line[@]}} - 1; ++i)); do
        case ${{line[i]}} in
        {commands}) command=${{line[i]}}; break ;;
        esac
    done
    case "$command $previous" in
{values}    *)
        case $command in
        '') words='{first}' ;;
{options}        esac
        [[ -z $command || $current == -* ]] || words=
        ;;
    esac
    [[ $list ]] && head=${{current%"${{current##*,}}"}}
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$words" -- "${{current#"$head"}}")
    COMPREPLY=("${{COMPREPLY[@]#"${{current%"${{current##*[:=]}}"}}"}}") # bash takes these for ends of words
}}
complete -o default -F _kvscope kvscope
)";

/// Offers an option's choices after its name, and those of the first positional after the command. Otherwise bash
/// completes file names by itself.
std::string bashScript(const CLI::App& app) {
    std::string values, options;
    std::vector<std::string> commands;
    for (const CLI::App* command : subcommandsOf(app)) {
        bool first = true; // no positional yet
        commands.push_back(command->get_name());
        options += fmt::format("        {}) words='{}' ;;\n", command->get_name(), spaced(namesOf(*command)));
        for (const OptionFacts& option : optionsOf(*command)) {
            if (!option.choices.empty() && (option.positional.empty() || first))
                values += fmt::format("    '{} {}') words='{}'{} ;;\n", command->get_name(),
                                      option.positional.empty() ? option.names.back() : command->get_name(),
                                      spaced(option.choices), option.isList ? " list=1" : "");
            first = first && option.positional.empty();
        }
    }
    for (const OptionFacts& option : optionsOf(app))
        if (!option.choices.empty())
            values += fmt::format("    ' {}') words='{}' ;;\n", option.names.back(), spaced(option.choices));
    return fmt::format(kBash, fmt::arg("commands", fmt::join(commands, "|")), fmt::arg("values", values),
                       fmt::arg("options", options), fmt::arg("first", spaced(commands) + " " + spaced(namesOf(app))));
}

std::string zshWord(const std::string& text) { return fmt::format("'{}'", replaced(text, "'", R"('\'')")); }

std::string zshAction(const OptionFacts& option) {
    return option.choices.empty() ? "_files" : fmt::format("({})", replaced(spaced(option.choices), ":", R"(\:)"));
}

std::string zshScript(const CLI::App& app) {
    std::string commands, cases;
    for (const CLI::App* command : subcommandsOf(app)) {
        commands += fmt::format(" {}", zshWord(command->get_name() + ":" + brief(command->get_description())));
        std::string specs = " '1: :'"; // the command itself
        int place = 2;
        for (const OptionFacts& option : optionsOf(*command)) {
            if (!option.positional.empty() && !option.choices.empty())
                specs +=
                    fmt::format(" {}", zshWord(fmt::format("{}:{}:{}", place, option.positional, zshAction(option))));
            place += option.positional.empty() ? 0 : 1;
            const std::string help = replaced(replaced(brief(option.help), "[", R"(\[)"), "]", R"(\])");
            for (const std::string& name : option.names)
                specs += fmt::format(" {}", zshWord(option.value.empty() ? fmt::format("{}[{}]", name, help)
                                                                         : fmt::format("*{}=[{}]:value:{}", name, help,
                                                                                       zshAction(option))));
        }
        cases += fmt::format("{})\n    _arguments{} '*:file:_files'\n    ;;\n", command->get_name(), specs);
    }
    return fmt::format("#compdef kvscope\n# Completions of kvscope for zsh, printed by `kvscope completion zsh`.\n"
                       "local -a commands\ncommands=({})\nif ((CURRENT == 2)); then\n"
                       "    _describe -t commands command commands\n    _files\n    return\nfi\n"
                       "case $words[2] in\n{}esac\n",
                       commands.substr(1), cases);
}

std::string fishWord(const std::string& text) { return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'"; }

/// The lines of one command's options and positionals; `where` says when they are offered.
std::string fishLines(const CLI::App& app, const std::string& where) {
    std::string lines;
    for (const OptionFacts& option : optionsOf(app)) {
        const std::string values = option.choices.empty() ? "" : " -a " + fishWord(spaced(option.choices));
        if (!option.positional.empty()) {
            if (!values.empty()) lines += fmt::format("complete -c kvscope -n {}{}\n", fishWord(where), values);
            continue;
        }
        std::string names;
        for (const std::string& name : option.names)
            names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        lines += fmt::format("complete -c kvscope -n {}{}{}{} -d {}\n", fishWord(where), names,
                             option.value.empty() ? ""
                             : values.empty()     ? " -r"
                                                  : " -x",
                             values, fishWord(brief(option.help)));
    }
    return lines;
}

std::string fishScript(const CLI::App& app) {
    std::string text = "# Completions of kvscope for fish, printed by `kvscope completion fish`.\n" +
                       fishLines(app, "__fish_use_subcommand");
    for (const CLI::App* command : subcommandsOf(app)) {
        text += fmt::format("complete -c kvscope -n __fish_use_subcommand -a {} -d {}\n", command->get_name(),
                            fishWord(brief(command->get_description())));
        text += fishLines(*command, "__fish_seen_subcommand_from " + command->get_name());
    }
    return text;
}

class CompletionCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("completion", "print what a shell completes: commands, options, ids and values");
        m_command->add_option("shell", m_shell, "which shell")
            ->required()
            ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    }
    void run(const CommandContext&) override {
        const CLI::App& program = *m_command->get_parent();
        fmt::print("{}", m_shell == "bash"  ? bashScript(program)
                         : m_shell == "zsh" ? zshScript(program)
                                            : fishScript(program));
    }

private:
    std::string m_shell;
};

/// Text escaped for roff: no character is read as a request, a hyphen or a typographic quote.
std::string roff(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
        const bool begins = escaped.empty() || escaped.back() == '\n';
        if (begins && (c == '.' || c == '\'')) escaped += "\\&";
        switch (c) {
        case '\\': escaped += "\\e"; break;
        case '-': escaped += "\\-"; break;
        case '\'': escaped += "\\(aq"; break;
        case '`': escaped += "\\(ga"; break;
        case '^': escaped += "\\(ha"; break;
        case '~': escaped += "\\(ti"; break;
        default: escaped += c;
        }
    }
    return escaped;
}

std::string optionText(const OptionFacts& option) {
    const std::string names = fmt::format("{}", fmt::join(option.names, ", "));
    const std::string name = option.positional.empty() ? fmt::format("\\fB{}\\fR", roff(names))
                                                       : fmt::format("\\fI{}\\fR", roff(option.positional));
    const std::string value = option.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.value));
    const std::string standard = option.standard.empty() ? "" : fmt::format(" (default: {})", roff(option.standard));
    return fmt::format(".TP\n{}{}\n{}{}\n", name, value, roff(option.help), standard);
}

std::string optionsText(const CLI::App& app) {
    std::string text;
    for (const OptionFacts& option : optionsOf(app)) text += optionText(option);
    return text;
}

std::string manualPage(const CLI::App& app) {
    const std::string what = app.get_description();
    std::string text = ".\\\" printed by kvscope man\n.TH KVSCOPE 1 \"\" \"kvscope " KVSCOPE_VERSION "\"\n"
                       ".SH NAME\nkvscope \\- what KV\\-cache compression keeps, evicts and costs\n"
                       ".SH SYNOPSIS\n\\fBkvscope\\fR [\\fIfile\\fR]\n.br\n\\fBkvscope\\fR \\fIcommand\\fR [options]\n"
                       ".SH DESCRIPTION\n" +
                       roff(what) + "\nWithout a command the window opens.\n.SH OPTIONS\n" + optionsText(app) +
                       ".SH COMMANDS\n";
    for (const CLI::App* command : subcommandsOf(app)) {
        text += fmt::format(".SS kvscope {}\n{}\n{}", roff(command->get_name()), roff(command->get_description()),
                            optionsText(*command));
        if (!command->get_footer().empty()) text += ".PP\n" + roff(command->get_footer()) + "\n";
    }
    return text + ".SH EXIT STATUS\n0: done; 1: an unexpected failure; 2: a user or a file caused an error, which one "
                  "sentence names; 130 or 143: stopped by Ctrl+C or SIGTERM.\nNothing is half\\-written.\n";
}

class ManCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("man", "print the manual page: kvscope man | man -l -");
    }
    void run(const CommandContext&) override { fmt::print("{}", manualPage(*m_command->get_parent())); }
};

} // namespace

std::unique_ptr<Command> makeCompletionCommand() { return std::make_unique<CompletionCommand>(); }

std::unique_ptr<Command> makeManCommand() { return std::make_unique<ManCommand>(); }

} // namespace kvscope
