#pragma once

#include "gpu/engine_factory.h"

#include <QString>

namespace kvscope::testing {

/// Why there is no LibTorch engine to compare with; empty: there is one.
inline QString whyNoTorch() {
    for (const EngineOffer& offer : engineOffers())
        if (offer.name == "torch" && !offer.missing.empty())
            return QString("no LibTorch engine: %1").arg(offer.remedy.c_str());
    return {};
}

} // namespace kvscope::testing
