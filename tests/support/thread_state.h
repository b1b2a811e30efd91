#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace kvscope::testing {

/// Whether a thread of this process waits, for a lock or for work. `thread`: its id in the system (gettid).
inline bool isAsleep(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name = line.rfind(')'); // may itself hold spaces
    return name == std::string::npos || line.substr(name + 2, 1) == "S";
}

inline bool allOthersAreAsleep() {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::all_of(begin(threads), end(threads), [](const auto& entry) {
        const pid_t thread = std::stoi(entry.path().filename().string());
        return thread == gettid() || isAsleep(thread);
    });
}

} // namespace kvscope::testing
