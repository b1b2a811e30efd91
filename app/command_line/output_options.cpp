// No command overwrites its inputs: one check over all parsed options serves every subcommand.
#include "app/command_line/output_options.h"

#include "core/base/error.h"
#include "core/base/own_output.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace kvscope {

namespace {

bool isOutput(const CLI::Option& option) {
    static const std::array<const char*, 4> names = {"--out", "--csv", "--steps", "--record"};
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return option.check_name(name); });
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

void checkAgainst(const CLI::Option& output, const std::string& path, const CLI::Option& other) {
    for (const std::string& value : other.results()) {
        if (isOutput(other) && isSameFile(path, value))
            throw Error({.sentence = fmt::format("{} and {} name one file", output.get_name(), other.get_name()),
                         .place = output.get_name(),
                         .remedy = "Give each output a name of its own",
                         .path = path});
        checkIsNoSource(path, pathsIn(value), output.get_name());
    }
}

} // namespace

void checkOutputsAreOwn(const CLI::App& subcommand) {
    const auto options = subcommand.get_options([](const CLI::Option* option) { return option->count() > 0; });
    for (const CLI::Option* output : options)
        for (const CLI::Option* other : options)
            if (isOutput(*output) && other != output) checkAgainst(*output, output->results().front(), *other);
}

} // namespace kvscope
