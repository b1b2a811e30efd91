// Keeps outputs from overwriting inputs such as captures. Links and other spellings of a path are resolved.
#include "core/base/own_output.h"

#include "core/base/error.h"

#include <filesystem>
#include <system_error>

namespace kvscope {

bool isSameFile(const std::string& a, const std::string& b) {
    namespace fs = std::filesystem;
    std::error_code failed;
    if (fs::equivalent(a, b, failed) && !failed) return true;
    const fs::path first = fs::weakly_canonical(fs::absolute(a, failed), failed);
    const fs::path second = fs::weakly_canonical(fs::absolute(b, failed), failed);
    return !failed && first == second;
}

void checkIsNoSource(const std::string& path, const std::vector<std::string>& sources, const std::string& place) {
    for (const std::string& source : sources) {
        std::error_code none;
        if (std::filesystem::is_regular_file(source, none) && isSameFile(path, source))
            throw Error({.sentence = "this file is read by the work whose result would replace it",
                         .place = place,
                         .remedy = "Choose another name for the output",
                         .path = path});
    }
}

} // namespace kvscope
