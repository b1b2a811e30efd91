// A program that is built, unpacked or installed finds its sample without being told where.
#include "app/session/sample_path.h"

#include <filesystem>

namespace kvscope {

std::string findSampleCapture(const std::string& programFolder) {
    const std::filesystem::path name = "sample_data/needle-1k.h5", from = programFolder;
    for (const std::filesystem::path& folder : {from, from / "..", from / "../..", from / "../../..", from / "../share/kvscope"}) {
        std::error_code ignored;
        const std::filesystem::path candidate = (folder / name).lexically_normal();
        if (std::filesystem::is_regular_file(candidate, ignored))
            return candidate.string();
    }
    return {};
}

} // namespace kvscope
