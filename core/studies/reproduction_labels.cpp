// What figures of reproductions call measures, parameters and choices.
#include "core/studies/reproduction_labels.h"
#include "core/metrics/measures.h"
#include "core/policies/policy.h"

#include <map>

namespace kvscope {

std::string reproductionMeasureLabel(const std::string& measure) {
    static const std::map<std::string, std::string> own = {{"policy_ms", "Time of the policy, ms"},
                                                           {"spectral_drawn", "Spectral distortion of drawn rows"},
                                                           {"spectral_top", "Spectral distortion of the best rows"},
                                                           {"overlap", "Overlap of the kept lists (Jaccard)"},
                                                           {"kept_share", "Mean of min(1, N / L)"},
                                                           {"prompts", "Prompts of so many tokens"}};
    const auto at = own.find(measure);
    return at == own.end() ? measureById(measure).label : at->second;
}

const ParameterSpec* variedSpec(const Reproduction& reproduction) {
    for (const std::string& policy : reproduction.policies)
        for (const ParameterSpec& spec : *policyById(PolicySpec::parse(policy).policy).card().parameters)
            if (spec.id == reproduction.varied.id) return &spec;
    return nullptr;
}

std::string choiceLabel(const ParameterSpec& spec, const std::string& text) {
    for (const ParameterChoice& choice : spec.choices)
        if (choice.id == text) return choice.label;
    return text;
}

} // namespace kvscope
