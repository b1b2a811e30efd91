#pragma once

#include "core/engine/forwarding_engine.h"
#include "core/run/run.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kvscope {

/// The CPU engine, counting how often each primitive is called.
class CountingEngine final : public ForwardingEngine {
public:
    explicit CountingEngine(int threads = 0) : CountingEngine(makeCpuEngine(threads)) {}

    int count(const std::string& primitive) const {
        const std::lock_guard lock(m_mutex);
        const auto at = m_counts.find(primitive);
        return at == m_counts.end() ? 0 : at->second;
    }

protected:
    const Engine& to(const char* primitive) const override {
        const std::lock_guard lock(m_mutex);
        ++m_counts[primitive];
        return *m_engine;
    }

private:
    explicit CountingEngine(std::unique_ptr<Engine> engine) : ForwardingEngine(*engine), m_engine(std::move(engine)) {}

    std::unique_ptr<Engine> m_engine;
    mutable std::mutex m_mutex;
    mutable std::map<std::string, int> m_counts;
};

struct CountedRuns {
    std::shared_ptr<CountingEngine> engine = std::make_shared<CountingEngine>();
    LayerRunner runner{engine};

    std::shared_ptr<const RunResult> run(const RunRequest& request) const { return runner.run(request, {}); }
};

} // namespace kvscope
