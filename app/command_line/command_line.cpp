// Finds and runs the subcommand, and turns every error into a message and an exit code.
#include "app/command_line/command_line.h"

#include "app/command_line/command.h"
#include "app/study/regenerating_command.h"
#include "app/study/resources.h"
#include "app/study/session_file.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/base/one_line.h"
#include "core/base/termination.h"
#include "core/capture/open_capture.h"
#include "core/lists/selection_file.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace kvscope {

namespace {

namespace fs = std::filesystem;

constexpr int kUserError = 2, kInternalError = 1, kInterrupted = 130;

/// `--out -` writes to standard output in the first format that the option's help names, `--out -.svg` in another one.
/// The command writes a temporary file, which is sent once it is complete; until then what the command prints goes to
/// standard error.
class StandardOutput {
public:
    /// Throws Error for a format that the option does not have, for two outputs, and where a terminal would show a
    /// binary file.
    explicit StandardOutput(CLI::App& subcommand);
    ~StandardOutput(); ///< removes the temporary file
    StandardOutput(const StandardOutput&) = delete;
    StandardOutput& operator=(const StandardOutput&) = delete;

    bool isUsed() const { return !m_path.empty(); }
    void send(); ///< does nothing where no output is "-"; throws Error where it cannot be written

private:
    void restore();
    std::string m_folder, m_path;
    std::unique_ptr<const RemovedOnTermination> m_folderRemoval, m_fileRemoval;
    int m_standardOutput = -1; ///< a duplicate of its descriptor while descriptor 1 is standard error; else -1
};

bool isOutput(const CLI::Option* option) {
    static const std::array<const char*, 4> names = {"--out", "--csv", "--steps", "--record"};
    return option->count() > 0 &&
           std::any_of(names.begin(), names.end(), [&](const char* name) { return option->check_name(name); });
}

/// The extensions of the formats that an option's help names, with their dots: "FILE.json or FILE.csv" has two.
std::vector<std::string> extensionsIn(const std::string& help) {
    static const std::regex kForm(R"(FILE(\.\w+))");
    std::vector<std::string> extensions;
    for (std::sregex_iterator at(help.begin(), help.end(), kForm), end; at != end; ++at) extensions.push_back((*at)[1]);
    return extensions;
}

void checkExtension(const CLI::Option& option, const std::string& path, const std::string& extension) {
    const std::vector<std::string> extensions = extensionsIn(option.get_description());
    const auto known = [&](const char* one) {
        return std::find(extensions.begin(), extensions.end(), one) != extensions.end();
    };
    if (known(extension.c_str())) return;
    std::string remedy = fmt::format("Choose one of {}", fmt::join(extensions, ", "));
    if (extension == ".parquet" && known(".json"))
        remedy = fmt::format("Write {0}.json, which kvscope-parquet {0}.json --out {0}.parquet turns into one",
                             path == extension ? "table" : fs::path(path).replace_extension().string());
    throw Error({"the output has the extension '" + extension + "'", option.get_name(), remedy, path});
}

void checkFile(const CLI::Option& option) {
    const std::string path = option.results().front();
    const std::string extension = fs::path(path).extension().string();
    if (!option.get_description().starts_with("FILE.")) return; // a folder may be named too; the command checks it
    checkExtension(option, path, extension);
    if (extension == ".h5" || extension == ".hdf5")
        const AtomicFile probe(path); // HDF5 cannot be written to a pipe
    else
        checkCanWrite(path);
}

/// All parts of a value that may be paths: `table=FILE`, `FILE.h5:/data set`, `policy@tau=0.95:FILE`, `A,B`. A path may
/// contain these separators too, so the text between any two separators is a part.
std::vector<std::string> pathsIn(const std::string& value) {
    constexpr int kMostParts = 16; // of one path
    std::vector<std::string> paths = {value};
    for (std::size_t begin = 0; begin <= value.size();) {
        const auto signFrom = [&](std::size_t at) { return std::min(value.find_first_of("=:,@", at), value.size()); };
        std::size_t end = begin;
        for (int part = 0; part < kMostParts && end <= value.size(); ++part, ++end) {
            end = signFrom(end);
            paths.push_back(value.substr(begin, end - begin));
        }
        begin = signFrom(begin) + 1;
    }
    return paths;
}

void checkIsOwn(const CLI::Option& output, const std::string& path, const CLI::Option& other) {
    for (const std::string& value : other.results()) {
        if (isOutput(&other) && isSameFile(path, value))
            throw Error({fmt::format("{} and {} name one file", output.get_name(), other.get_name()), output.get_name(),
                         "Give each output a name of its own", path});
        checkIsNoSource(path, pathsIn(value), output.get_name());
    }
}

[[noreturn]] void refuseOutput(int error, const char* remedy = "Give a file to --out") {
    throw Error({"cannot write standard output: " + std::generic_category().message(error), "", remedy});
}

/// Runs a command that prints. Throws Error where standard output could not be written.
void runPrinting(const std::function<void()>& run) {
    constexpr const char* kRemedy = "Send it to another place with > or |";
    try {
        run();
    } catch (const std::system_error& failure) { // of fmt::print, or of a file
        if (std::ferror(stdout) == 0) throw;
        refuseOutput(failure.code().value(), kRemedy);
    }
    if (std::fflush(stdout) != 0) refuseOutput(errno, kRemedy);
}

/// Before any work: throws Error, naming the option, when an output of the parsed subcommand has another extension than
/// those that its help begins with, cannot be written, is a file that another of its options names (no command
/// overwrites its inputs), or is the file of a second output.
void checkOutputs(const CLI::App& subcommand) {
    const auto options = subcommand.get_options([](const CLI::Option* option) { return option->count() > 0; });
    for (const CLI::Option* output : options)
        if (isOutput(output)) {
            checkFile(*output);
            for (const CLI::Option* other : options)
                if (other != output) checkIsOwn(*output, output->results().front(), *other);
        }
}

StandardOutput::StandardOutput(CLI::App& subcommand) {
    const auto isPiped = [](const CLI::Option* option) {
        return isOutput(option) && (option->results().front() == "-" || option->results().front().starts_with("-."));
    };
    const std::vector<CLI::Option*> piped = subcommand.get_options(isPiped);
    if (piped.size() > 1) // before anything is made
        throw Error(
            {"standard output has room for one output", piped.back()->get_name(), "Give a file to one of them"});
    for (CLI::Option* option : piped) {
        const std::string typed = option->results().front();
        const std::string extension = typed == "-" ? extensionsIn(option->get_description()).front() : typed.substr(1);
        checkExtension(*option, extension, extension);
        static const std::array<std::string, 4> kBinary = {".h5", ".hdf5", ".png", ".pdf"};
        if (::isatty(STDOUT_FILENO) != 0 && std::find(kBinary.begin(), kBinary.end(), extension) != kBinary.end())
            throw Error({"a " + extension + " file is not for a terminal", option->get_name(),
                         "Name a file, or send the output to one with > or |"});
        std::string folder = (fs::temp_directory_path() / "kvscope-XXXXXX").string();
        if (!::mkdtemp(folder.data()))
            throw Error({"cannot make a folder: " + std::generic_category().message(errno), option->get_name(),
                         "Name a file", folder});
        m_folder = folder;
        m_path = folder + "/standard_output" + extension;
        m_folderRemoval = std::make_unique<RemovedOnTermination>(m_folder);
        m_fileRemoval = std::make_unique<RemovedOnTermination>(m_path);
        option->clear();
        option->add_result(m_path);
        option->run_callback();
    }
    if (m_path.empty()) return;
    std::fflush(stdout);
    m_standardOutput = ::dup(STDOUT_FILENO);
    if (m_standardOutput < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        const int error = errno;
        restore();
        refuseOutput(error);
    }
}

StandardOutput::~StandardOutput() { restore(); }

void StandardOutput::restore() {
    std::error_code ignored;
    if (!m_folder.empty()) fs::remove_all(m_folder, ignored);
    m_folder.clear();
    if (m_standardOutput < 0) return;
    std::fflush(stdout);
    ::dup2(m_standardOutput, STDOUT_FILENO);
    ::close(m_standardOutput);
    m_standardOutput = -1;
}

void StandardOutput::send() {
    if (m_path.empty()) return;
    std::FILE* file = std::fopen(m_path.c_str(), "rb");
    if (!file) refuseOutput(errno);
    restore(); // removes the file first: if the reader closes the pipe, SIGPIPE ends this program below
    std::array<char, 1 << 16> block{};
    int error = 0;
    while (const std::size_t got = std::fread(block.data(), 1, block.size(), file))
        if (std::fwrite(block.data(), 1, got, stdout) != got) {
            error = errno;
            break;
        }
    std::fclose(file);
    if (error != 0 || std::fflush(stdout) != 0) refuseOutput(error != 0 ? error : errno);
}

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

/// The command that the word may have meant; empty for files, and where none is near.
std::string commandNear(const CLI::App& app, const std::string& word) {
    if (std::error_code none; word.starts_with("-") || fs::exists(word, none)) return {};
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
    return std::ranges::find(names, word) == names.end() ? nearestName(word, names) : std::string();
}

/// Refuses files that the window could not open, before it starts and without a display. `meant`: a command of nearly
/// this name, or empty.
void checkWindowFile(const std::string& path, const std::string& meant) {
    if (!isUtf8(path)) throw Error({"the window opens files whose names are UTF-8", "", "Rename the file", path});
    const std::string extension = std::filesystem::path(path).extension().string();
    if (isSessionFile(path))
        readSession(path);
    else if (extension == ".json" || extension == ".csv")
        readSelection(path);
    else if (std::error_code ignored; !std::filesystem::exists(path, ignored))
        throw Error({"there is no such file", "",
                     meant.empty() ? "Check the name; kvscope --help lists the commands"
                                   : fmt::format("Did you mean the command '{}'?", meant),
                     path});
    else
        checkHdf5(path);
}

/// Whether the first word is a command of resources/python, which a newcomer may try here; says so on stderr.
bool isPythonCommand(const std::string& word) {
    static const std::set<std::string> commands = {"capture",  "check-press", "describe",
                                                   "evaluate", "parquet",     "scores"};
    if (!commands.contains(word) || std::filesystem::exists(word)) return false;
    std::string tools = findResource("kvscope_tools.tar.gz"); // of an installed program
    if (tools.empty()) tools = "resources/python";
    fmt::print(stderr, "kvscope: {0} is a command of its own, kvscope-{0}; pip install {1} brings it\n", word, tools);
    return true;
}

/// Says what is wrong with the command line, and how to name a file that looks like an option.
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
    const auto say = [&](std::string_view message) {
        context.clearProgress();
        fmt::print(stderr, "kvscope: {}\n", message);
    };
    try {
        work();
        context.clearProgress();
        return 0;
    } catch (const Error& error) {
        say(error.what());
        return kUserError;
    } catch (const Cancelled&) {
        say("stopped, nothing was written");
        return terminationCode() != 0 ? terminationCode() : kInterrupted;
    } catch (const std::bad_alloc&) {
        say("there is not enough memory for this; choose fewer layers or a shorter capture");
        return kUserError;
    } catch (const std::exception& failure) {
        say("unexpected failure: " + messageText(failure.what()));
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
    } catch (const CLI::Success& success) { // --help, --version
        std::ostringstream text;
        app.exit(success, text);
        return guarded(CommandContext({}, {}), [&] { runPrinting([&] { fmt::print("{}", text.str()); }); });
    } catch (const CLI::ExtrasError&) { // CLI11's own message lists the words in reverse
        if (const std::string meant = commandNear(app, argv[1]); !meant.empty())
            return refuseWords(fmt::format("unknown command '{}', did you mean '{}'?", argv[1], meant), {});
        return refuseWords(fmt::format("unknown: {}", fmt::join(app.remaining(true), " ")), {argv + 1, argv + argc});
    } catch (const CLI::ParseError& error) {
        return refuseWords(error.what(), {argv + 1, argv + argc});
    }
    for (const auto& command : commands)
        if (command->chosen()) {
            CommandContext context(asTyped(argc, argv), terminationToken());
            return guarded(context, [&] {
                CLI::App& subcommand = *app.get_subcommands().front();
                StandardOutput standardOutput(subcommand);
                context.setPipes(standardOutput.isUsed());
                checkOutputs(subcommand);
                runPrinting([&] { command->run(context); });
                context.clearProgress();
                standardOutput.send();
            });
        }
    if (window.file.empty()) return std::nullopt;
    window.refused =
        guarded(CommandContext({}, {}), [&] { checkWindowFile(window.file, commandNear(app, window.file)); });
    std::error_code none;
    const bool mayOpen = window.refused == 0 || (isUtf8(window.file) && std::filesystem::exists(window.file, none));
    return mayOpen ? std::nullopt : std::optional(window.refused);
}

} // namespace kvscope
