// Writes HDF5. Types are little-endian on every machine, because a capture's hash covers little-endian bytes.
#include "core/capture/h5_writer.h"

#include "core/base/error.h"
#include "core/capture/h5_handle.h"

#include <map>
#include <string_view>
#include <system_error>

namespace kvscope::h5 {

namespace {

/// IEEE half, which HDF5 1.10 does not predefine.
Handle makeHalfType() {
    Handle type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    return type;
}

/// Stores no times, so that the same content gives the same bytes.
Handle creationList(hid_t kind) {
    Handle list(H5Pcreate(kind), H5Pclose);
    H5Pset_obj_track_times(list, false);
    return list;
}

/// The errno of the system call that caused the library's last error, or 0. The library states it only in its texts.
int systemError() {
    int error = 0;
    const auto look = [](unsigned, const H5E_error2_t* entry, void* found) -> herr_t {
        constexpr std::string_view kBefore = "errno = ";
        const std::string_view text = entry->desc ? entry->desc : "";
        if (const std::size_t at = text.find(kBefore); at != std::string_view::npos)
            *static_cast<int*>(found) = std::atoi(text.data() + at + kBefore.size());
        return 0;
    };
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, look, &error);
    return error;
}

} // namespace

struct Writer::State {
    std::string path; ///< as messages name it
    hid_t id = -1;
    std::map<std::string, ElementType> types;

    ~State() {
        const Guard guard;
        if (id >= 0) H5Fclose(id);
    }
    [[noreturn]] void fail(const std::string& place) const {
        const int error = systemError();
        throw Error({"the file cannot be written" + (error != 0 ? ": " + std::generic_category().message(error) : ""),
                     place,
                     error == ENOSPC ? "Free some space or choose another place"
                                     : "Check that the disk is not full and the folder may be written",
                     path});
    }
    void require(bool done, const std::string& place) const {
        if (!done) fail(place);
    }
    Handle typeOf(ElementType type) const {
        switch (type) {
        case ElementType::Uint8: return {H5Tcopy(H5T_STD_U8LE), H5Tclose};
        case ElementType::Uint16: return {H5Tcopy(H5T_STD_U16LE), H5Tclose};
        case ElementType::Int32: return {H5Tcopy(H5T_STD_I32LE), H5Tclose};
        case ElementType::Int64: return {H5Tcopy(H5T_STD_I64LE), H5Tclose};
        case ElementType::Float16: return makeHalfType();
        case ElementType::Float32: return {H5Tcopy(H5T_IEEE_F32LE), H5Tclose};
        case ElementType::Float64: return {H5Tcopy(H5T_IEEE_F64LE), H5Tclose};
        }
        return {-1, H5Tclose};
    }
    void ensureGroup(const std::string& name) const {
        if (name == "/" || name.empty() || H5Lexists(id, name.c_str(), H5P_DEFAULT) > 0) return;
        if (const std::size_t slash = name.rfind('/'); slash != std::string::npos && slash > 0)
            ensureGroup(name.substr(0, slash));
        const Handle plist = creationList(H5P_GROUP_CREATE);
        Handle group(H5Gcreate2(id, name.c_str(), H5P_DEFAULT, plist, H5P_DEFAULT), H5Gclose);
        require(group && group.close(), name);
    }
    void attribute(const std::string& object, const std::string& name, hid_t type, hid_t space,
                   const void* data) const {
        ensureGroup(object);
        Handle made(
            H5Acreate_by_name(id, object.c_str(), name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
            H5Aclose);
        require(made && H5Awrite(made, type, data) >= 0 && made.close(), object + "@" + name);
    }
};

Writer::Writer(const std::string& path, const std::string& shownPath, Mode mode) : m_state(std::make_unique<State>()) {
    const Guard guard;
    m_state->path = shownPath;
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_file_locking(access, false, true); // as the reader does: a process must not mix the two
    // Headers of HDF5 1.8 and later have checksums: the library refuses a damaged one instead of reading wrong values.
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
    const Handle creation = creationList(H5P_FILE_CREATE);
    m_state->id = mode == Mode::Create ? H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access)
                                       : H5Fopen(path.c_str(), H5F_ACC_RDWR, access);
    if (m_state->id < 0) m_state->fail({});
}

Writer::Writer(const AtomicFile& target, Mode mode) : Writer(target.temporaryPath(), target.path(), mode) {}

Writer::Writer(const std::string& path, Mode mode) : Writer(path, path, mode) {}

Writer::~Writer() = default;

void Writer::close() {
    const Guard guard;
    m_state->require(H5Fflush(m_state->id, H5F_SCOPE_GLOBAL) >= 0, {});
    m_state->require(H5Fclose(std::exchange(m_state->id, -1)) >= 0, {});
}

void Writer::createDataset(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
                           const Storage& storage) {
    const Guard guard;
    if (const std::size_t slash = name.rfind('/'); slash != std::string::npos)
        m_state->ensureGroup(name.substr(0, slash));
    const std::vector<hsize_t> sizes(shape.begin(), shape.end());
    const Handle space(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), H5Sclose);
    const Handle plist = creationList(H5P_DATASET_CREATE);
    if (!storage.chunk.empty()) {
        const std::vector<hsize_t> chunk(storage.chunk.begin(), storage.chunk.end());
        H5Pset_chunk(plist, static_cast<int>(chunk.size()), chunk.data());
        if (storage.deflateLevel > 0) {
            H5Pset_shuffle(plist);
            H5Pset_deflate(plist, static_cast<unsigned>(storage.deflateLevel));
        }
    }
    if (storage.reserveSpace) {
        H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY);
        H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER);
    }
    const Handle fileType = m_state->typeOf(type);
    Handle set(H5Dcreate2(m_state->id, name.c_str(), fileType, space, H5P_DEFAULT, plist, H5P_DEFAULT), H5Dclose);
    m_state->require(set && set.close(), name);
    m_state->types[name] = type;
}

void Writer::write(const std::string& name, const void* data, std::size_t bytes, const Block* block) {
    const Guard guard;
    Handle set(H5Dopen2(m_state->id, name.c_str(), H5P_DEFAULT), H5Dclose);
    const Handle type = m_state->typeOf(m_state->types.at(name));
    const Handle fileSpace(H5Dget_space(set), H5Sclose);
    if (block) {
        const std::vector<hsize_t> begin(block->begin.begin(), block->begin.end()),
            size(block->size.begin(), block->size.end());
        H5Sselect_hyperslab(fileSpace, H5S_SELECT_SET, begin.data(), nullptr, size.data(), nullptr);
    }
    const auto count = static_cast<hsize_t>(H5Sget_select_npoints(fileSpace));
    if (count * H5Tget_size(type) != bytes) m_state->fail(name);
    const Handle memorySpace(H5Screate_simple(1, &count, nullptr), H5Sclose);
    m_state->require(count == 0 || H5Dwrite(set, type, memorySpace, fileSpace, H5P_DEFAULT, data) >= 0, name);
    m_state->require(set.close(), name); // closing a data set writes its remaining chunks
}

void Writer::attribute(const std::string& object, const std::string& name, const std::string& value) {
    const Guard guard;
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const char* text = value.c_str();
    m_state->attribute(object, name, type, space, &text);
}

void Writer::attribute(const std::string& object, const std::string& name, std::int64_t value) {
    const Guard guard;
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    m_state->attribute(object, name, H5T_STD_I64LE, space, &value);
}

void Writer::attribute(const std::string& object, const std::string& name, double value) {
    const Guard guard;
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    m_state->attribute(object, name, H5T_IEEE_F64LE, space, &value);
}

void Writer::attribute(const std::string& object, const std::string& name, std::span<const std::int32_t> values) {
    const Guard guard;
    const hsize_t count = values.size();
    const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    m_state->attribute(object, name, H5T_STD_I32LE, space, values.data());
}

} // namespace kvscope::h5
