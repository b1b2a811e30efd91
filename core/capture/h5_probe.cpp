// Reads the metadata of an HDF5 file in a process of its own, which a damaged file may crash.
#include "core/capture/h5_probe.h"

#include "core/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvscope::h5 {

namespace {

constexpr rlim_t kMemory = rlim_t{1} << 30;                // bytes, beyond those in use at the fork
constexpr int kSecondsPerObject = 2, kSecondsPerFile = 60; // of processor time
constexpr int kMostSilence = 30'000 / Probe::kChildren;    // milliseconds without a new object
constexpr hsize_t kMostBytes = 1 << 24;                    // of an attribute or data set that is read as a whole
constexpr int kMostDepth = 64;

constexpr int kNoMemory = 3, kNoList = 4; // exit statuses

/// Ends the child where the library ran out of memory; other errors are left to the reader.
herr_t onError(hid_t stack, void*) {
    const auto one = [](unsigned, const H5E_error2_t* error, void*) -> herr_t {
        if (error->maj_num == H5E_RESOURCE && error->min_num == H5E_NOSPACE) ::_exit(kNoMemory);
        return 0;
    };
    return H5Ewalk2(stack, H5E_WALK_DOWNWARD, one, nullptr);
}

/// For a group or attributes that cannot be listed: the reader would find some of the entries by name, which were never
/// tried here, and would take the others for missing. The library does not call `onError` in this case.
[[noreturn]] void endUnlisted() {
    onError(H5E_DEFAULT, nullptr);
    ::_exit(kNoList);
}

/// Walks all reachable objects, each once, with the reader's own calls. A call that fails here fails for the reader,
/// too, which reports it better. Only listing a group and finding its objects must succeed, or the reader would open
/// objects by name that were never tried here.
class MetadataWalk {
public:
    explicit MetadataWalk(int pulse) : m_pulse(pulse) {}

    void file(const std::string& path, hid_t access) {
        begin();
        Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
        if (!file) return;
        attributes(file);
        group(file, "/", 0);
        begin(); // some files crash the library when closing flushes them
        file.close();
    }

private:
    /// Begins another object: tells the parent and restarts the timer.
    void begin() const {
        const itimerval limit{{0, 0}, {kSecondsPerObject, 0}};
        ::setitimer(ITIMER_PROF, &limit, nullptr); // SIGPROF ends the process
        static_cast<void>(!::write(m_pulse, "", 1));
    }

    void group(hid_t place, const std::string& name, int depth) {
        const Handle group(H5Gopen2(place, name.c_str(), H5P_DEFAULT), H5Gclose);
        const std::optional<std::vector<std::string>> links = group ? linksOf(group) : std::nullopt;
        if (!links || depth > kMostDepth) endUnlisted();
        for (const char* missing : {"\1", "\xff"}) H5Lexists(group, missing, H5P_DEFAULT); // before and after all names
        for (const std::string& link : *links) {
            begin();
            object(group, link, depth + 1);
        }
    }

    void object(hid_t group, const std::string& name, int depth) {
        H5L_info_t link;
        if (H5Lexists(group, name.c_str(), H5P_DEFAULT) <= 0 ||
            H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0)
            endUnlisted();
        const std::optional<H5O_info_t> found = objectAt(group, name);
        if (link.type != H5L_TYPE_HARD) return; // a hard link leads to the same object, if it exists
        if (!found) endUnlisted();
        if (!m_seen.insert(found->addr).second) return;
        if (const Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose); object) attributes(object);
        if (found->type == H5O_TYPE_GROUP) this->group(group, name, depth);
        if (found->type == H5O_TYPE_DATASET) dataset(group, name);
    }

    void attributes(hid_t object) const {
        const auto one = [](hid_t owner, const char* name, const H5A_info_t*, void* self) -> herr_t {
            static_cast<const MetadataWalk*>(self)->attribute(owner, name);
            return 0;
        };
        if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, one, const_cast<MetadataWalk*>(this)) < 0)
            endUnlisted();
    }

    void attribute(hid_t owner, const char* name) const {
        begin();
        const Handle attribute(H5Aopen(owner, name, H5P_DEFAULT), H5Aclose);
        if (!attribute) return;
        textOf(attribute);
        numbersOf<std::int32_t>(attribute);
        numbersOf<std::int64_t>(attribute);
        numbersOf<double>(attribute);
    }

    /// Tensors, which have three axes, are read later in blocks; here only the index of their chunks is read.
    void dataset(hid_t group, const std::string& name) const {
        const Handle set(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose);
        if (!set) return;
        const Handle space(H5Dget_space(set), H5Sclose), type(H5Dget_type(set), H5Tclose);
        const Handle plist(H5Dget_create_plist(set), H5Pclose);
        if (!space || !type || !plist) return;
        hsize_t chunks = 0;
        if (H5Pget_layout(plist) == H5D_CHUNKED) H5Dget_num_chunks(set, space, &chunks);
        H5Dget_storage_size(set);
        std::vector<char> values(std::max(H5Tget_size(type), sizeof(double)));
        for (const hid_t number :
             {H5T_NATIVE_UINT8, H5T_NATIVE_INT32, H5T_NATIVE_INT64, H5T_NATIVE_FLOAT, H5T_NATIVE_DOUBLE})
            H5Tconvert(type, number, 1, values.data(), nullptr, H5P_DEFAULT);
        values = room(type, space);
        if (values.empty() || H5Sget_simple_extent_ndims(space) > 2) return;
        if (isNumber(type)) H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
        for (const hid_t number : {H5T_NATIVE_INT64, H5T_NATIVE_DOUBLE})
            H5Dread(set, number, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    }

    static bool isNumber(hid_t type) { return H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_FLOAT; }

    /// Memory for all values, also as numbers of eight bytes; empty where there are none or too many.
    static std::vector<char> room(hid_t type, hid_t space) {
        const hssize_t count = H5Sget_simple_extent_npoints(space);
        const hsize_t bytes = std::max<hsize_t>(H5Tget_size(type), sizeof(double));
        if (count <= 0 || static_cast<hsize_t>(count) > kMostBytes / bytes) return {};
        return std::vector<char>(static_cast<hsize_t>(count) * bytes);
    }

    int m_pulse;
    std::set<haddr_t> m_seen;
};

rlim_t addressSpace() {
    char text[64] = {};
    const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0 || ::read(file, text, sizeof text - 1) <= 0) return 0;
    ::close(file);
    return static_cast<rlim_t>(std::strtoull(text, nullptr, 10)) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

void limit(__rlimit_resource what, rlim_t most) {
    rlimit now{};
    ::getrlimit(what, &now);
    now.rlim_cur = std::min(most, now.rlim_max);
    ::setrlimit(what, &now);
}

/// What the child does. It can reach nothing of the parent any more: no file, no terminal, no signal handler.
[[noreturn]] void liveAndDie(const std::string& path, hid_t access, int pulse) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_DUMPABLE, 0); // a crash is expected: no core dump
    for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
    if (pulse > 3) ::close_range(3, static_cast<unsigned>(pulse) - 1, 0);
    ::close_range(static_cast<unsigned>(pulse) + 1, ~0U, 0);
    limit(RLIMIT_AS, addressSpace() + kMemory);
    limit(RLIMIT_CPU, kSecondsPerFile);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CORE, 0);
    H5Eset_auto2(H5E_DEFAULT, onError, nullptr);
    MetadataWalk(pulse).file(path, access);
    ::_exit(0);
}

std::mutex g_verdictMutex;
std::map<std::string, std::string> g_verdicts; ///< by inode, size and time: Error sentence; empty: no error

std::string keyOf(const std::string& path) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) return {};
    return fmt::format("{} {} {} {}.{}", file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                       file.st_mtim.tv_nsec);
}

} // namespace

Probe::Probe(std::string path, hid_t access) : m_path(std::move(path)), m_key(keyOf(m_path)) {
    {
        const std::lock_guard lock(g_verdictMutex);
        if (m_key.empty() || g_verdicts.contains(m_key)) return;
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    m_child = ::fork();
    if (m_child == 0) liveAndDie(m_path, access, ends[1]);
    ::close(ends[1]);
    m_pulse = ends[0];
}

Probe::~Probe() {
    if (m_pulse >= 0) ::close(m_pulse);
    if (m_child <= 0) return;
    ::kill(m_child, SIGKILL);
    ::waitpid(m_child, nullptr, WNOHANG); // does not wait: a child blocked on the disk dies later
}

std::string Probe::await() {
    pollfd waiting{m_pulse, POLLIN, 0};
    for (;;) {
        const int ready = ::poll(&waiting, 1, kMostSilence);
        if (ready < 0 && errno == EINTR) continue;
        m_isStuck = ready <= 0;
        if (m_isStuck)
            return "the file could not be checked: the process that reads its metadata gets no answer from the disk, "
                   "or no processor time";
        char pulses[256];
        if (::read(m_pulse, pulses, sizeof pulses) <= 0) break;
    }
    int status = 0;
    while (::waitpid(m_child, &status, 0) < 0 && errno == EINTR) {
    }
    m_child = -1;
    m_hasVerdict = !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL; // the limits above end it by other signals
    if (!m_hasVerdict) return "the file could not be checked: the system ended the process that reads its metadata";
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory)
        return "the file is damaged: the HDF5 library needs more than 1 GiB to read its metadata";
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNoList)
        return "the file is damaged: the HDF5 library cannot list what it holds";
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0; // 0: a sanitizer ended it
    if (signal == SIGPROF || signal == SIGXCPU) {
        m_isStuck = kChildren > 1; // perhaps it only waited for the sanitizer's lock
        return "the file is damaged: the HDF5 library comes to no end when it reads it";
    }
    return fmt::format("the file is damaged: the HDF5 library crashes when it reads it (signal {})", signal);
}

bool Probe::finish(int childrenLeft) {
    const bool asked = m_child > 0;
    std::string verdict = asked ? await() : "the file could not be checked: the system starts no process for it";
    if (m_isStuck && childrenLeft > 0) return false;
    const std::lock_guard lock(g_verdictMutex);
    if (m_hasVerdict) g_verdicts[m_key] = verdict; // otherwise the next opening probes again
    const auto known = g_verdicts.find(m_key);
    const bool isOfFile = m_hasVerdict || (!asked && known != g_verdicts.end());
    if (isOfFile) verdict = known->second;
    if (verdict.empty()) return true;
    throw Error(
        {verdict, "", isOfFile ? "Copy or capture it again" : "Close other programs or try again later", m_path});
}

} // namespace kvscope::h5
