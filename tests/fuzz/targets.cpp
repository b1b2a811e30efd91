// The readers of untrusted bytes by name, and files in memory for those that read files.
#include "tests/fuzz/targets.h"

#include "core/base/error.h"
#include "core/base/one_line.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <unistd.h>

namespace kvscope::fuzz {

namespace {

std::map<std::string, Read, std::less<>>& targets() {
    static std::map<std::string, Read, std::less<>> all;
    return all;
}

} // namespace

TemporaryFile::TemporaryFile(std::string_view bytes, const std::string& extension)
    : m_path((std::filesystem::exists("/dev/shm") ? std::filesystem::path("/dev/shm")
                                                  : std::filesystem::temp_directory_path()) /
             ("kvscope-fuzz-" + std::to_string(::getpid()) + extension)) {
    std::ofstream(m_path, std::ios::binary) << bytes;
}

TemporaryFile::~TemporaryFile() { std::filesystem::remove(m_path); }

bool addTarget(const char* name, Read read) { return targets().emplace(name, read).second; }

std::vector<std::string> targetNames() {
    std::vector<std::string> names;
    for (const auto& [name, read] : targets()) names.push_back(name);
    return names;
}

void readAs(std::string_view target, std::string_view bytes) {
    try {
        targets().find(target)->second(bytes);
    } catch (const Error& error) {
        if (oneLine(error.what()) != error.what()) std::abort(); // messages are one line
    }
}

} // namespace kvscope::fuzz
