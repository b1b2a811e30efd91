// Finds and runs the subcommand, and turns every error into a message and an exit code.
#include "app/command_line/command_line.h"

#include "app/command_line/command.h"
#include "app/command_line/outputs.h"
#include "app/command_line/policy_words.h"
#include "app/study/regenerating_command.h"
#include "app/study/resources.h"
#include "app/study/session_file.h"
#include "core/base/error.h"
#include "core/base/one_line.h"
#include "core/base/termination.h"
#include "core/base/utf8.h"
#include "core/capture/capture.h"
#include "core/capture/open_capture.h"
#include "core/lists/selection_file.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace kvscope {

namespace {

constexpr int kUserError = 2, kInternalError = 1, kInterrupted = 130;

std::vector<std::unique_ptr<Command>> makeCommands() {
    std::vector<std::unique_ptr<Command>> commands;
    for (const auto make :
         {makePoliciesCommand, makeViewsCommand, makeMeasuresCommand, makeReproduceCommand, makeInspectCommand,
          makeSynthCommand, makeConvertCommand, makeEvictCommand, makeMeasureCommand, makeSweepCommand,
          makeCalibrateCommand, makePlotCommand, makeTheoryCommand, makeReportCommand, makeHandoutCommand,
          makeLiveCommand, makeSchemaCommand, makeCompletionCommand, makeManCommand})
        commands.push_back(make());
    return commands;
}

std::string asTyped(int argc, char** argv) {
    std::vector<std::string> words{"kvscope"};
    words.insert(words.end(), argv + 1, argv + argc);
    return shellLine(words);
}

/// Captures and lists share the extension .h5; other files are reported as bad captures.
void checkHdf5(const std::string& path) {
    try {
        openCapture(path);
    } catch (const Error& noCapture) {
        try {
            readSelection(path);
        } catch (const Error&) {
            throw noCapture;
        }
    }
}

/// Refuses files that the window could not open, before it starts and without a display.
void checkWindowFile(const std::string& path) {
    if (!isUtf8(path))
        throw Error(
            {.sentence = "the window opens files whose names are UTF-8", .remedy = "Rename the file", .path = path});
    const std::string extension = std::filesystem::path(path).extension().string();
    if (isSessionFile(path))
        readSession(path);
    else if (extension == ".json" || extension == ".csv")
        readSelection(path);
    else
        checkHdf5(path);
}

/// Whether the first word is a command of resources/python, which a newcomer may try here; says so on stderr.
bool isPythonCommand(const std::string& word) {
    static const std::set<std::string> commands = {"capture", "check-press", "describe", "evaluate", "scores"};
    if (!commands.contains(word) || std::filesystem::exists(word)) return false;
    std::string tools = findResource("kvscope_tools.tar.gz"); // of an installed program
    if (tools.empty()) tools = "resources/python";
    fmt::print(stderr, "kvscope: {0} is a command of its own, kvscope-{0}; pip install {1} brings it\n", word, tools);
    return true;
}

/// Says what is wrong with the command line, and how a file is named that looks like an option.
int refuseWords(const std::string& what, const std::vector<std::string>& words) {
    const auto isFile = [](const std::string& word) {
        std::error_code none;
        return word.starts_with("-") && std::filesystem::exists(word, none);
    };
    const auto file = std::ranges::find_if(words, isFile);
    const std::string remedy = file == words.end() ? "see kvscope --help" : fmt::format("write './{}'", *file);
    fmt::print(stderr, "kvscope: {}\n", messageText(fmt::format("{}; {}", what, remedy)));
    return kUserError;
}

int guarded(const CommandContext& context, const std::function<void()>& work) {
    try {
        work();
        context.clearProgress();
        return 0;
    } catch (const Error& error) {
        context.clearProgress();
        fmt::print(stderr, "kvscope: {}\n", error.what());
        return kUserError;
    } catch (const Cancelled&) {
        context.clearProgress();
        fmt::print(stderr, "kvscope: stopped, nothing was written\n");
        return terminationCode() != 0 ? terminationCode() : kInterrupted;
    } catch (const std::bad_alloc&) {
        context.clearProgress();
        fmt::print(stderr, "kvscope: there is not enough memory for this; choose fewer layers or a shorter capture\n");
        return kUserError;
    } catch (const std::exception& failure) {
        context.clearProgress();
        fmt::print(stderr, "kvscope: unexpected failure: {}\n", messageText(failure.what()));
        return kInternalError;
    }
}

} // namespace

std::optional<int> runCommandLine(int argc, char** argv, WindowRequest& window) {
    if (argc > 1 && isPythonCommand(argv[1])) return kUserError;
    CLI::App app("KVScope shows what KV-cache compression keeps, what it evicts and what that costs.", "kvscope");
    app.set_version_flag("--version", "kvscope " KVSCOPE_VERSION);
    app.add_option("file", window.file, "capture, session or recorded list to open in the window");
    app.add_option("--engine", window.engine,
                   "of the window: cpu, torch (LibTorch on the CPU) or cuda (NVIDIA GPU); the last chosen by default")
        ->check(CLI::IsMember({"cpu", "torch", "cuda"}));
    app.add_option("--threads", window.threads, "of the engine; 0: all cores")->check(CLI::Range(0, 1024));
    app.add_option("--memory", window.memory,
                   "of the window: GiB of tensors and results that are kept for going back; an eighth of the machine's "
                   "memory by default, 1 to 4")
        ->check(CLI::Range(0.25, 1024.0));
    app.require_subcommand(0, 1);
    const auto commands = makeCommands();
    for (const auto& command : commands) command->addTo(app);
    for (CLI::App* subcommand : app.get_subcommands(nullptr))
        subcommand->set_version_flag("--version", "kvscope " KVSCOPE_VERSION);
    try {
        std::vector<std::string> words = withEachPolicyNamed({argv + 1, argv + argc});
        std::ranges::reverse(words); // CLI11 reads them in reverse
        app.parse(std::move(words));
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ExtrasError&) { // CLI11's own message lists the words in reverse
        return refuseWords(fmt::format("unknown: {}", fmt::join(app.remaining(true), " ")), {argv + 1, argv + argc});
    } catch (const CLI::ParseError& error) {
        return refuseWords(error.what(), {argv + 1, argv + argc});
    }
    for (const auto& command : commands)
        if (command->chosen()) {
            const CommandContext context(asTyped(argc, argv), terminationToken());
            return guarded(context, [&] {
                CLI::App& subcommand = *app.get_subcommands().front();
                StandardOutput standardOutput(subcommand);
                checkOutputs(subcommand);
                command->run(context);
                context.clearProgress();
                standardOutput.send();
            });
        }
    if (window.file.empty()) return std::nullopt;
    window.refused = guarded(CommandContext({}, {}), [&] { checkWindowFile(window.file); });
    std::error_code none;
    const bool mayOpen = window.refused == 0 || (isUtf8(window.file) && std::filesystem::exists(window.file, none));
    return mayOpen ? std::nullopt : std::optional(window.refused);
}

} // namespace kvscope
