#pragma once

#include "app/live/protocol.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::live {

// Bounds of a frame, checked before memory is taken for what it announces.
inline constexpr std::size_t kMostBanner = 64 << 10; ///< bytes before the greeting, of shells and login scripts
inline constexpr std::size_t kMostHeader = 1 << 10, kMostJson = 16 << 20, kMostBlob = 4 << 20, kMostBlobs = 8;
inline constexpr int kMostDepth = 32; ///< of brackets in the JSON

/// One message: JSON-RPC 2.0, and raw little-endian bytes, which its parameters describe.
struct Frame {
    Json message;
    std::vector<std::string> blobs = {};
};

/// "Content-Length: N\r\n", "Kvscope-Blobs: A B\r\n" where there are any, "\r\n", the JSON and the blobs. The frame
/// must keep the bounds.
std::string frameBytes(const Frame& frame);

/// Turns a worker's standard output into frames. The first line that counts is the greeting "KVSCOPE 1"; up to
/// kMostBanner bytes before it are skipped. After it nothing is skipped: the reader never searches for the next frame
/// in bytes that are no frame.
class FrameReader {
public:
    void add(std::string_view bytes) { m_bytes += bytes; }
    /// The next whole frame, if there is one; to be called until there is none. Throws Error for bytes that are no
    /// frame, then and at every later call.
    std::optional<Frame> next();
    bool isGreeted() const { return m_isGreeted; }
    /// What stood before the greeting, or came until now in its place.
    std::string banner() const { return m_isGreeted ? m_banner : m_banner + m_bytes; }
    /// Bytes that are no whole frame yet.
    std::size_t waiting() const { return m_bytes.size(); }

private:
    struct Sizes {
        std::size_t header = 0, json = 0;
        std::vector<std::size_t> blobs;
        std::size_t total() const;
    };
    void readGreeting();
    Sizes readHeader(std::string_view header) const;
    Json readJson(std::string_view text) const;
    [[noreturn]] void refuse(const std::string& why) const;

    std::string m_bytes;
    std::string m_banner; ///< lines before the greeting
    bool m_isGreeted = false;
    std::optional<Sizes> m_sizes; ///< of the frame that m_bytes begins with
};

} // namespace kvscope::live
