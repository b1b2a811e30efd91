// The only code that calls HDF5. Every handle closes itself, every failed call becomes an Error with file and data set,
// and features by which an untrusted file could reach outside itself (links, filters) are refused.
#include "core/capture/h5.h"

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/h5_handle.h"
#include "core/capture/h5_probe.h"

#include <cerrno>
#include <functional>
#include <map>
#include <numeric>
#include <type_traits>

#include <unistd.h>

namespace kvscope::h5 {

namespace {

std::mutex& libraryMutex() {
    static std::mutex mutex;
    return mutex;
}

constexpr int kMaxRank = 8;
constexpr hssize_t kMostValues = 1 << 20;                    // of an attribute
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 36; // of a data set

std::int64_t countOf(const std::vector<std::int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// HDF5 shares cached metadata of an open file with later openings of it, even when the file has been rewritten, but
/// not across file drivers: alternating between two drivers makes a reopened capture read the disk again.
bool turnOfBuffered(const std::string& path) {
    static std::map<std::string, bool> buffered;
    bool& next = buffered[path];
    return std::exchange(next, !next);
}

Handle accessList(bool buffered) {
    Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5Pset_file_locking(access, false, true); // a writer in another process must not block reading
    if (buffered) H5Pset_fapl_stdio(access);
    return access;
}

/// Throws Error unless a child process can read all metadata of the file first.
void tryMetadata(const std::string& path, bool buffered) {
    const auto start = [&] {
        const Guard guard;
        return Probe(path, accessList(buffered));
    };
    for (int left = Probe::kChildren - 1; !start().finish(left); --left) {
    }
}

std::vector<std::int64_t> shapeOf(hid_t set, const File& file, const std::string& name) {
    const Handle space(H5Dget_space(set), H5Sclose);
    const int rank = space ? H5Sget_simple_extent_ndims(space) : -1;
    if (rank < 0 || rank > kMaxRank) throw Error({"the shape cannot be read", name, "Repair the file", file.path()});
    hsize_t sizes[kMaxRank] = {};
    H5Sget_simple_extent_dims(space, sizes, nullptr);
    std::vector<std::int64_t> shape;
    std::int64_t product = 1;
    for (int axis = 0; axis < rank; ++axis) {
        shape.push_back(static_cast<std::int64_t>(sizes[axis]));
        if (sizes[axis] > 0 && __builtin_mul_overflow(product, shape.back(), &product)) product = -1;
        if (shape.back() < 0 || product < 0 || product > kMostNumbers)
            throw Error({"the shape is none that a file can hold", name, "Repair the file", file.path()});
    }
    return shape;
}

/// Refuses a data set that was declared and never written: it takes no space in the file but its full size in memory.
void checkIsStored(hid_t set, std::int64_t count, const File& file, const std::string& name) {
    constexpr double kFree = 1 << 24, kMostDeflated = 1100; // bytes; deflate expands one to 1032 at most
    const Handle type(H5Dget_type(set), H5Tclose);
    const double declared = static_cast<double>(count) * static_cast<double>(H5Tget_size(type));
    if (declared > kFree + kMostDeflated * static_cast<double>(H5Dget_storage_size(set)))
        throw Error(
            {"the data set declares more numbers than the file holds", name, "Write the file again", file.path()});
}

/// Reads a block, or everything, as the given memory type.
void readInto(hid_t set, hid_t memoryType, const Block* block, void* out, const File& file, const std::string& name) {
    const Handle fileSpace(H5Dget_space(set), H5Sclose);
    herr_t status = -1;
    if (!block) {
        status = H5Dread(set, memoryType, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
    } else {
        const std::vector<hsize_t> begin(block->begin.begin(), block->begin.end());
        const std::vector<hsize_t> size(block->size.begin(), block->size.end());
        const Handle memorySpace(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), H5Sclose);
        if (H5Sselect_hyperslab(fileSpace, H5S_SELECT_SET, begin.data(), nullptr, size.data(), nullptr) >= 0)
            status = H5Dread(set, memoryType, memorySpace, fileSpace, H5P_DEFAULT, out);
    }
    if (status < 0)
        throw Error({"the data cannot be read; the file may be truncated or damaged", name, "Copy or capture it again",
                     file.path()});
}

template <class T> hid_t memoryType() {
    return std::is_same_v<T, std::int32_t>   ? H5T_NATIVE_INT32
           : std::is_same_v<T, std::int64_t> ? H5T_NATIVE_INT64
           : std::is_same_v<T, float>        ? H5T_NATIVE_FLOAT
           : std::is_same_v<T, double>       ? H5T_NATIVE_DOUBLE
                                             : H5T_NATIVE_UINT8;
}

/// The attribute, or an invalid handle. Opens the owner in the same way as the child process.
Handle openAttribute(hid_t file, const std::string& object, const std::string& name) {
    const Handle owner(H5Oopen(file, object.c_str(), H5P_DEFAULT), H5Oclose);
    if (!owner || H5Aexists(owner, name.c_str()) <= 0) return {-1, H5Aclose};
    return {H5Aopen(owner, name.c_str(), H5P_DEFAULT), H5Aclose};
}

/// Nothing where the attribute is missing or cannot be read.
template <class T> std::vector<T> attributeValues(hid_t file, const std::string& object, const std::string& name) {
    const Guard guard;
    const Handle attribute = openAttribute(file, object, name);
    return attribute ? numbersOf<T>(attribute) : std::vector<T>();
}

template <class T> std::optional<T> single(const std::vector<T>& values) {
    return values.size() == 1 ? std::optional(values[0]) : std::nullopt;
}

} // namespace

Guard::Guard() : m_lock(libraryMutex()) {
    static const bool prepared = [] {
        H5dont_atexit();          // at exit the library crashes over a file that it could not flush to a full disk
        H5PLset_loading_state(0); // no filter plug-ins from the environment
        H5Lunregister(H5L_TYPE_EXTERNAL); // so that no path leads out of the file
        return true;
    }();
    // A thread-safe library has an error stack with its own printer for each thread.
    thread_local const bool silenced = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
    (void)silenced, (void)prepared;
}

struct File::State {
    std::string path;
    hid_t id = -1;
    ~State() {
        const Guard guard;
        if (id >= 0) H5Fclose(id);
    }
    [[noreturn]] void fail(const std::string& what, const std::string& place, const std::string& remedy) const {
        throw Error({what, place, remedy, path});
    }
    Handle openDataset(const std::string& name) const {
        refuseForeignLinks(name);
        Handle set(H5Dopen2(id, name.c_str(), H5P_DEFAULT), H5Dclose);
        if (!set) fail("a data set is missing", name, "Capture the prompt again or repair the file");
        const Handle plist(H5Dget_create_plist(set), H5Pclose);
        if (plist && H5Pget_external_count(plist) > 0)
            fail("the data set is stored outside the file", name, "Copy it into the capture");
        return set;
    }
    /// Walks the path link by link: soft and hard links stay inside the file, external ones do not.
    void refuseForeignLinks(const std::string& name) const {
        for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
            const std::string part = name.substr(0, end);
            H5L_info_t link;
            if (!part.empty() && part != "/" && H5Lget_info(id, part.c_str(), &link, H5P_DEFAULT) >= 0 &&
                link.type == H5L_TYPE_EXTERNAL)
                fail("the file links to another file", part, "Copy the data into the capture");
            if (end == std::string::npos) return;
        }
    }
};

std::int64_t DatasetInfo::count() const { return countOf(shape); }

File::File(std::unique_ptr<State> state) : m_state(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

const std::string& File::path() const { return m_state->path; }

File File::openForReading(const std::string& path) {
    auto state = std::make_unique<State>(); // declared before the guard: its destructor takes the mutex
    state->path = path;
    checkIsFile(path);
    if (::access(path.c_str(), R_OK) != 0) {
        if (errno == ENOENT) state->fail("there is no such file", {}, "Check the name");
        state->fail("the file may not be read", {}, "Ask for the right to read it");
    }
    bool buffered = false;
    {
        const Guard guard;
        if (H5Fis_hdf5(path.c_str()) == 0)
            state->fail("this is not an HDF5 file", {},
                        "Open a capture written by kvscope-capture, or convert it first");
        buffered = turnOfBuffered(path);
    }
    tryMetadata(path, buffered);
    const Guard guard;
    const Handle access = accessList(buffered);
    state->id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
    if (state->id < 0)
        state->fail("the file cannot be read as HDF5; it may be truncated or still being written", {},
                    "Copy or capture it again");
    return File(std::move(state));
}

bool File::exists(const std::string& name) const {
    const Guard guard;
    for (std::size_t end = name.find('/', 1);; end = name.find('/', end + 1)) {
        if (H5Lexists(m_state->id, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
        if (end == std::string::npos) return true;
    }
}

bool File::isGroup(const std::string& name) const {
    const Guard guard;
    const std::optional<H5O_info_t> object = objectAt(m_state->id, name);
    return object && object->type == H5O_TYPE_GROUP;
}

std::vector<std::string> File::children(const std::string& group) const {
    if (group != "/" && !exists(group)) return {};
    const Guard guard;
    const Handle id(H5Gopen2(m_state->id, group.c_str(), H5P_DEFAULT), H5Gclose);
    std::optional<std::vector<std::string>> names = id ? linksOf(id) : std::nullopt;
    if (!names) m_state->fail("a group cannot be read", group, "Repair the file");
    return *std::move(names);
}

DatasetInfo File::info(const std::string& dataset) const {
    DatasetInfo info;
    {
        const Guard guard;
        const Handle set = m_state->openDataset(dataset);
        info.shape = shapeOf(set, *this, dataset);
        const Handle type(H5Dget_type(set), H5Tclose);
        const H5T_class_t kind = H5Tget_class(type);
        info.bytes = static_cast<int>(H5Tget_size(type));
        if (kind == H5T_FLOAT) {
            info.kind = DatasetInfo::Kind::Float;
            std::size_t sign = 0, exponent = 0, exponentBits = 0, mantissa = 0, mantissaBits = 0;
            H5Tget_fields(type, &sign, &exponent, &exponentBits, &mantissa, &mantissaBits);
            info.exponentBits = static_cast<int>(exponentBits);
        } else if (kind == H5T_INTEGER)
            info.kind = H5Tget_sign(type) == H5T_SGN_NONE ? DatasetInfo::Kind::Uint : DatasetInfo::Kind::Int;
    }
    info.dtypeAttribute = stringAttribute(dataset, "dtype").value_or("");
    return info;
}

template <class T> std::vector<T> File::read(const std::string& name, const Block* block) const {
    const Guard guard;
    const Handle set = m_state->openDataset(name);
    const std::vector<std::int64_t> shape = shapeOf(set, *this, name);
    checkIsStored(set, countOf(shape), *this, name);
    std::vector<T> data(static_cast<std::size_t>(countOf(block ? block->size : shape)));
    if (!data.empty()) readInto(set, memoryType<T>(), block, data.data(), *this, name);
    return data;
}
template std::vector<std::int32_t> File::read(const std::string&, const Block*) const;
template std::vector<std::int64_t> File::read(const std::string&, const Block*) const;
template std::vector<float> File::read(const std::string&, const Block*) const;
template std::vector<double> File::read(const std::string&, const Block*) const;
template std::vector<unsigned char> File::read(const std::string&, const Block*) const;

void File::readRaw(const std::string& name, const Block* block, void* out, std::size_t bytes) const {
    const Guard guard;
    const Handle set = m_state->openDataset(name);
    const Handle type(H5Dget_type(set), H5Tclose);
    const std::int64_t count = countOf(block ? block->size : shapeOf(set, *this, name));
    if (static_cast<std::size_t>(count) * H5Tget_size(type) != bytes)
        m_state->fail("the stored type has another width than expected", name, "Repair the file");
    if (H5Tget_class(type) != H5T_INTEGER && H5Tget_class(type) != H5T_FLOAT)
        m_state->fail("the data set holds no numbers", name, "Write the capture with numbers only");
    if (H5Tget_order(type) == H5T_ORDER_BE)
        m_state->fail("the data are big-endian", name, "Write the capture with little-endian types");
    if (count > 0) readInto(set, type, block, out, *this, name);
}

std::optional<H5O_info_t> objectAt(hid_t place, const std::string& name) {
    H5O_info_t info;
    if (H5Oget_info_by_name2(place, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return {};
    return info;
}

std::optional<std::vector<std::string>> linksOf(hid_t group) {
    std::vector<std::string> names;
    const auto keep = [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
        static_cast<std::vector<std::string>*>(into)->emplace_back(name);
        return 0;
    };
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &names) < 0) return {};
    return names;
}

std::optional<std::string> textOf(hid_t attribute) {
    const Handle type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
    if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1) return {};
    if (H5Tis_variable_str(type) > 0) {
        char* text = nullptr;
        const Handle memory(H5Tcopy(H5T_C_S1), H5Tclose);
        H5Tset_size(memory, H5T_VARIABLE);
        H5Tset_cset(memory, H5Tget_cset(type));
        if (H5Aread(attribute, memory, &text) < 0 || text == nullptr) return {};
        std::string result = text;
        H5free_memory(text);
        return result;
    }
    std::string text(H5Tget_size(type), '\0');
    if (H5Aread(attribute, type, text.data()) < 0) return {};
    return text.substr(0, text.find('\0'));
}

template <class T> std::vector<T> numbersOf(hid_t attribute) {
    const Handle space(H5Aget_space(attribute), H5Sclose);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    std::vector<T> values(count > 0 && count <= kMostValues ? static_cast<std::size_t>(count) : 0);
    if (!values.empty() && H5Aread(attribute, memoryType<T>(), values.data()) < 0) values.clear();
    return values;
}
template std::vector<std::int32_t> numbersOf(hid_t);
template std::vector<std::int64_t> numbersOf(hid_t);
template std::vector<double> numbersOf(hid_t);

std::optional<std::string> File::stringAttribute(const std::string& object, const std::string& name) const {
    const Guard guard;
    const Handle attribute = openAttribute(m_state->id, object, name);
    return attribute ? textOf(attribute) : std::nullopt;
}

std::optional<std::int64_t> File::integerAttribute(const std::string& object, const std::string& name) const {
    return single(attributeValues<std::int64_t>(m_state->id, object, name));
}

std::optional<double> File::realAttribute(const std::string& object, const std::string& name) const {
    return single(attributeValues<double>(m_state->id, object, name));
}

std::vector<std::int32_t> File::integerListAttribute(const std::string& object, const std::string& name) const {
    return attributeValues<std::int32_t>(m_state->id, object, name);
}

} // namespace kvscope::h5
