// Turns the members of a worker's JSON-RPC error into the parts of an Error.
#include "app/live/worker_error.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <utility>

namespace kvscope::live {

std::string textOf(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<double> numbersOf(const Json& list) {
    std::vector<double> numbers;
    if (list.is_array())
        for (const Json& value : list)
            numbers.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
    return numbers;
}

Error workerError(const Json& error) {
    const Json data = error.value("data", Json::object());
    Error::Parts parts{.sentence = textOf(error, "message"), .place = {}, .remedy = {}, .path = {}};
    if (data.is_object()) {
        parts.place = textOf(data, "place");
        parts.remedy = textOf(data, "remedy");
    }
    while (parts.sentence.ends_with('.')) parts.sentence.pop_back();
    if (parts.sentence.empty()) parts.sentence = "the worker refuses without a reason";
    return Error(std::move(parts));
}

} // namespace kvscope::live
