#pragma once

#include <stdexcept>
#include <string>

namespace kvscope {

/// An error that a user or a file can cause; bugs of the program are assertions instead. what() reads
/// "sentence (place). remedy: path".
class Error : public std::runtime_error {
public:
    struct Parts {
        std::string sentence = {}; ///< what is wrong, without the final full stop
        std::string place = {};    ///< data set, parameter or option; may be empty
        std::string remedy = {};   ///< what to do about it; may be empty
        std::string path = {};     ///< the file; may be empty
    };

    explicit Error(Parts parts);

    const Parts& parts() const noexcept { return m_parts; }

private:
    Parts m_parts;
};

} // namespace kvscope
