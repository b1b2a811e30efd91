#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace kvscope {

/// What completions and the man page are made of: the options as the help shows them.
struct OptionFacts {
    std::vector<std::string> names;   ///< "--out"; none for a positional
    std::string positional;           ///< name of a positional, else empty
    std::string value;                ///< what it takes: "{cpu,torch,cuda}", "INT in [0 - 1024]"; empty for a flag
    std::vector<std::string> choices; ///< all values it takes, where they can be listed
    std::string help, standard;       ///< sentence and default value
    bool isList = false;              ///< values may be joined by commas
};

std::vector<OptionFacts> optionsOf(const CLI::App& app);
std::vector<const CLI::App*> subcommandsOf(const CLI::App& app);

} // namespace kvscope
