#pragma once

#include "core/capture/h5_writer.h"

#include <QtGlobal>

#include <cstdint>
#include <string>
#include <vector>

#include <hdf5.h>

/// Changes files that the program wrote, as a careless or hostile tool would.
namespace kvscope::h5_edit {

template <class Change> void edit(const std::string& path, const Change& change) {
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_file_locking(access, false, true);
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, access);
    if (file < 0) qFatal("%s cannot be changed", path.c_str());
    change(file);
    H5Fclose(file);
    H5Pclose(access);
}

inline void removeObject(const std::string& path, const char* name) {
    edit(path, [&](hid_t file) { H5Ldelete(file, name, H5P_DEFAULT); });
}

template <class T>
void replace(const std::string& path, const char* name, const std::vector<T>& data,
             const std::vector<std::int64_t>& shape = {}) {
    removeObject(path, name);
    h5::Writer writer(path, h5::Writer::Mode::Append);
    writer.put(name, data, shape);
    writer.close();
}

/// The attribute of the object; "/" is the file's own.
template <class T> void setAttribute(const std::string& path, const char* object, const char* name, const T& value) {
    edit(path, [&](hid_t file) { H5Adelete_by_name(file, object, name, H5P_DEFAULT); });
    h5::Writer writer(path, h5::Writer::Mode::Append);
    writer.attribute(object, name, value);
    writer.close();
}

} // namespace kvscope::h5_edit
