#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::fuzz {

using Read = void (*)(std::string_view bytes);

/// True. A program has the readers whose sources are linked into it: core_targets.cpp, or session_target.cpp, which
/// needs the views.
bool addTarget(const char* name, Read read);
std::vector<std::string> targetNames();
/// Reads the bytes as the program would. An Error is as good as success; anything else goes through.
void readAs(std::string_view target, std::string_view bytes);

/// A file in memory, where the system has such a place, that is there while the object is.
class TemporaryFile {
public:
    TemporaryFile(std::string_view bytes, const std::string& extension);
    ~TemporaryFile();
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    std::string path() const { return m_path.string(); }

private:
    std::filesystem::path m_path;
};

} // namespace kvscope::fuzz
