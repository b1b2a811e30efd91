#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

enum class ParameterKind { Real, Integer, Choice, Flag, Text };

/// The first of the three stages that must run again when the parameter changes.
enum class Stage { Features, Combine, Select };

struct ParameterChoice {
    std::string id;    ///< as typed on the command line
    std::string label; ///< as shown
    std::string help;
    std::string group = {}; ///< heading of a long menu under which it stands
};

/// One row of a parameter table. Sliders, command line, session files, documents and cache keys are read from it.
struct ParameterSpec {
    std::string id = {};     ///< snake_case, as typed
    std::string label = {};  ///< sentence case, as shown
    std::string symbol = {}; ///< the paper's letter, may be empty
    std::string unit = {};   ///< "tokens" or empty ...
    std::string help = {};   ///< one or two sentences, with trap IDs
    std::string source = {}; ///< paper and equation or code
    ParameterKind kind = ParameterKind::Real;
    double min = 0, max = 1; ///< inclusive; for a choice 0 .. choices.size() - 1
    double defaultValue = 0;
    double step = 0;          ///< 0: continuous
    bool logarithmic = false; ///< scale of the slider
    bool maxIsTokens = false; ///< the slider ends at the number of tokens seen, where that is smaller than max
    std::vector<ParameterChoice> choices = {};
    std::string defaultText = {};              ///< of a text, which has no range
    void (*check)(std::string_view) = nullptr; ///< of a text: throws Error for a value that is not allowed
    Stage stage = Stage::Features;
    int place = 0; ///< among the few parameters shown first, from 1 on; 0: folded away under its stage
};

/// Label and symbol, "Rounds T"; once where both are one word.
std::string labelAndSymbol(const ParameterSpec& spec);
/// The unit after a number; empty where the label already says it ("Levels").
std::string unitBeside(const ParameterSpec& spec);

using ParameterTable = std::vector<ParameterSpec>;

/// Text that holds a comma, an @, a quote, a blank or an opening bracket gets quotes around it, and a backslash before
/// quotes and backslashes, so that it can stand in a list of parameters; other text is unchanged.
std::string quoted(std::string_view text);

/// Checked values for a table, each held as a double (a choice as its index, a flag as 0 or 1) or as a text.
/// A value, cheap to copy and to compare: the session, undo and the caches hold it.
class ParameterValues {
public:
    ParameterValues() = default;
    explicit ParameterValues(std::shared_ptr<const ParameterTable> table); ///< all defaults

    const ParameterTable& table() const;
    bool has(std::string_view id) const;
    double real(std::string_view id) const;
    std::int64_t integer(std::string_view id) const;
    bool flag(std::string_view id) const;
    const std::string& choice(std::string_view id) const; ///< id of the chosen one
    bool isDefault(std::string_view id) const;

    /// set and setText throw Error naming the parameter, its range or its choices. `text` as typed: "0.25", "12",
    /// "true", "cosine".
    void set(std::string_view id, double value);
    void reset(std::string_view id); ///< to the default
    void setText(std::string_view id, std::string_view text);

    std::string text(std::string_view id) const; ///< reads back identically with setText
    /// "id=text,id=text" (quoted) of all parameters up to and including `stage`: a cache key for that stage.
    std::string key(Stage stage) const;

    friend bool operator==(const ParameterValues&, const ParameterValues&) = default;

private:
    std::size_t find(std::string_view id) const; ///< throws Error with the nearest name
    std::shared_ptr<const ParameterTable> m_table;
    std::vector<double> m_values;
    std::vector<std::string> m_texts; ///< of text parameters, empty for others
};

} // namespace kvscope
