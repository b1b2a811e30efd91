#pragma once

#include <string>
#include <vector>

namespace kvscope {

/// Throws Error when the file at `path` is one of `sources` under whatever name: what is read must not be replaced by
/// what is made from it. Paths where nothing lies are no sources. `place`: the option that named the path.
void checkIsNoSource(const std::string& path, const std::vector<std::string>& sources, const std::string& place = {});

/// Whether both names mean one file, which need not be there yet.
bool isSameFile(const std::string& a, const std::string& b);

} // namespace kvscope
