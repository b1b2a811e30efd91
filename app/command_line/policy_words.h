#pragma once

#include <string>
#include <vector>

namespace kvscope {

/// `--policy A B` means `--policy A --policy B`: the words of a command line with the option before each of its
/// policies. A word after a policy is one too when it begins with a policy's id and is no file; so captures may stand
/// anywhere. Before the view of `plot` a bare id is taken for the view, because some views are called like their
/// policy.
std::vector<std::string> withEachPolicyNamed(const std::vector<std::string>& words);

} // namespace kvscope
