// Finds the sample capture beside a built, unpacked or installed program.
#include "app/study/sample_path.h"

#include <filesystem>

namespace kvscope {

namespace {

std::string findBeside(const std::string& programFolder, const std::filesystem::path& name) {
    const std::filesystem::path from = programFolder;
    for (const std::filesystem::path& folder :
         {from, from / "..", from / "../..", from / "../../..", from / "../share/kvscope"}) {
        std::error_code ignored;
        const std::filesystem::path candidate = (folder / name).lexically_normal();
        if (std::filesystem::exists(candidate, ignored)) return candidate.string();
    }
    return {};
}

} // namespace

std::string findSampleCapture(const std::string& programFolder) {
    return findBeside(programFolder, "sample_data/needle-1k.h5");
}

std::string findLessonFolder(const std::string& programFolder) {
    return findBeside(programFolder, "resources/lessons");
}

} // namespace kvscope
