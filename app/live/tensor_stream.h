#pragma once

#include "app/live/live_client.h"
#include "core/base/host_tensor.h"
#include "core/capture/capture.h"

#include <optional>
#include <string>
#include <vector>

namespace kvscope::live {

/// A tensor that comes from the worker in parts, while a call waits.
class TensorStream {
public:
    static constexpr std::int64_t kAsStated = -1; ///< first extent: what the worker says, at most 65,536

    /// `shape` has three extents. `place` is named in errors.
    TensorStream(std::string place, std::vector<std::int64_t> shape, Checkpoint checkpoint)
        : m_place(std::move(place)), m_shape(std::move(shape)), m_checkpoint(std::move(checkpoint)) {}

    /// A function that takes the notifications tensors/data and throws Error for a part that does not follow the
    /// earlier ones. The stream must outlive it.
    Notified taker();
    /// The tensor, in float. Throws Error where parts are missing.
    HostTensor finish() const;

private:
    void take(const Json& params, const std::vector<std::string>& blobs);
    std::int64_t bytesOfWhole() const;
    [[noreturn]] void refuse(const std::string& why) const;

    std::string m_place;
    std::vector<std::int64_t> m_shape;
    Checkpoint m_checkpoint;
    std::optional<StoredType> m_type;
    std::string m_bytes;
};

} // namespace kvscope::live
