#pragma once

#include <string>

namespace kvscope {

/// What travels beside the program (lessons, sample captures), by its path in the repository: of an installed or
/// unpacked program in ../share/kvscope, of a built one in the checkout around its build folder. Empty: it is not
/// there.
std::string findResource(const std::string& name);

} // namespace kvscope
