// `kvscope measures`: the measures that `measure` and `sweep` can write as columns.
#include "app/command_line/command.h"
#include "core/metrics/measures.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace kvscope {

namespace {

const char* shapeText(MeasureShape shape) {
    switch (shape) {
    case MeasureShape::PerQuery: return "per query and head";
    case MeasureShape::PerQueryHead: return "per query head";
    case MeasureShape::PerKvHead: return "per KV head";
    case MeasureShape::PerLayerQuery: return "per query, whole layer";
    }
    return "";
}

const char* directionText(MeasureDirection direction) {
    if (direction == MeasureDirection::Neither) return "describes";
    return direction == MeasureDirection::SmallerIsBetter ? "smaller is better" : "larger is better";
}

const char* needText(MeasureNeed need) {
    switch (need) {
    case MeasureNeed::Nothing: return "";
    case MeasureNeed::Scores: return "; needs a policy with scores";
    case MeasureNeed::OutputProjection: return "; needs o_proj in the capture";
    case MeasureNeed::PreRopeKeys: return "; needs the keys before RoPE, stored or derived";
    }
    return "";
}

class MeasuresCommand final : public Command {
public:
    void addTo(CLI::App& app) override { m_command = app.add_subcommand("measures", "list what can be measured"); }
    void run(const CommandContext&) override {
        for (const MeasureCard& card : allMeasures())
            fmt::print("{:<24}{}{}{} ({}, {}{})\n{:24}{}\n", card.id, card.label, card.unit.empty() ? "" : ", ",
                       card.unit, shapeText(card.shape), directionText(card.better), needText(card.need), "",
                       card.help);
    }
};

} // namespace

std::unique_ptr<Command> makeMeasuresCommand() { return std::make_unique<MeasuresCommand>(); }

} // namespace kvscope
