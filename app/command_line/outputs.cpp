// Files that subcommands write: their extensions, that they replace no input, and standard output in place of one.
#include "app/command_line/outputs.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/own_output.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <system_error>
#include <unistd.h>

namespace kvscope {

namespace fs = std::filesystem;

namespace {

bool isOutput(const CLI::Option* option) {
    static const std::array<const char*, 4> names = {"--out", "--csv", "--steps", "--record"};
    return option->count() > 0 &&
           std::any_of(names.begin(), names.end(), [&](const char* name) { return option->check_name(name); });
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
    throw Error({.sentence = "the output has the extension '" + extension + "'",
                 .place = option.get_name(),
                 .remedy = remedy,
                 .path = path});
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

/// All parts of a value that may be paths: `table=FILE`, `FILE.h5:/data set`, `policy@tau=0.95:FILE`, `A,B`.
std::vector<std::string> pathsIn(const std::string& value) {
    std::vector<std::string> paths = {value};
    for (std::size_t begin = 0; begin <= value.size();) {
        const std::size_t end = std::min(value.find_first_of("=:,@", begin), value.size());
        paths.push_back(value.substr(begin, end - begin));
        begin = end + 1;
    }
    return paths;
}

void checkIsOwn(const CLI::Option& output, const std::string& path, const CLI::Option& other) {
    for (const std::string& value : other.results()) {
        if (isOutput(&other) && isSameFile(path, value))
            throw Error({.sentence = fmt::format("{} and {} name one file", output.get_name(), other.get_name()),
                         .place = output.get_name(),
                         .remedy = "Give each output a name of its own",
                         .path = path});
        checkIsNoSource(path, pathsIn(value), output.get_name());
    }
}

[[noreturn]] void refuseOutput(int error) {
    throw Error({.sentence = "cannot write standard output: " + std::generic_category().message(error),
                 .remedy = "Give a file to --out"});
}

} // namespace

std::vector<std::string> extensionsIn(const std::string& help) {
    static const std::regex kForm(R"(FILE(\.\w+))");
    std::vector<std::string> extensions;
    for (std::sregex_iterator at(help.begin(), help.end(), kForm), end; at != end; ++at) extensions.push_back((*at)[1]);
    return extensions;
}

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
        throw Error({.sentence = "standard output has room for one output",
                     .place = piped.back()->get_name(),
                     .remedy = "Give a file to one of them"});
    for (CLI::Option* option : piped) {
        const std::string typed = option->results().front();
        const std::string extension = typed == "-" ? extensionsIn(option->get_description()).front() : typed.substr(1);
        checkExtension(*option, extension, extension);
        static const std::array<std::string, 4> kBinary = {".h5", ".hdf5", ".png", ".pdf"};
        if (::isatty(STDOUT_FILENO) != 0 && std::find(kBinary.begin(), kBinary.end(), extension) != kBinary.end())
            throw Error({.sentence = "a " + extension + " file is not for a terminal",
                         .place = option->get_name(),
                         .remedy = "Name a file, or send the output to one with > or |"});
        std::string folder = (fs::temp_directory_path() / "kvscope-XXXXXX").string();
        if (!::mkdtemp(folder.data()))
            throw Error({.sentence = "cannot make a folder: " + std::generic_category().message(errno),
                         .place = option->get_name(),
                         .remedy = "Name a file",
                         .path = folder});
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
    restore(); // the file has no name any more: a reader that closes the pipe ends this program here
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

} // namespace kvscope
