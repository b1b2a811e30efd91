// `kvscope man`: the manual page of the program and all its commands, from the same options as --help.
#include "app/command_line/command.h"
#include "app/command_line/option_facts.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvscope {

namespace {

/// Text as roff prints it: no character is a request, a hyphenation or a typographic quote.
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
    return text + ".SH EXIT STATUS\n0: done; 2: a user or a file caused an error, which one sentence names; 130: "
                  "stopped.\nNothing is half\\-written.\n";
}

class ManCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_app = &app;
        m_command = app.add_subcommand("man", "print the manual page: kvscope man | man -l -");
    }
    void run(const CommandContext&) override { fmt::print("{}", manualPage(*m_app)); }

private:
    const CLI::App* m_app = nullptr;
};

} // namespace

std::unique_ptr<Command> makeManCommand() { return std::make_unique<ManCommand>(); }

} // namespace kvscope
