#pragma once

#include "core/base/termination.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// A file that appears whole or not at all: writers fill `temporaryPath()`, which lies beside the target and has the
/// same extension; `commit()` flushes it to disk and renames it over the target. Without commit the destructor removes
/// it, and the target is as it was. A link is followed, so that its target is replaced and not the link; a device or a
/// pipe cannot be replaced and is refused. A signal that ends the process removes the temporary file, too;
/// what a killed process left is removed as soon as another file is written into the folder.
class AtomicFile {
public:
    /// Creates the temporary file, empty, with the permissions of the target (or the usual ones). Throws Error.
    explicit AtomicFile(const std::string& path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    const std::string& path() const { return m_path; } ///< as typed, for messages
    const std::string& temporaryPath() const { return m_temporary; }
    void commit(); ///< throws Error; the destructor then removes the temporary file

private:
    void create();
    std::string m_path, m_target, m_temporary;
    int m_descriptor = -1;                         ///< of the temporary file; its lock shows that the file is in use
    std::optional<RemovedOnTermination> m_removal; ///< of the temporary file
};

/// Writes `content` as the whole file. A device or pipe (/dev/stdout) is written directly. Throws Error, for example on
/// a full disk; no half-written file stays behind.
void writeFileAtomically(const std::string& path, std::string_view content);

/// Throws Error if writeFileAtomically could not begin, so that a path is refused before long work. Leaves no file.
void checkCanWrite(const std::string& path);

/// Throws Error where `path` is a folder, a pipe, a socket or a device, from which a reader may wait without end. Never
/// blocks itself. Accepts a path that does not exist.
void checkIsFile(const std::string& path);

/// The whole file. Throws Error for a missing or unreadable file, for one larger than `maxBytes` and for what
/// checkIsFile refuses.
std::string readWholeFile(const std::string& path, std::size_t maxBytes = std::size_t{1} << 30);

/// Throws Error when the file at `path` is one of `sources` under any name, so that an output cannot replace its input.
/// Sources that do not exist are ignored. `place`: the option that named the path.
void checkIsNoSource(const std::string& path, const std::vector<std::string>& sources, const std::string& place = {});

/// Whether both names mean one file, which need not exist yet.
bool isSameFile(const std::string& a, const std::string& b);

} // namespace kvscope
