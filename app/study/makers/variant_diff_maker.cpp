// Why two variants keep different tokens: every variant runs as it is, then each differing parameter is changed alone,
// which shows what that parameter causes.
#include "app/study/makers/variant_diff_maker.h"

#include "app/study/makers/view_data_maker.h"
#include "core/base/error.h"
#include "core/policies/policy.h"
#include "core/run/head_means.h"
#include "views/variant_diff/variant_diff_data.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <regex>
#include <set>

namespace kvscope {

namespace {

/// The chosen row of a choice; for other kinds a row named as typed.
ParameterChoice chosenRow(const ParameterSpec& spec, const std::string& value) {
    for (const ParameterChoice& choice : spec.choices)
        if (choice.id == value) return choice;
    return {value, value, {}};
}

std::vector<VariantCause> causesOf(const ParameterValues& from, const ParameterValues& to) {
    std::vector<VariantCause> causes;
    for (const ParameterSpec& spec : from.table()) {
        const std::string before = from.text(spec.id), after = to.text(spec.id);
        if (before == after) continue;
        const ParameterChoice left = chosenRow(spec, before), right = chosenRow(spec, after);
        const std::string help = spec.help + " " + left.help + " " + right.help;
        causes.push_back({spec.id, spec.label, before, after, trapsIn(help), -1, left.label, right.label});
    }
    return causes;
}

std::vector<std::string> allTraps(const VariantList& list) {
    std::set<std::string> traps;
    for (const VariantCause& cause : list.causes) traps.insert(cause.traps.begin(), cause.traps.end());
    for (const std::string& trap : trapsIn(list.summary)) traps.insert(trap);
    return {traps.begin(), traps.end()};
}

class DiffMaker : ViewDataWork {
public:
    explicit DiffMaker(const ViewDataWork& work) : ViewDataWork(work) {
        const PaneRequest& shown = request.shownPane();
        if (!shown.recordedPath.empty())
            throw Error({"a recorded list has no variants", "", "Make a pane with a policy the active one"});
        m_run = shown.run;
        m_pane = m_run.policy.values;
        const PolicyCard& card = policyById(m_run.policy.policy).card();
        static_cast<PaneName&>(m_data) = policyIdentityOf(m_run, static_cast<std::size_t>(request.activePane));
        m_data.budget = m_run.budget.text();
        planLists(card);
        for (const VariantList& list : m_data.lists) m_total += 1 + static_cast<double>(list.causes.size());
        std::swap(m_planned, m_data.lists);
        m_data.variants = m_planned.size();
    }

    ViewDataMaker::Value run() {
        for (std::size_t i = 0; i < m_planned.size(); ++i) {
            m_data.lists.push_back(m_planned[i]);
            runList(m_data.lists.back(), m_values[i]);
            deliver(m_data);
            if (!m_data.lists.front().error.empty()) // without the first list there is nothing to compare with
                return std::make_shared<const VariantDiffData>(m_data);
        }
        for (VariantList& list : m_data.lists)
            for (VariantCause& cause : list.causes) {
                cause.alone = countAlone(cause);
                deliver(m_data);
            }
        return std::make_shared<const VariantDiffData>(m_data);
    }

private:
    void plan(std::string id, std::string label, std::string summary, const ParameterValues& values) {
        VariantList list;
        list.id = std::move(id);
        list.label = std::move(label);
        list.summary = std::move(summary);
        if (!m_values.empty()) list.causes = causesOf(m_values.front(), values);
        list.traps = allTraps(list);
        m_data.lists.push_back(std::move(list));
        m_values.push_back(values);
    }

    void planLists(const PolicyCard& card) {
        const std::string asSet = std::string("Pane ") + m_data.letter + ", as set";
        const bool paneFirst = request.options.choice("reference") == "pane";
        if (paneFirst) plan("", asSet, "the policy as it is set in the active pane", m_pane);
        bool isVariant = false;
        for (const PolicyVariant& variant : card.variants) {
            const ParameterValues values = variantValues(card, variant.id);
            isVariant |= values == m_pane;
            plan(variant.id, variant.label, variant.summary, values);
        }
        if (!paneFirst && !isVariant) plan("", asSet, "the policy as it is set in the active pane", m_pane);
    }

    std::shared_ptr<const RunResult> runWith(const ParameterValues& values, bool measure) {
        RunRequest run = m_run;
        run.policy.values = values;
        run.measure = measure;
        const Checkpoint part = checkpoint.part(m_done / m_total, (m_done + 1) / m_total);
        m_done += 1;
        part.at(0, 1); // cached runs report no progress
        return runner.run(run, part);
    }

    void runList(VariantList& list, const ParameterValues& values) {
        try {
            const auto result = runWith(values, true);
            list.kept = result->selection.heads[request.kvHead.value].kept;
            list.outputError = meanErrorOf(*result, *request.capture, request.kvHead);
            list.balancedNothing = balancedNothing(*result);
            m_data.visible = result->visible;
        } catch (const Error& error) {
            list.error = error.what();
            list.causes.clear();
        }
    }

    /// Number of tokens whose state changes with this parameter alone; -1 for an invalid combination.
    std::int64_t countAlone(const VariantCause& cause) {
        try {
            ParameterValues values = m_values.front();
            values.setText(cause.id, cause.to);
            const auto result = runWith(values, false);
            const std::vector<TokenIndex>& kept = result->selection.heads[request.kvHead.value].kept;
            std::vector<TokenIndex> changed;
            const std::vector<TokenIndex>& reference = m_data.lists.front().kept;
            std::ranges::set_symmetric_difference(kept, reference, std::back_inserter(changed));
            return std::ssize(changed);
        } catch (const Error&) {
            return -1;
        }
    }

    RunRequest m_run;
    ParameterValues m_pane;
    VariantDiffData m_data;
    std::vector<VariantList> m_planned;
    std::vector<ParameterValues> m_values; ///< of the planned runs
    double m_done = 0, m_total = 0;
};

} // namespace

std::vector<std::string> trapsIn(std::string_view text) {
    static const std::regex inParentheses("\\(([^)]*)\\)"), id("(^|[ ,])([XBSKCAL][0-9]{1,2})(?=$|,)");
    std::set<std::string> traps;
    const std::string words(text);
    for (std::sregex_iterator group(words.begin(), words.end(), inParentheses), end; group != end; ++group) {
        const std::string inside = (*group)[1];
        for (std::sregex_iterator trap(inside.begin(), inside.end(), id); trap != end; ++trap) traps.insert((*trap)[2]);
    }
    return {traps.begin(), traps.end()};
}

ViewDataMaker variantDiffMaker() {
    using enum DataScope;
    return {"variant_diff", {Layer, KvHead, Cut, ActivePane}, runMaker<DiffMaker>};
}

} // namespace kvscope
