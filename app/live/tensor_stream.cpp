// Joins the parts of a tensor; each part is checked before its bytes are kept.
#include "app/live/tensor_stream.h"

#include "app/live/context_info.h"
#include "core/capture/widen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace kvscope::live {

static_assert(std::endian::native == std::endian::little, "blobs are little-endian");

Notified TensorStream::taker() {
    return [this](const std::string& method, const Json& params, std::vector<std::string>& blobs) {
        if (method == "tensors/data") take(params, blobs);
    };
}

void TensorStream::take(const Json& params, const std::vector<std::string>& blobs) {
    const auto stated = params.at("shape").get<std::vector<std::int64_t>>();
    if (!m_type) {
        if (m_shape[0] == kAsStated)
            m_shape[0] = std::clamp<std::int64_t>(stated.empty() ? 0 : stated.front(), 1, 1 << 16);
        m_type = storedTypeOf(params.at("dtype").get<std::string>());
    }
    const std::int64_t whole = bytesOfWhole();
    const auto at = static_cast<std::int64_t>(m_bytes.size());
    if (stated != m_shape)
        refuse(fmt::format("its shape is ({}), not ({})", fmt::join(stated, ", "), fmt::join(m_shape, ", ")));
    if (params.at("of") != whole) refuse(fmt::format("it has {} bytes, not {}", params.at("of").get<double>(), whole));
    if (blobs.size() != 1 || params.at("offset") != at || at + static_cast<std::int64_t>(blobs[0].size()) > whole)
        refuse("its parts do not follow each other");
    m_bytes += blobs[0]; // grows with what arrives, not with what is announced
    m_checkpoint.at(static_cast<double>(m_bytes.size()), static_cast<double>(whole));
}

HostTensor TensorStream::finish() const {
    if (!m_type || static_cast<std::int64_t>(m_bytes.size()) != bytesOfWhole()) refuse("it is not whole");
    HostTensor tensor{{m_shape[0], m_shape[1], m_shape[2]}, {}, *m_type};
    tensor.data.resize(static_cast<std::size_t>(tensor.shape.count()));
    if (*m_type == StoredType::Float32) {
        std::memcpy(tensor.data.data(), m_bytes.data(), m_bytes.size());
        return tensor;
    }
    std::vector<std::uint16_t> bits(tensor.data.size());
    std::memcpy(bits.data(), m_bytes.data(), m_bytes.size());
    (*m_type == StoredType::Float16 ? widenFloat16 : widenBfloat16)(bits, tensor.data.data());
    return tensor;
}

std::int64_t TensorStream::bytesOfWhole() const {
    return m_shape[0] * m_shape[1] * m_shape[2] * (*m_type == StoredType::Float32 ? 4 : 2);
}

void TensorStream::refuse(const std::string& why) const {
    throw Error({.sentence = "the worker sent a tensor that cannot be: " + why,
                 .place = m_place,
                 .remedy = "Give worker and program the same version"});
}

} // namespace kvscope::live
