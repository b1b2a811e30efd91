// `kvscope convert`: turns tensors that another program saved into a capture.
#include "app/command_line/command.h"
#include "core/base/error.h"
#include "core/capture/capture_writer.h"
#include "core/capture/import/imported_capture.h"
#include "views/scene/axes.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace kvscope {

namespace {

class ConvertCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("convert",
                                       "turn saved tensors (.safetensors, .npz, vLLM's stored caches) into a capture");
        m_command->add_option("in", m_in, "a .safetensors or .npz file, or a folder of .safetensors files")->required();
        m_command
            ->add_option("--pattern", m_templates,
                         "ROLE=NAME with {layer} in it and * for any text, like k=blocks.{layer}.key; "
                         "ROLE is k, v, q, k_pre, kv or sinks; may be repeated")
            ->allow_extra_args(false);
        m_command
            ->add_option("--layout", m_layout, "auto, hnd (heads, tokens, head_dim) or nhd (tokens, heads, head_dim)")
            ->check(CLI::IsMember({"auto", "hnd", "nhd"}))
            ->capture_default_str();
        m_command->add_option("--config", m_import.configPath,
                              "what kvscope-describe wrote for the model, or the config.json of a Llama, Mistral, "
                              "Qwen2 or Qwen3; described_model.json or config.json beside the tensors by default");
        m_command->add_option("--tokens", m_import.tokensPath,
                              R"(JSON file {"ids": [...], "texts": [...], "segments": [[begin, end, "context"]]})");
        m_command->add_option("--deflate", m_write.deflateLevel, "level 0 to 9")
            ->check(CLI::Range(0, 9))
            ->capture_default_str();
        m_command->add_option("--out", m_out, "FILE.h5 or FILE.hdf5")->required();
        m_command->footer(
            "Names of tensors that are understood without --pattern: a layer's number before or behind one of the "
            "words\n"
            "k, key, keys, key_states, key_cache, k_cache; v, value, ...; q, query, queries, query_states, q_window;\n"
            "k_pre, keys_pre_rope; kv, kv_cache (both in one, as vLLM's connector stores them); sinks, s_aux.");
    }

    void run(const CommandContext& context) override {
        if (!std::filesystem::exists(m_in)) throw Error({"there is no such file", "", "Check the name", m_in});
        if (!isTensorFile(m_in))
            throw Error({"this is no file of tensors that can be converted", "",
                         "Name a .safetensors or .npz file or a folder of .safetensors files", m_in});
        for (const std::string& text : m_templates) m_import.templates.push_back(NameTemplate::parse(text));
        m_import.order = m_layout == "hnd"   ? AxisOrder::HeadsFirst
                         : m_layout == "nhd" ? AxisOrder::TokensFirst
                                             : AxisOrder::Auto;
        const auto capture = openImported(m_in, m_import);
        writeCapture(*capture, m_out, m_write, context.checkpoint("convert"));
        context.clearProgress();
        const CaptureInfo& info = capture->info();
        const bool hasQueries = std::ranges::any_of(info.layers, [](const LayerInfo& l) { return l.queryCount > 0; });
        fmt::print("{}, {}{}, {}, head dim {}\n{}\n", formatCounted(std::ssize(info.layers), "layer"),
                   hasQueries ? formatCounted(info.numQueryHeads, "query head") + ", " : "",
                   formatCounted(info.numKvHeads, "KV head"), formatCounted(info.numTokens, "token"), info.headDim,
                   info.notes);
    }

private:
    ImportOptions m_import;
    CaptureWriteOptions m_write;
    std::vector<std::string> m_templates;
    std::string m_in, m_out, m_layout = "auto";
};

} // namespace

std::unique_ptr<Command> makeConvertCommand() { return std::make_unique<ConvertCommand>(); }

} // namespace kvscope
