#pragma once

#include "core/base/termination.h"

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kvscope {

/// The extensions of the forms that an option's help names, with their points: "FILE.json or FILE.csv" has two.
std::vector<std::string> extensionsIn(const std::string& help);

/// Before any work: throws Error, naming the option, when an output of the parsed subcommand has another extension than
/// those that its help begins with, cannot be written, is a file that another of its options names (no command
/// overwrites its inputs), or is the file of a second output.
void checkOutputs(const CLI::App& subcommand);

/// `--out -` is standard output in the first form that the option's help names, `--out -.svg` in another of them. The
/// command writes a temporary file that is sent when it is whole; until then what the command prints goes to standard
/// error.
class StandardOutput {
public:
    /// Throws Error for a form that the option does not have, for two outputs, and where a terminal would show a binary
    /// file.
    explicit StandardOutput(CLI::App& subcommand);
    ~StandardOutput(); ///< the temporary file is gone
    StandardOutput(const StandardOutput&) = delete;
    StandardOutput& operator=(const StandardOutput&) = delete;

    void send(); ///< nothing where no output is "-"; throws Error where it cannot be written

private:
    void restore();
    std::string m_folder, m_path;
    std::unique_ptr<const RemovedOnTermination> m_folderRemoval, m_fileRemoval;
    int m_standardOutput = -1; ///< a copy of the descriptor while it stands for standard error
};

} // namespace kvscope
