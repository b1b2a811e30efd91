// Parses the text of a formula into its tree by recursive descent. Every error names the character at which it occurs.
#include "core/policies/score/score_feature.h"

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "core/base/one_line.h"
#include "core/policies/common/choice_kind.h"
#include "core/policies/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

constexpr int kMostNested = 100, kMostOperators = 1000; // trees are walked recursively
constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

struct Function {
    const char* name;
    std::size_t least, most; ///< arguments
};
constexpr std::array kFunctions = {Function{"z", 1, 1},      Function{"rank", 1, 1},   Function{"log", 1, 1},
                                   Function{"exp", 1, 1},    Function{"sqrt", 1, 1},   Function{"abs", 1, 1},
                                   Function{"min", 2, kAny}, Function{"max", 2, kAny}, Function{"clip", 3, 3}};

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool isDigit(char c) { return c >= '0' && c <= '9'; }

class Parser {
public:
    explicit Parser(std::string_view text) : m_text(text) {}

    ScoreNode parse() {
        ScoreNode root = sum();
        if (m_at < m_text.size())
            fail(m_at, fmt::format("'{}' does not belong here", character()), "Write an operator, or nothing");
        return root;
    }
    std::vector<ScoreFeature> takeFeatures() { return std::move(m_features); }

private:
    [[noreturn]] void fail(std::size_t at, const std::string& sentence, const std::string& remedy) const {
        throw Error(
            {fmt::format("in the score '{}': {}", m_text, sentence), fmt::format("character {}", at + 1), remedy});
    }

    /// The whole character at this place, which may have several bytes.
    std::string_view character() const {
        const std::string_view rest = m_text.substr(m_at);
        return rest.substr(0, std::max<std::size_t>(1, codePointAt(rest).length));
    }

    void skipBlanks() {
        while (m_at < m_text.size() && m_text[m_at] == ' ') ++m_at;
    }
    bool take(char c) {
        skipBlanks();
        const bool there = m_at < m_text.size() && m_text[m_at] == c;
        m_at += there ? 1 : 0;
        return there;
    }

    ScoreNode joined(ScoreNode::Kind kind, ScoreNode left, ScoreNode right) {
        if (++m_operators > kMostOperators)
            fail(right.begin, "the formula is too long", fmt::format("At most {} operators are read", kMostOperators));
        ScoreNode node;
        node.kind = kind;
        node.begin = left.begin;
        node.end = right.end;
        node.arguments.push_back(std::move(left)); // an initializer list would copy both trees
        node.arguments.push_back(std::move(right));
        return node;
    }

    ScoreNode sum() {
        if (++m_nested > kMostNested)
            fail(m_at, "the formula is nested too deeply", fmt::format("At most {} levels are read", kMostNested));
        ScoreNode left = product();
        for (;;)
            if (take('+'))
                left = joined(ScoreNode::Kind::Add, std::move(left), product());
            else if (take('-'))
                left = joined(ScoreNode::Kind::Subtract, std::move(left), product());
            else
                break;
        --m_nested;
        return left;
    }

    ScoreNode product() {
        ScoreNode left = sign();
        for (;;)
            if (take('*'))
                left = joined(ScoreNode::Kind::Multiply, std::move(left), sign());
            else if (take('/'))
                left = joined(ScoreNode::Kind::Divide, std::move(left), sign());
            else
                return left;
    }

    ScoreNode sign() {
        skipBlanks();
        const std::size_t begin = m_at;
        std::size_t count = 0;
        while (take('-')) ++count;
        ScoreNode node = atom();
        if (count % 2 == 0) return node;
        ScoreNode negated;
        negated.kind = ScoreNode::Kind::Negate;
        negated.begin = begin;
        negated.end = node.end;
        negated.arguments.push_back(std::move(node));
        return negated;
    }

    ScoreNode atom() {
        skipBlanks();
        if (m_at == m_text.size())
            fail(m_at, "the formula ends where a number or a name should stand", "Write one, like snapkv");
        if (take('(')) return inParentheses();
        const char c = m_text[m_at];
        if (isDigit(c) || c == '.') return number();
        if (isNameStart(c)) return nameOrCall();
        fail(m_at, fmt::format("'{}' begins neither a number nor a name", character()),
             "Write one, like 0.3 or snapkv");
    }

    ScoreNode inParentheses() {
        const std::size_t begin = m_at - 1;
        ScoreNode node = sum();
        if (!take(')')) fail(begin, "this parenthesis is not closed", "Add the closing parenthesis");
        node.begin = begin;
        node.end = m_at;
        return node;
    }

    ScoreNode number() {
        ScoreNode node;
        node.begin = m_at;
        const auto [end, status] = std::from_chars(m_text.data() + m_at, m_text.data() + m_text.size(), node.number);
        if (status != std::errc{} || !std::isfinite(node.number))
            fail(m_at, "this is no number", "Write it like 0.3 or 1e-6");
        m_at = node.end = static_cast<std::size_t>(end - m_text.data());
        return node;
    }

    std::string word() {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (isNameStart(m_text[m_at]) || isDigit(m_text[m_at]))) ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }

    ScoreNode nameOrCall() {
        const std::size_t begin = m_at;
        std::string name = word();
        const std::size_t end = m_at;
        if (take('(')) return call(begin, std::move(name));
        m_at = end;
        return feature(begin, std::move(name));
    }

    ScoreNode call(std::size_t begin, std::string name) {
        const auto at = std::ranges::find(kFunctions, name, &Function::name);
        if (at == kFunctions.end()) failName(begin, "there is no function '" + name + "'", name, true);
        ScoreNode node;
        node.kind = ScoreNode::Kind::Call;
        node.begin = begin;
        node.arguments.push_back(sum());
        while (take(',')) node.arguments.push_back(sum());
        if (!take(')')) fail(begin + name.size(), "this parenthesis is not closed", "Add the closing parenthesis");
        node.end = m_at;
        const std::size_t count = node.arguments.size();
        if (count < at->least || count > at->most)
            fail(begin,
                 fmt::format("{} takes {} {}, not {}", name, at->most == kAny ? "at least" : "exactly", at->least,
                             count),
                 "Separate arguments by commas");
        node.function = std::move(name);
        return node;
    }

    [[noreturn]] void failName(std::size_t at, const std::string& sentence, const std::string& name, bool call) const {
        std::vector<std::string> known;
        if (!call) {
            known = basicScoreFeatures();
            const auto policies = scoringPolicies();
            known.insert(known.end(), policies.begin(), policies.end());
        }
        for (const Function& function : kFunctions) known.emplace_back(function.name);
        fail(at, sentence, suggestName(name, known));
    }

    /// The word after a feature's `sign` (':' or '.'); empty when the sign does not come next.
    std::string wordBehind(char sign, const char* what) {
        if (m_at == m_text.size() || m_text[m_at] != sign) return {};
        const std::size_t at = m_at++;
        std::string behind = word();
        if (behind.empty())
            fail(at, fmt::format("no {} stands behind the '{}'", what, sign),
                 fmt::format("Name the {}, or leave it out", what));
        return behind;
    }

    /// The parameters in the brackets of a feature; empty when no bracket comes next.
    std::string inBrackets() {
        if (m_at == m_text.size() || m_text[m_at] != '[') return {};
        const std::size_t close = m_text.find(']', m_at);
        if (close == std::string_view::npos) fail(m_at, "this bracket is not closed", "Add the closing bracket");
        std::string settings(m_text.substr(m_at + 1, close - m_at - 1));
        if (settings.find_first_not_of(' ') == std::string::npos)
            fail(m_at, "no parameters stand in the brackets", "Name one, as in [window=16], or leave the brackets out");
        m_at = close + 1;
        return settings;
    }

    ScoreNode feature(std::size_t begin, std::string name) {
        ScoreFeature feature;
        feature.place = begin + 1;
        feature.name = std::move(name);
        feature.variant = wordBehind(':', "variant");
        feature.part = wordBehind('.', "part");
        feature.settings = inBrackets();
        feature.text = m_text.substr(begin, m_at - begin);
        checkFeature(feature, begin);
        ScoreNode node;
        node.kind = ScoreNode::Kind::Feature;
        node.begin = begin;
        node.end = m_at;
        node.feature = indexOf(std::move(feature));
        return node;
    }

    void refuseFunction(const std::string& name, std::size_t begin) const {
        const auto function = std::ranges::find(kFunctions, name, &Function::name);
        if (function == kFunctions.end()) return;
        std::string example = name + "(snapkv";
        for (std::size_t argument = 1; argument < function->least; ++argument)
            example += ", " + std::to_string(argument - 1);
        const char* arguments = function->least == 1 ? "argument" : "arguments";
        fail(begin, name + " is a function", fmt::format("Write it with its {}, like {})", arguments, example));
    }

    void checkFeature(const ScoreFeature& feature, std::size_t begin) const {
        const bool isBasic = isBasicScoreFeature(feature.name);
        if (isBasic && feature.text != feature.name)
            fail(begin + feature.name.size(), feature.name + " has no variants, parts or parameters",
                 "Write " + feature.name + " alone");
        if (isBasic) return;
        refuseFunction(feature.name, begin);
        const auto policies = scoringPolicies();
        if (std::ranges::find(policies, feature.name) == policies.end())
            failName(begin, "there is no feature '" + feature.name + "'", feature.name, false);
        try {
            checkScoreOf(feature);
        } catch (const Error& error) {
            fail(begin, error.parts().sentence, error.parts().remedy);
        }
    }

    /// A formula is computed once for all budgets, so scores that depend on the budget are refused.
    static void checkScoreOf(const ScoreFeature& feature) {
        const PolicySpec spec = scoreFeatureSpec(feature);
        const std::string name = feature.variant.empty() ? feature.name : feature.name + ":" + feature.variant;
        if (feature.part.empty() && choiceKindOf(spec.values) == ChoiceKind::ScoreOfBudget)
            throw Error({name + " has a score that changes with the budget (λ = fraction removed)", "",
                         "Fix it, as in " + name + "[lambda_rule=fixed,lambda=0.75]"});
        if (policyById(spec.policy).scoreLabel(spec.values).starts_with("no score"))
            throw Error({name + " gives tokens no score", "", "Choose another variant"});
        requireScoreSettings(feature);
    }

    std::size_t indexOf(ScoreFeature feature) {
        const auto at = std::ranges::find(m_features, feature.text, &ScoreFeature::text);
        if (at != m_features.end()) return static_cast<std::size_t>(at - m_features.begin());
        m_features.push_back(std::move(feature));
        return m_features.size() - 1;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    int m_nested = 0, m_operators = 0;
    std::vector<ScoreFeature> m_features;
};

} // namespace

ScoreNode parseScore(std::string_view text, std::vector<ScoreFeature>& features) {
    Parser parser(text);
    ScoreNode root = parser.parse();
    features = parser.takeFeatures();
    return root;
}

} // namespace kvscope
