#pragma once

#include "core/run/run.h"

#include <cstddef>
#include <list>
#include <memory>
#include <string>

namespace kvscope {

/// The latest measured results by request key (LRU), so that undo and going back to a head show at once.
class RecentResults {
public:
    explicit RecentResults(std::size_t maxBytes = std::size_t{256} << 20) : m_maxBytes(maxBytes) {}

    std::shared_ptr<const RunResult> find(const std::string& key);
    void insert(const std::string& key, std::shared_ptr<const RunResult> result);
    void clear();
    std::size_t size() const { return m_entries.size(); }

private:
    struct Entry {
        std::string key;
        std::shared_ptr<const RunResult> result;
        std::size_t bytes = 0;
    };
    std::list<Entry> m_entries; ///< most recent first; a few dozen, so a linear search suffices
    std::size_t m_bytes = 0, m_maxBytes;
};

} // namespace kvscope
