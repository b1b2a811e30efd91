// A virtual file driver of HDF5: reads and writes a file as the library's own POSIX driver does, but a write that fails
// is noted and reported as done. The library then always ends in a sound state, and the writer throws what was noted.
#include "core/capture/h5_write_driver.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kvscope::h5 {

namespace {

/// The library reads the first member and hands the whole back to the functions below.
struct OpenFile {
    H5FD_t common;
    int descriptor;
    haddr_t allocated; ///< end of what the library uses
    haddr_t end;       ///< of the file, failed writes included
    dev_t device;
    ino_t node;
    WriteFailure* failure;

    void note(int error) {
        if (failure->error == 0)
            failure->error = error;
    }
};

OpenFile& of(H5FD_t* file) { return *reinterpret_cast<OpenFile*>(file); }
const OpenFile& of(const H5FD_t* file) { return *reinterpret_cast<const OpenFile*>(file); }

H5FD_t* openFile(const char* name, unsigned flags, hid_t accessList, haddr_t) {
    auto* const failure = *static_cast<WriteFailure* const*>(H5Pget_driver_info(accessList));
    int mode = O_CLOEXEC | ((flags & H5F_ACC_RDWR) != 0 ? O_RDWR : O_RDONLY);
    mode |= (flags & H5F_ACC_TRUNC) != 0 ? O_TRUNC : 0;
    mode |= (flags & H5F_ACC_CREAT) != 0 ? O_CREAT : 0;
    mode |= (flags & H5F_ACC_EXCL) != 0 ? O_EXCL : 0;
    const int descriptor = ::open(name, mode, 0666);
    struct stat status {};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
        failure->error = errno;
        if (descriptor >= 0)
            ::close(descriptor);
        return nullptr;
    }
    failure->error = 0; // the library tries without making the file first
    return reinterpret_cast<H5FD_t*>(
        new OpenFile{{}, descriptor, 0, static_cast<haddr_t>(status.st_size), status.st_dev, status.st_ino, failure});
}

herr_t closeFile(H5FD_t* file) {
    if (::close(of(file).descriptor) != 0) // some file systems report a full disk only here
        of(file).note(errno);
    delete &of(file);
    return 0;
}

int compareFiles(const H5FD_t* one, const H5FD_t* other) {
    const OpenFile &a = of(one), &b = of(other);
    if (a.device != b.device)
        return a.device < b.device ? -1 : 1;
    return a.node == b.node ? 0 : a.node < b.node ? -1 : 1;
}

herr_t describe(const H5FD_t*, unsigned long* features) {
    *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

haddr_t allocatedEnd(const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; }

herr_t setAllocatedEnd(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    of(file).allocated = end;
    return 0;
}

haddr_t endOfFile(const H5FD_t* file, H5FD_mem_t) { return of(file).end; }

/// Zeros where the file ends early, as it does after a failed write.
herr_t readBlock(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, void* buffer) {
    auto* at = static_cast<char*>(buffer);
    while (size > 0) {
        const ssize_t got = ::pread(of(file).descriptor, at, size, static_cast<off_t>(address));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            of(file).note(errno);
        if (got <= 0)
            break;
        at += got;
        address += static_cast<haddr_t>(got);
        size -= static_cast<std::size_t>(got);
    }
    std::memset(at, 0, size);
    return 0;
}

herr_t writeBlock(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t size, const void* buffer) {
    OpenFile& target = of(file);
    target.end = std::max<haddr_t>(target.end, address + size);
    const auto* at = static_cast<const char*>(buffer);
    while (size > 0 && target.failure->error == 0) {
        const ssize_t written = ::pwrite(target.descriptor, at, size, static_cast<off_t>(address));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            target.note(errno);
            break;
        }
        at += written;
        address += static_cast<haddr_t>(written);
        size -= static_cast<std::size_t>(written);
    }
    return 0;
}

herr_t truncateFile(H5FD_t* file, hid_t, hbool_t) {
    OpenFile& target = of(file);
    if (target.end != target.allocated && target.failure->error == 0 &&
        ::ftruncate(target.descriptor, static_cast<off_t>(target.allocated)) != 0)
        target.note(errno);
    target.end = target.allocated;
    return 0;
}

H5FD_class_t makeDriver() {
    H5FD_class_t driver{};
    driver.name = "kvscope";
    driver.maxaddr = static_cast<haddr_t>(std::numeric_limits<off_t>::max());
    driver.fc_degree = H5F_CLOSE_WEAK;
    driver.fapl_size = sizeof(WriteFailure*);
    driver.open = openFile;
    driver.close = closeFile;
    driver.cmp = compareFiles;
    driver.query = describe;
    driver.get_eoa = allocatedEnd;
    driver.set_eoa = setAllocatedEnd;
    driver.get_eof = endOfFile;
    driver.read = readBlock;
    driver.write = writeBlock;
    driver.truncate = truncateFile;
    constexpr H5FD_mem_t kFreeLists[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(kFreeLists), std::end(kFreeLists), std::begin(driver.fl_map));
    return driver;
}

} // namespace

void rememberWriteFailures(hid_t accessList, WriteFailure& failure) {
    static const H5FD_class_t driver = makeDriver();
    static const hid_t id = H5FDregister(&driver);
    const WriteFailure* const noted = &failure;
    H5Pset_driver(accessList, id, &noted);
}

} // namespace kvscope::h5
