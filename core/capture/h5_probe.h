#pragma once

#include "core/capture/h5_handle.h"

#include <string>

namespace kvscope::h5 {

/// HDF5 1.10 crashes on some damaged files and runs for ever on others. So a child process reads the file's metadata
/// first, as the reader will: groups, the headers and chunk indexes of all data sets, all attributes, small data sets.
/// Where it dies, needs more than 1 GiB, or spends more than 2 s on one object, the file is refused: throws Error with
/// the path; also where a group or the attributes of an object cannot be listed, or what a group lists cannot be found,
/// and where the system starts no child. Other errors that the library reports are left to the reader. The verdict is
/// kept for as long as the file has its inode, size and time, so a file is read twice once in a process. `access`: the
/// reader's file access list.
///
/// The child is forked and executes no program: Python modules and test programs have none, and loading this program's
/// libraries would take longer than the reading. That is safe among threads: the caller holds the mutex that serialises
/// HDF5 while this forks (never while it waits), glibc keeps its heap usable in the child, and the child calls nothing
/// but HDF5 and the kernel. It cannot write files, has no other file open, and dies with its parent. Only the heap of
/// GCC's address sanitizer is not kept usable: a lock that another thread held stays locked, and the child tries
/// for ever to take it. There a child that is silent or out of time is followed by others before disk or file is
/// blamed.
class Probe {
public:
#ifdef __SANITIZE_ADDRESS__
    static constexpr int kChildren = 10;
#else
    static constexpr int kChildren = 1;
#endif
    /// Forks unless the verdict is known. The caller holds a Guard.
    Probe(std::string path, hid_t access);
    ~Probe();
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    /// Waits; throws Error. False: the child was stuck, and the next of `childrenLeft` may not be. The caller holds no
    /// Guard.
    bool finish(int childrenLeft);

private:
    std::string await(); ///< the sentence on the file; empty: the child has read everything

    std::string m_path, m_key;
    bool m_hasVerdict = false;      ///< the child ended by itself or by its limits
    bool m_isStuck = false;         ///< the next child may come further
    int m_child = -1, m_pulse = -1; ///< process, and the pipe on which it reports each object
};

} // namespace kvscope::h5
