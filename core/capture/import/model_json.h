#pragma once

#include "core/capture/import/described_model.h"

#include <nlohmann/json.hpp>

#include <string>

namespace kvscope {

/// Checked access to the fields of one JSON object of a model's file.
class ModelJson {
public:
    using Json = nlohmann::json;
    /// `place` stands in front of field names in messages: "" or "layers[3]."
    ModelJson(const Json& json, const std::string& path, std::string place = {})
        : m_json(json), m_path(path), m_place(std::move(place)) {}

    /// The remedy is kvscope-describe.
    [[noreturn]] void fail(std::string sentence, const std::string& name) const;

    bool has(const char* name) const { return m_json.contains(name) && !m_json.at(name).is_null(); }
    std::string text(const char* name) const;
    bool flag(const char* name) const;
    double number(const char* name) const;                              ///< finite, at least 0
    std::int64_t whole(const char* name, std::int64_t least = 0) const; ///< at most 2^31 - 1
    int size(const char* name) const;                                   ///< 1 to 65536
    ModelJson object(const char* name) const;
    const Json& list(const char* name) const; ///< not empty
    const std::string& path() const { return m_path; }
    const Json& json() const { return m_json; }

private:
    const Json& field(const char* name) const;
    const Json& m_json;
    const std::string& m_path;
    std::string m_place;
};

/// A `config.json` as it lies on the Hugging Face Hub. Throws Error.
DescribedModel readHubConfig(const ModelJson& config);

} // namespace kvscope
