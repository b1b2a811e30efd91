// A cache of immutable results. Their size is that of the scores [Hkv, cut], their parts and the errors of the queries.
#include "app/workbench/recent_results.h"

#include <algorithm>

namespace kvscope {

namespace {

constexpr std::size_t kMost = 96; ///< two dozen states of four panes; the search is linear

std::size_t bytesOf(const RunResult& result) {
    std::size_t numbers = result.scores.data.size() + result.queryHeadScores.data.size() + result.anchor.data.size();
    for (const auto& [name, part] : result.parts) numbers += part.data.size();
    for (const HeadSelection& head : result.selection.heads) {
        numbers += head.kept.size() * 3;
        for (const QueryHeadSet& own : head.queryHeads) numbers += own.kept.size();
    }
    if (result.fidelity)
        numbers += result.fidelity->outputError.data.size() + result.fidelity->retainedMass.data.size();
    return numbers * sizeof(float) + sizeof(RunResult);
}

} // namespace

std::shared_ptr<const RunResult> RecentResults::find(const std::string& key) {
    const auto found = std::ranges::find(m_entries, key, &Entry::key);
    if (found == m_entries.end()) return nullptr;
    m_entries.splice(m_entries.begin(), m_entries, found);
    return found->result;
}

void RecentResults::insert(const std::string& key, std::shared_ptr<const RunResult> result) {
    std::erase_if(m_entries, [&](const Entry& entry) {
        if (entry.key != key) return false;
        m_bytes -= entry.bytes;
        return true;
    });
    const std::size_t bytes = bytesOf(*result);
    m_entries.push_front({key, std::move(result), bytes});
    m_bytes += bytes;
    while ((m_bytes > m_maxBytes || m_entries.size() > kMost) && m_entries.size() > 1) {
        m_bytes -= m_entries.back().bytes;
        m_entries.pop_back();
    }
}

void RecentResults::clear() {
    m_entries.clear();
    m_bytes = 0;
}

} // namespace kvscope
