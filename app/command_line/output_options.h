#pragma once

namespace CLI {
class App;
}

namespace kvscope {

/// Throws Error, naming the option, when an output of a parsed subcommand is a file that another of its options names:
/// an input, or a second output.
void checkOutputsAreOwn(const CLI::App& subcommand);

} // namespace kvscope
