// Files are written beside their target and renamed when they are complete. A crash, a full disk or a second reader
// therefore sees either the old file or the new one.
#include "core/base/atomic_file.h"

#include "core/base/error.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kvscope {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuseWrite(const std::string& path, int error, const std::string& remedy = "Choose another place") {
    throw Error({"cannot write the file: " + std::generic_category().message(error), "", remedy, path});
}

/// A file descriptor that closes itself.
class Descriptor {
public:
    explicit Descriptor(int descriptor) : m_descriptor(descriptor) {}
    ~Descriptor() {
        if (m_descriptor >= 0) ::close(m_descriptor);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return m_descriptor; }
    /// Some file systems report a full disk only here.
    int close() { return ::close(std::exchange(m_descriptor, -1)); }

private:
    int m_descriptor;
};

// Beside the target, or the rename would cross file systems; hidden; unique in this process and among processes.
std::string temporaryBeside(const fs::path& target) {
    static std::atomic<unsigned> counter{0};
    std::string name = ".";
    name += target.stem().string();
    name += ".part-";
    name += std::to_string(::getpid());
    name += "-";
    name += std::to_string(counter++);
    name += target.extension().string();
    return (target.parent_path() / name).string();
}

/// Removes the temporary files of processes that were killed: no process holds their locks any more.
void removeLeftovers(const fs::path& folder) {
    // Names as temporaryBeside makes them. Never destroyed: a thread may still write while the process exits.
    static const auto& kTemporary = *new std::regex(R"(\..*\.part-[0-9]+-[0-9]+(\..*)?)");
    std::error_code failed;
    for (fs::directory_iterator at(folder.empty() ? fs::path(".") : folder, failed), end; !failed && at != end;
         at.increment(failed)) {
        if (!std::regex_match(at->path().filename().string(), kTemporary)) continue;
        const Descriptor left(::open(at->path().c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
        struct stat what {};
        if (left.get() >= 0 && ::fstat(left.get(), &what) == 0 && S_ISREG(what.st_mode) &&
            ::flock(left.get(), LOCK_EX | LOCK_NB) == 0)
            ::unlink(at->path().c_str());
    }
}

void writeAll(int descriptor, std::string_view content, const std::string& path) {
    while (!content.empty()) {
        const ssize_t written = ::write(descriptor, content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) refuseWrite(path, errno, errno == ENOSPC ? "Free some space" : "Choose another place");
        content.remove_prefix(static_cast<std::size_t>(written));
    }
}

bool isDeviceOrPipe(const std::string& path) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path, ignored);
    return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

/// The end of a chain of links, whether or not it exists.
std::string followed(const std::string& path) {
    constexpr int kMostLinks = 40; // as in the kernel
    std::error_code failed;
    fs::path at = path;
    for (int links = 0; fs::is_symlink(at, failed); ++links) {
        const fs::path next = fs::read_symlink(at, failed);
        if (failed || links == kMostLinks) refuseWrite(path, failed ? failed.value() : ELOOP);
        at = next.is_absolute() ? next : at.parent_path() / next;
    }
    return at.string();
}

} // namespace

AtomicFile::AtomicFile(const std::string& path) : m_path(path) {
    std::error_code failed;
    if (path.empty()) throw Error({"no file name was given", "", "Give the file to write"});
    if (fs::is_directory(path, failed)) throw Error({"this is a folder, not a file", "", "Add a file name", path});
    if (isDeviceOrPipe(path)) // a rename would replace it by a file
        throw Error({"this is a device or a pipe, and what is written here needs a file", "",
                     "Choose the name of a file", path});
    m_target = followed(path);
    removeLeftovers(fs::path(m_target).parent_path());
    create();
    struct stat existing {};
    if (::stat(m_target.c_str(), &existing) == 0 && ::fchmod(m_descriptor, existing.st_mode & 0777) != 0) {
        const int error = errno;
        ::close(m_descriptor);
        ::unlink(m_temporary.c_str());
        refuseWrite(path, error);
    }
}

void AtomicFile::create() {
    for (;;) {
        m_temporary = temporaryBeside(m_target);
        m_removal.emplace(m_temporary);
        m_descriptor = ::open(m_temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (m_descriptor < 0) {
            const int error = errno;
            m_temporary.clear();
            refuseWrite(m_path, error, error == ENOENT ? "Create the folder first" : "Choose another place");
        }
        static_cast<void>(::flock(m_descriptor, LOCK_EX)); // some file systems have no locks: nothing is removed there
        struct stat now {};
        if (::fstat(m_descriptor, &now) != 0 || now.st_nlink > 0) return;
        ::close(m_descriptor); // another process took it for a leftover before it was locked
    }
}

AtomicFile::~AtomicFile() {
    if (m_descriptor >= 0) ::close(m_descriptor);
    if (m_temporary.empty()) return;
    // HDF5 keeps a file open that it could not flush, so unlinking alone would not free its disk space.
    [[maybe_unused]] const int emptied = ::truncate(m_temporary.c_str(), 0);
    ::unlink(m_temporary.c_str());
}

void AtomicFile::commit() {
    if (::fsync(m_descriptor) != 0) refuseWrite(m_path, errno);
    if (std::rename(m_temporary.c_str(), m_target.c_str()) != 0) refuseWrite(m_path, errno);
    m_temporary.clear();
    // The rename survives a power cut only after the folder is flushed. Not every file system can do this: no Error.
    const fs::path folder = fs::path(m_target).parent_path();
    const Descriptor directory(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() >= 0) static_cast<void>(::fsync(directory.get()));
}

void writeFileAtomically(const std::string& path, std::string_view content) {
    if (isDeviceOrPipe(path)) {
        const Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        if (device.get() < 0) refuseWrite(path, errno);
        writeAll(device.get(), content, path);
        return;
    }
    AtomicFile file(path);
    Descriptor text(::open(file.temporaryPath().c_str(), O_WRONLY | O_CLOEXEC));
    if (text.get() < 0) refuseWrite(path, errno);
    writeAll(text.get(), content, path);
    if (text.close() != 0) refuseWrite(path, errno);
    file.commit();
}

void checkCanWrite(const std::string& path) {
    if (!isDeviceOrPipe(path)) const AtomicFile probe(path); // removed unless committed
}

void checkIsFile(const std::string& path) {
    struct stat what {};
    if (::stat(path.c_str(), &what) != 0 || S_ISREG(what.st_mode)) return;
    const bool folder = S_ISDIR(what.st_mode);
    const char* kind = folder                   ? "this is a folder"
                       : S_ISFIFO(what.st_mode) ? "this is a pipe"
                       : S_ISSOCK(what.st_mode) ? "this is a socket"
                                                : "this is a device";
    throw Error({std::string(kind) + ", not a file", "",
                 folder ? "Name a file in it" : "Save what it gives as a file, and name that", path});
}

std::string readWholeFile(const std::string& path, std::size_t maxBytes) {
    checkIsFile(path);
    const auto refuse = [&](int error) {
        throw Error({"cannot read the file: " + std::generic_category().message(error), "", "", path});
    };
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); // does not wait for a pipe
    if (file.get() < 0) refuse(errno);
    std::string content;
    std::string block(std::size_t{1} << 16, '\0');
    for (;;) {
        const ssize_t got = ::read(file.get(), block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse(errno);
        if (got == 0) return content;
        content.append(block, 0, static_cast<std::size_t>(got));
        if (content.size() > maxBytes)
            throw Error({"the file is larger than " + std::to_string(maxBytes) + " bytes", "", "", path});
    }
}

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
            throw Error({"this file is read by the work whose result would replace it", place,
                         "Choose another name for the output", path});
    }
}

} // namespace kvscope
