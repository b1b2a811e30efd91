// Leverage of sketched rows: Gram matrices on the device, their whitening on the host, scores on the device.
#include "gpu/kernels/leverage.h"
#include "gpu/primitives/long_work.h"
#include "gpu/primitives/primitives.h"

#include <cassert>

namespace kvscope::gpu {

namespace {

/// One request; its sketch stays in device memory for both passes.
class SketchedLeverage {
public:
    SketchedLeverage(const DeviceMemory& memory, const DeviceRows& rows, const LeverageRequest& request)
        : m_memory(memory), m_request(request), m_inputs(memory), m_outputs(memory),
          m_numbers(static_cast<std::size_t>(rows.heads * request.sketch.shape[2])) {
        m_call.rows = rows;
        m_call.sketches = request.sketch.shape[0];
        m_call.columns = request.sketch.shape[2];
    }

    Leverage compute(WhiteningSolver solve, const Checkpoint& checkpoint) {
        const Whitenings solved = whiten(solve, checkpoint.part(0, 0.5));
        const DeviceRows& rows = m_call.rows;
        m_outputs.list(m_call.directions, solved.directions);
        m_outputs.result(m_call.scores, static_cast<std::size_t>(rows.heads * rows.rows));
        m_outputs.place();
        LongWork work(m_memory, checkpoint.part(0.5, 1), operationsOfPass());
        each(work, leverageScores);
        work.wait();
        m_outputs.fetch();
        Leverage out{m_outputs.read(m_call.scores, {rows.heads, rows.rows}), {}, solved.rank};
        if (!solved.singularValues.empty())
            out.spectrum = {Shape{rows.heads, m_call.columns},
                            {solved.singularValues.begin(), solved.singularValues.end()}};
        return out;
    }

private:
    Whitenings whiten(WhiteningSolver solve, const Checkpoint& checkpoint) {
        const std::int64_t k = m_call.columns, n = m_call.rows.rows;
        const std::size_t count = m_numbers * static_cast<std::size_t>(k);
        m_inputs.list(m_call.sketch, m_request.sketch.data);
        if (m_request.centred) m_inputs.result(m_call.means, m_numbers);
        m_inputs.result(m_call.grams, count);
        m_inputs.scratch(m_call.scratch, static_cast<std::size_t>(leverageScratch(m_call)));
        m_inputs.place();
        LongWork work(m_memory, checkpoint, operationsOfPass() * (m_request.centred ? 2 : 1));
        if (m_request.centred) each(work, sketchedMeans);
        each(work, sketchedGrams);
        work.wait();
        m_inputs.fetch();
        std::vector<double> noise;
        const auto means = m_inputs.view(m_call.means, m_request.centred ? m_numbers : 0);
        for (std::size_t i = 0; i < means.size(); ++i) {
            if (i % static_cast<std::size_t>(k) == 0) noise.push_back(0);
            noise.back() += means[i] * means[i] * static_cast<double>(n) * kCentringNoise;
        }
        const WhiteningRule rule{m_request.route, m_request.regulariser, m_request.strength, n};
        return solve(m_inputs.view(m_call.grams, count), k, k, rule, noise, m_request.wantsSpectrum);
    }

    double operationsOfPass() const {
        const DeviceRows& rows = m_call.rows;
        return 2.0 * kMostSketchColumns *
               static_cast<double>(rows.heads * rows.rows * (rows.width + kMostSketchColumns));
    }

    template <class Pass> void each(LongWork& work, const Pass& pass) {
        const std::int64_t blocks = leverageBlocks(m_call.rows);
        work.each(blocks, operationsOfPass() / static_cast<double>(blocks),
                  [&](std::int64_t begin, std::int64_t end, const StopWord& stop) {
                      m_call.stop = stop;
                      pass(m_call, begin, end, m_memory.stream());
                  });
    }

    const DeviceMemory& m_memory;
    const LeverageRequest& m_request;
    CallMemory m_inputs, m_outputs;
    std::size_t m_numbers; ///< in one column of all heads' matrices
    LeverageCall m_call;
};

} // namespace

bool hasLeverageKernel(const LeverageRequest& request) {
    return !request.sketch.empty() && request.sketch.shape[2] <= kMostSketchColumns && request.chunk <= 0 &&
           !usesFactor(request.route);
}

Leverage leverage(const DeviceMemory& memory, const DeviceRows& rows, const LeverageRequest& request,
                  WhiteningSolver solve, const Checkpoint& checkpoint) {
    assert(hasLeverageKernel(request) && rows.rows > 0 && request.sketch.shape[1] == rows.width);
    return SketchedLeverage(memory, rows, request).compute(solve, checkpoint);
}

} // namespace kvscope::gpu
