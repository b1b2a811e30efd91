// `kvscope schema`: JSON Schemas of what the program writes and reads, as they lie in resources/schemas.
#include "app/command_line/command.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

namespace kvscope {

namespace {

class SchemaCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("schema", "print the JSON Schema of a kind of file");
        m_command->add_option("kind", m_kind, "of which files")
            ->required()
            ->check(CLI::IsMember({"list", "session", "sweep", "live", "described_model"}));
    }
    void run(const CommandContext&) override { fmt::print("{}", schemaText(m_kind)); }

private:
    std::string m_kind;
};

} // namespace

std::unique_ptr<Command> makeSchemaCommand() { return std::make_unique<SchemaCommand>(); }

} // namespace kvscope
