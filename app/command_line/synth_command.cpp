// `kvscope synth`: captures with a known structure, for tests, benchmarks and teaching.
#include "app/command_line/command.h"
#include "core/base/error.h"
#include "core/capture/synthetic_capture.h"

#include <CLI/App.hpp>

namespace kvscope {

namespace {

class SynthCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand(
            "synth", "write a seeded synthetic capture: clusters, sinks, needle, collinear keys, RoPE rings");
        m_command->add_option("--tokens", m_spec.tokens, "tokens n")->capture_default_str();
        m_command->add_option("--layers", m_spec.layers, "layers")->capture_default_str();
        m_command->add_option("--q-heads", m_spec.queryHeads, "query heads")->capture_default_str();
        m_command->add_option("--kv-heads", m_spec.kvHeads, "KV heads")->capture_default_str();
        m_command->add_option("--head-dim", m_spec.headDim, "head dim d")->capture_default_str();
        addSeedTo(*m_command, m_spec.seed, "of every number in it")->default_str(std::to_string(m_spec.seed));
        m_command->add_option("--clusters", m_spec.clusters, "clusters of keys; 0: none")->capture_default_str();
        m_command->add_option("--sinks", m_spec.sinks, "first tokens that draw attention")->capture_default_str();
        m_command->add_option("--needle-begin", m_spec.needleBegin, "first needle token; -1: at 45 % of the tokens")
            ->capture_default_str();
        m_command->add_option("--needle-length", m_spec.needleLength, "needle tokens; 0: none")->capture_default_str();
        m_command
            ->add_option("--collinearity", m_spec.collinearity,
                         "share of the common direction in a key's squared length, 0 up to 1")
            ->capture_default_str();
        m_command->add_flag("--no-rope", m_noRope, "do not rotate queries and keys");
        m_command->add_option("--q-window", m_spec.queryWindow, "store only this many of the last queries; 0: all")
            ->capture_default_str();
        m_command->add_option("--dtype", m_type, "bf16, f16 or f32")
            ->type_name("{bf16,f16,f32}")
            ->capture_default_str();
        m_command->add_option("--deflate", m_deflate, "level 0 to 9")->check(CLI::Range(0, 9))->capture_default_str();
        m_command->add_flag("--sparse", m_sparse, "declare the tensors but store none: a huge file that takes no room");
        m_command->add_option("--out", m_out, "FILE.h5 or FILE.hdf5")->required();
    }

    void run(const CommandContext& context) override {
        m_spec.rope = !m_noRope;
        const auto type = storedTypeNamed(m_type);
        if (!type) throw Error({"there is no stored type '" + m_type + "'", "--dtype", "Choose bf16, f16 or f32"});
        m_spec.storedType = *type;
        writeSyntheticCapture(m_spec, m_out, m_deflate, m_sparse, context.checkpoint("synth"));
    }

private:
    SyntheticSpec m_spec;
    std::string m_type = "bf16", m_out;
    int m_deflate = 0;
    bool m_noRope = false, m_sparse = false;
};

} // namespace

std::unique_ptr<Command> makeSynthCommand() { return std::make_unique<SynthCommand>(); }

} // namespace kvscope
