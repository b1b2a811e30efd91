#pragma once

#include "tests/support/source_dir.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

/// Small readable expected texts in tests/golden. KVSCOPE_UPDATE_GOLDEN=1 rewrites them from `lines`.
namespace kvscope::golden {

inline std::vector<std::string> linesOf(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

inline std::string pathOf(const std::string& name) { return kvscope::testing::sourceDir() + "/tests/golden/" + name; }

inline bool isUpdated() {
    const char* update = std::getenv("KVSCOPE_UPDATE_GOLDEN");
    return update && *update == '1';
}

/// Empty when `lines` is what tests/golden/<name> holds (or was just rewritten to hold), else the first line that
/// differs.
inline std::string compare(const std::string& name, const std::vector<std::string>& lines) {
    const std::string path = pathOf(name);
    if (isUpdated()) {
        std::ofstream file(path);
        for (const std::string& line : lines) file << line << '\n';
        return file.flush() ? "" : "cannot write " + path;
    }
    const std::vector<std::string> expected = linesOf(path);
    for (std::size_t i = 0; i < std::max(lines.size(), expected.size()); ++i) {
        const std::string is = i < lines.size() ? lines[i] : "(nothing)";
        const std::string should = i < expected.size() ? expected[i] : "(nothing)";
        if (is != should)
            return name + " line " + std::to_string(i + 1) + "\n  is        " + is + "\n  should be " + should;
    }
    return {};
}

} // namespace kvscope::golden
