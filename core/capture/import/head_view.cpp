// Finds the axes of a tensor from its shape and reads it as [heads, rows, width] with strides.
#include "core/capture/import/head_view.h"

#include "core/capture/widen.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <cstring>

namespace kvscope {

namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 24, kLargestSize = 65536;
constexpr const char* kSayHeads =
    "Say how many heads there are: --config with what kvscope-describe writes for the model";
constexpr const char* kSayOrder = "Add --layout hnd (heads first) or --layout nhd (tokens first) to kvscope convert";

HeadView headsFirst(const ArchiveTensor& tensor, std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return {&tensor, heads, rows, width, 0, rows * width, width};
}

HeadView tokensFirst(const ArchiveTensor& tensor, std::int64_t heads, std::int64_t rows, std::int64_t width) {
    return {&tensor, heads, rows, width, 0, width, heads * width};
}

const HeadView& checked(const HeadView& view) {
    if (view.heads < 1 || view.heads > kLargestSize || view.width < 1 || view.width > kLargestSize || view.rows < 1 ||
        view.rows > kMostTokens)
        refuseTensor(*view.tensor,
                     fmt::format("{} heads, {} tokens and {} numbers a token are no layer's tensor", view.heads,
                                 view.rows, view.width),
                     "Save tensors of shape (heads, tokens, head_dim)");
    return view;
}

/// An axis of a tensor: how long it is, and the numbers from one entry to the next.
struct Axis {
    std::int64_t size, stride;
};

HeadView viewOf(const ArchiveTensor& tensor, AxisOrder order, Axis first, Axis second, std::int64_t width) {
    if (order == AxisOrder::HeadsFirst) std::swap(first, second);
    return {&tensor, second.size, first.size, width, 0, second.stride, first.stride};
}

AxisOrder resolve(const ArchiveTensor& tensor, AxisOrder order, std::int64_t first, std::int64_t second, int heads) {
    if (order != AxisOrder::Auto) return order;
    if (heads > 0 && first != heads && second != heads)
        refuseTensor(tensor, fmt::format("neither axis of the shape {} has {} heads", tensor.shapeText(), heads),
                     kSayOrder);
    const bool open = heads > 0 ? first == second : first >= second;
    if (open)
        refuseTensor(tensor, fmt::format("the shape {} does not say which axis holds the heads", tensor.shapeText()),
                     kSayOrder);
    if (heads > 0) return first == heads ? AxisOrder::HeadsFirst : AxisOrder::TokensFirst;
    return AxisOrder::HeadsFirst;
}

/// Axis order of keys and values in one tensor: tokens first, as vLLM writes them, unless `order` or `heads` says
/// otherwise. Throws Error where the lengths contradict that.
AxisOrder orderTogether(const ArchiveTensor& tensor, AxisOrder order, std::int64_t first, std::int64_t second,
                        int heads) {
    if (order != AxisOrder::Auto) return order;
    if (heads > 0 && (first == heads || second == heads)) return resolve(tensor, order, first, second, heads);
    if (heads <= 0 && first <= second)
        refuseTensor(tensor, fmt::format("the shape {} does not say which axis holds the heads", tensor.shapeText()),
                     kSayOrder);
    return AxisOrder::TokensFirst;
}

std::vector<std::int64_t> withoutBatch(const ArchiveTensor& tensor) {
    std::vector<std::int64_t> shape = tensor.shape;
    if (shape.size() == 4) {
        if (shape.front() != 1)
            refuseTensor(tensor, fmt::format("the tensor holds a batch of {} prompts", shape.front()),
                         "Save one prompt a file");
        shape.erase(shape.begin());
    }
    return shape;
}

std::int64_t widthOf(const ArchiveTensor& tensor, std::int64_t together, int heads) {
    if (heads <= 0)
        refuseTensor(tensor, fmt::format("{} numbers a token stand in one row, heads undivided", together), kSayHeads);
    if (together % heads != 0)
        refuseTensor(tensor, fmt::format("{} numbers a token do not divide among {} heads", together, heads),
                     kSayHeads);
    return together / heads;
}

float widen(const std::byte* at, NumberType type) {
    if (type == NumberType::Float64) {
        double value = 0;
        std::memcpy(&value, at, sizeof value);
        return static_cast<float>(value);
    }
    float value = 0;
    if (type == NumberType::Float32) {
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    (type == NumberType::Float16 ? widenFloat16 : widenBfloat16)({&bits, 1}, &value);
    return value;
}

void widenRow(const std::byte* at, NumberType type, std::span<float> out) {
    const auto step = static_cast<std::size_t>(numberBytes(type));
    if (type == NumberType::Float32) {
        std::memcpy(out.data(), at, out.size_bytes());
        return;
    }
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = widen(at + i * step, type);
}

} // namespace

HeadView headView(const ArchiveTensor& tensor, AxisOrder order, int heads) {
    const std::vector<std::int64_t> shape = withoutBatch(tensor);
    if (shape.size() == 2) return checked(tokensFirst(tensor, heads, shape[0], widthOf(tensor, shape[1], heads)));
    if (shape.size() != 3)
        refuseTensor(tensor,
                     fmt::format("the shape {} is none of a layer's keys, values or queries", tensor.shapeText()),
                     "Save tensors of shape (heads, tokens, head_dim)");
    if (resolve(tensor, order, shape[0], shape[1], heads) == AxisOrder::HeadsFirst)
        return checked(headsFirst(tensor, shape[0], shape[1], shape[2]));
    return checked(tokensFirst(tensor, shape[1], shape[0], shape[2]));
}

AxisOrder orderOfQueries(const ArchiveTensor& tensor, AxisOrder ofKeys, std::int64_t tokens, bool together) {
    const std::vector<std::int64_t> shape = withoutBatch(tensor);
    if (shape.size() != 3 || (shape[0] == tokens) == (shape[1] == tokens)) return ofKeys;
    const AxisOrder order = shape[0] == tokens ? AxisOrder::TokensFirst : AxisOrder::HeadsFirst;
    if (order != ofKeys && !together)
        refuseTensor(
            tensor,
            fmt::format("the {} tokens stand on another axis of the shape {} than on that of the keys", tokens,
                        tensor.shapeText()),
            "Save queries with the axes of the keys, or say how many heads there are with --config and without "
            "--layout");
    return order;
}

KeyValueViews keyValueViews(const ArchiveTensor& tensor, AxisOrder order, int heads) {
    const std::vector<std::int64_t>& s = tensor.shape;
    HeadView keys;
    std::int64_t valuesAt = 0;
    if (s.size() == 2)
        refuseTensor(
            tensor,
            "one row a token is the latent cache of multi-head latent attention, which holds no keys and values",
            "Capture the model's keys and values with kvscope-capture");
    if (s.size() == 3 && s[0] == 2 && order != AxisOrder::HeadsFirst) {
        keys = tokensFirst(tensor, heads, s[1], widthOf(tensor, s[2], heads));
        valuesAt = s[1] * s[2];
    } else if (s.size() == 3 && s[2] % 2 == 0) {
        keys = viewOf(tensor, orderTogether(tensor, order, s[0], s[1], heads), {s[0], s[1] * s[2]}, {s[1], s[2]},
                      s[2] / 2);
        valuesAt = s[2] / 2;
    } else if (s.size() == 4 && s[0] == 2 && (s[1] != 2 || order == AxisOrder::HeadsFirst || heads == 2)) {
        keys = viewOf(tensor, orderTogether(tensor, order, s[1], s[2], heads), {s[1], s[2] * s[3]}, {s[2], s[3]}, s[3]);
        valuesAt = s[1] * s[2] * s[3];
    } else if (s.size() == 4 && s[1] == 2) {
        keys = viewOf(tensor, orderTogether(tensor, order, s[0], s[2], heads), {s[0], 2 * s[2] * s[3]}, {s[2], s[3]},
                      s[3]);
        valuesAt = s[2] * s[3];
    } else {
        refuseTensor(tensor,
                     fmt::format("the shape {} is none in which keys and values lie together", tensor.shapeText()),
                     "Save keys and values apart");
    }
    HeadView values = checked(keys);
    values.offset = valuesAt;
    return {keys, values};
}

HostTensor gather(const HeadView& view, const std::vector<std::byte>& bytes, std::int64_t firstToken) {
    const NumberType type = view.tensor->type;
    const std::int64_t step = numberBytes(type);
    HostTensor out{Shape{view.heads, view.rows, view.width},
                   {},
                   type == NumberType::Float16    ? StoredType::Float16
                   : type == NumberType::Bfloat16 ? StoredType::Bfloat16
                                                  : StoredType::Float32};
    out.data.resize(static_cast<std::size_t>(out.shape.count()));
    for (std::int64_t head = 0; head < view.heads; ++head)
        for (std::int64_t row = 0; row < view.rows; ++row) {
            const std::int64_t from = (view.offset + head * view.headStride + row * view.rowStride) * step;
            const std::span<float> to(out.data.data() + (head * view.rows + row) * view.width,
                                      static_cast<std::size_t>(view.width));
            assert(from + view.width * step <= static_cast<std::int64_t>(bytes.size()));
            widenRow(bytes.data() + from, type, to);
            for (const float number : to)
                if (!std::isfinite(number))
                    refuseTensor(*view.tensor,
                                 fmt::format("{} in head {}, token {}", std::isnan(number) ? "NaN" : "infinity", head,
                                             firstToken + row),
                                 "Save the layer again or leave it out");
        }
    return out;
}

} // namespace kvscope
