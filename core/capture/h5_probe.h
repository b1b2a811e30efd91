#pragma once

#include "core/capture/h5_handle.h"

#include <string>

namespace kvscope::h5 {

/// HDF5 1.10 crashes on some damaged files and loops endlessly on others. So a child process reads the file's metadata
/// first, as the reader will: groups, the headers and chunk indexes of all data sets, all attributes, small data sets.
/// The file is refused (Error with the path) if the child dies, needs more than 1 GiB or spends more than 2 s on one
/// object, if a group or the attributes of an object cannot be listed, if an object that a group lists cannot be found,
/// and if the system starts no child. Other errors that the library reports are left to the reader. The verdict is
/// kept as long as the file keeps its inode, size and time, so a process pays for the double reading once per file.
/// `access`: the reader's file access list.
///
/// The child is forked and executes no program: Python modules and test programs have none to execute, and loading this
/// program's libraries would take longer than the reading. Forking is safe among threads: the caller holds the mutex
/// that serialises HDF5 during the fork (but not while it waits), glibc keeps its heap usable in the child, and the
/// child calls only HDF5 and the kernel. It cannot write files, has no other file open, and dies with its parent. Only
/// the heap of GCC's address sanitizer is not kept usable: a lock that another thread held stays locked, and the child
/// waits for it without end. With that sanitizer, a child that is silent or out of time is followed by others before
/// the disk or the file is blamed.
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

    /// Waits for the child; throws Error. False: the child was stuck, and one of `childrenLeft` others may not be. The
    /// caller holds no Guard.
    bool finish(int childrenLeft);

private:
    std::string await(); ///< the sentence of the Error; empty: the child has read everything

    std::string m_path, m_key;
    bool m_hasVerdict = false;      ///< the child ended by itself or by its limits
    bool m_isStuck = false;         ///< another child may get further
    int m_child = -1, m_pulse = -1; ///< process, and the pipe on which it reports each object
};

} // namespace kvscope::h5
