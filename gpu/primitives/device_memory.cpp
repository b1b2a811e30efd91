// One allocation per call: lists, changed lists, results and scratch, in this order.
#include "gpu/primitives/device_memory.h"

#include <numeric>

namespace kvscope::gpu {

unsigned char* CallMemory::at(Section section) const {
    return static_cast<unsigned char*>(m_data.get()) +
           std::accumulate(m_bytes.begin(), m_bytes.begin() + section, std::size_t{0});
}

void CallMemory::place() {
    m_data = m_memory.allocate(std::accumulate(m_bytes.begin(), m_bytes.end(), std::size_t{1}));
    m_input[Lists].insert(m_input[Lists].end(), m_input[Changed].begin(), m_input[Changed].end());
    if (!m_input[Lists].empty()) m_memory.copyIn(m_data.get(), m_input[Lists].data(), m_input[Lists].size());
    for (const Part& part : m_parts) part.set(at(part.section) + part.offset);
}

void CallMemory::fetch() {
    const std::size_t bytes = m_bytes[Changed] + m_bytes[Results];
    m_fetched = m_memory.allocateShared(bytes);
    m_memory.copyOut(m_fetched.get(), at(Changed), bytes);
}

} // namespace kvscope::gpu
