#pragma once

#include "core/capture/capture.h"

#include <memory>
#include <utility>

namespace kvscope::testing {

/// Another capture, of which a derived class changes a part.
class ForwardingCapture : public CaptureReader {
public:
    explicit ForwardingCapture(std::shared_ptr<const CaptureReader> capture) : m_forwarded(std::move(capture)) {}

    const CaptureInfo& info() const override { return m_forwarded->info(); }
    const TokenTable& tokens() const override { return m_forwarded->tokens(); }
    const std::vector<float>& inverseFrequencies(LayerIndex layer) const override {
        return m_forwarded->inverseFrequencies(layer);
    }
    HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const override {
        return m_forwarded->read(layer, role, checkpoint);
    }
    std::string computeHash(const Checkpoint& checkpoint) const override {
        return m_forwarded->computeHash(checkpoint);
    }

private:
    std::shared_ptr<const CaptureReader> m_forwarded;
};

} // namespace kvscope::testing
