// Finds what travels beside a built, unpacked or installed program.
#include "app/study/resources.h"

#include <filesystem>

namespace kvscope {

std::string findResource(const std::string& name) {
    std::error_code ignored;
    const std::filesystem::path from = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const char* place : {"../share/kvscope", "../../.."}) // the second: from build/PRESET/bin
        if (const auto found = (from / place / name).lexically_normal(); std::filesystem::exists(found, ignored))
            return found.string();
    return {};
}

} // namespace kvscope
