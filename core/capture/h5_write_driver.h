#pragma once

#include <hdf5.h>

namespace kvscope::h5 {

/// The first thing that went wrong while a file was written.
struct WriteFailure {
    int error = 0; ///< errno; 0: nothing
};

/// Makes a file opened with this access list keep failed writes from the library: they are noted in `failure`, which
/// must outlive the open file, and count as done. HDF5 1.10 cannot close a file that it could not flush: the file stays
/// open, and the library takes the process down when it cleans up at exit. So whoever writes asks `failure` after each
/// step.
void rememberWriteFailures(hid_t accessList, WriteFailure& failure);

} // namespace kvscope::h5
