// Averages over seeds, heads, layers and captures, one level at a time: pooling them would weigh a layer by its number
// of samples, and would treat dependent samples as independent.
#include "core/metrics/averages.h"

#include <map>

namespace kvscope {

namespace {

/// Replaces samples that differ at this level alone by their mean.
std::vector<Sample> averagedOut(const std::vector<Sample>& samples, std::size_t level) {
    std::map<std::array<std::int64_t, kSampleLevels>, std::vector<double>> groups;
    for (const Sample& sample : samples) {
        auto place = sample.place;
        place[level] = 0;
        groups[place].push_back(sample.value);
    }
    std::vector<Sample> means;
    for (const auto& [place, values] : groups) means.push_back({place, summaryOf(values).mean});
    return means;
}

std::optional<SampleLevel> outermost(const std::vector<Sample>& samples) {
    for (std::size_t level = kSampleLevels; level-- > 0;)
        for (const Sample& sample : samples)
            if (sample.place[level] != samples.front().place[level]) return static_cast<SampleLevel>(level);
    return {};
}

} // namespace

const char* levelName(SampleLevel level) {
    constexpr std::array names = {"seeds", "heads", "layers", "captures"};
    return names[static_cast<std::size_t>(level)];
}

Sample Sample::of(SampleLevel level, std::int64_t place, double value) {
    Sample sample{{}, value};
    sample.place[static_cast<std::size_t>(level)] = place;
    return sample;
}

LevelledMean meanByLevels(std::vector<Sample> samples, std::optional<SampleLevel> over) {
    if (!over) over = outermost(samples);
    for (std::size_t level = 0; level < kSampleLevels; ++level)
        if (!over || level != static_cast<std::size_t>(*over)) samples = averagedOut(samples, level);
    std::vector<double> means;
    for (const Sample& sample : samples) means.push_back(sample.value);
    const Summary summary = summaryOf(means);
    return {summary, summary.count > 1 ? over : std::nullopt};
}

} // namespace kvscope
