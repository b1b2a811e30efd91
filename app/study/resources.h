#pragma once

#include <string>

namespace kvscope {

/// What travels beside the program (lessons, sample captures), by its path in the repository: of an installed or
/// unpacked program in ../share/kvscope, of a built one in the checkout around its build folder. Empty: it is not
/// there. `programFolder`: the folder of this program where it is empty.
std::string findResource(const std::string& name, const std::string& programFolder = {});

} // namespace kvscope
