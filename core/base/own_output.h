#pragma once

#include <string>
#include <vector>

namespace kvscope {

/// Throws Error when the file at `path` is one of `sources` under any name, so that an output cannot replace its input.
/// Sources that do not exist are ignored. `place`: the option that named the path.
void checkIsNoSource(const std::string& path, const std::vector<std::string>& sources, const std::string& place = {});

/// Whether both names mean one file, which need not exist yet.
bool isSameFile(const std::string& a, const std::string& b);

} // namespace kvscope
