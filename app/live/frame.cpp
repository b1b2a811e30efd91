// Frames of the protocol between the program and a worker. What a worker sends is untrusted: every size is compared
// with its bound before the reader waits for the bytes that it announces.
#include "app/live/frame.h"

#include "core/base/error.h"
#include "core/base/json/json_text.h"
#include "core/base/number_text.h"
#include "core/base/one_line.h"

#include <fmt/format.h>

#include <numeric>

namespace kvscope::live {

namespace {

constexpr std::string_view kGreeting = "KVSCOPE ", kVersion = "1", kEnd = "\r\n\r\n";
constexpr std::string_view kLength = "Content-Length: ", kBlobs = "Kvscope-Blobs: ";

/// Whether the line begins with `name`, which is then removed: the value remains.
bool takeName(std::string_view& line, std::string_view name) {
    if (!line.starts_with(name)) return false;
    line.remove_prefix(name.size());
    return true;
}

} // namespace

std::string frameBytes(const Frame& frame) {
    const std::string json = jsonLine(frame.message);
    std::string bytes = fmt::format("Content-Length: {}\r\n", json.size());
    if (!frame.blobs.empty()) {
        bytes += "Kvscope-Blobs:";
        for (const std::string& blob : frame.blobs) bytes += fmt::format(" {}", blob.size());
        bytes += "\r\n";
    }
    bytes.append("\r\n").append(json);
    for (const std::string& blob : frame.blobs) bytes += blob;
    return bytes;
}

std::size_t FrameReader::Sizes::total() const { return std::accumulate(blobs.begin(), blobs.end(), header + json); }

void FrameReader::refuse(const std::string& why) const {
    throw Error({.sentence = fmt::format("the worker sent something that is no frame: {}; it begins '{}'", why,
                                         oneLine(std::string_view(m_bytes).substr(0, 160))),
                 .remedy = "Let the command that starts it print nothing on standard output, and give the worker the "
                           "program's version"});
}

void FrameReader::readGreeting() {
    for (std::size_t end = m_bytes.find('\n'); !m_isGreeted && end != std::string::npos; end = m_bytes.find('\n')) {
        std::string_view line = std::string_view(m_bytes).substr(0, end);
        if (takeName(line, kGreeting)) {
            if (line.ends_with('\r'))
                throw Error({.sentence = "the command puts a terminal between worker and program, which alters bytes",
                             .remedy = "Leave out the option -t (docker, podman, ssh)"});
            if (line != kVersion)
                throw Error({.sentence = fmt::format("the worker speaks version '{}' of the protocol, this program "
                                                     "version {}",
                                                     line, kVersion),
                             .remedy = "Update the older of the two"});
            m_isGreeted = true;
        } else {
            m_banner += m_bytes.substr(0, end + 1);
            if (m_banner.size() > kMostBanner) refuse("64 KiB passed without the greeting");
        }
        m_bytes.erase(0, end + 1);
    }
    if (!m_isGreeted && m_banner.size() + m_bytes.size() > kMostBanner) refuse("64 KiB passed without the greeting");
}

FrameReader::Sizes FrameReader::readHeader(std::string_view header) const {
    Sizes sizes;
    sizes.header = header.size() + kEnd.size();
    bool hasLength = false;
    const auto size = [this](std::string_view digits, std::size_t most, const char* what) {
        const auto value = parseNumber<std::uint64_t>(digits);
        if (!value) refuse(fmt::format("the size of its {} is no number", what));
        if (*value > most) refuse(fmt::format("its {} has {} bytes, of at most {}", what, *value, most));
        return static_cast<std::size_t>(*value);
    };
    for (std::size_t begin = 0; begin <= header.size();) {
        const std::size_t end = std::min(header.find("\r\n", begin), header.size());
        std::string_view line = header.substr(begin, end - begin);
        begin = end + 2;
        if (!hasLength && takeName(line, kLength)) {
            sizes.json = size(line, kMostJson, "text");
            hasLength = true;
        } else if (sizes.blobs.empty() && takeName(line, kBlobs)) {
            for (std::size_t at = 0; at <= line.size();) {
                const std::size_t space = std::min(line.find(' ', at), line.size());
                if (sizes.blobs.size() == kMostBlobs) refuse(fmt::format("it has more than {} blobs", kMostBlobs));
                sizes.blobs.push_back(size(line.substr(at, space - at), kMostBlob, "blob"));
                at = space + 1;
            }
        } else {
            refuse("its header has a line that is none of the protocol's");
        }
    }
    if (!hasLength) refuse("its header lacks Content-Length");
    return sizes;
}

Json FrameReader::readJson(std::string_view text) const {
    const auto shallow = [this](int depth, Json::parse_event_t, const Json&) {
        if (depth > kMostDepth) refuse(fmt::format("its brackets are nested more than {} deep", kMostDepth));
        return true;
    };
    try {
        Json json = Json::parse(text, shallow);
        if (!json.is_object()) refuse("its text is no JSON object");
        return json;
    } catch (const Json::exception&) {
        refuse("its text is no JSON");
    }
}

std::optional<Frame> FrameReader::next() {
    if (!m_isGreeted) readGreeting();
    if (!m_isGreeted) return std::nullopt;
    if (!m_sizes) {
        const std::size_t end = m_bytes.find(kEnd);
        if (end == std::string::npos ? m_bytes.size() >= kMostHeader : end + kEnd.size() > kMostHeader)
            refuse("its header does not end within 1 KiB");
        if (end == std::string::npos) return std::nullopt;
        m_sizes = readHeader(std::string_view(m_bytes).substr(0, end));
    }
    if (m_bytes.size() < m_sizes->total()) return std::nullopt;
    Frame frame{readJson(std::string_view(m_bytes).substr(m_sizes->header, m_sizes->json))};
    std::size_t at = m_sizes->header + m_sizes->json;
    for (const std::size_t size : m_sizes->blobs) {
        frame.blobs.push_back(m_bytes.substr(at, size));
        at += size;
    }
    m_bytes.erase(0, at);
    m_sizes.reset();
    return frame;
}

} // namespace kvscope::live
