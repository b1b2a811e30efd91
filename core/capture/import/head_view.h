#pragma once

#include "core/base/host_tensor.h"
#include "core/capture/import/tensor_archive.h"

namespace kvscope {

/// Order of a tensor's axes: [heads, tokens, d] as in Transformers' caches, or [tokens, heads, d].
enum class AxisOrder { Auto, HeadsFirst, TokensFirst };

/// A tensor [heads, rows, width] somewhere in an archive's tensor; strides and offset count numbers.
struct HeadView {
    const ArchiveTensor* tensor = nullptr;
    std::int64_t heads = 0, rows = 0, width = 0;
    std::int64_t offset = 0, headStride = 0, rowStride = 0;
};

struct KeyValueViews {
    HeadView keys, values;
};

/// Takes [heads, rows, d], [rows, heads, d], either with a leading batch of one, or [rows, heads * d]. `heads` is 0 if
/// their number is unknown: then Auto takes the first axis for the heads if it is shorter than the second, and else
/// refuses. With a known number Auto refuses two axes of equal length. Throws Error naming the tensor.
HeadView headView(const ArchiveTensor& tensor, AxisOrder order, int heads);

/// Axis order of queries if the number of heads is unknown: that of the keys, unless just one axis is as long as the
/// prompt: it holds the tokens. A differing order throws Error unless keys and values are one tensor (`together`).
AxisOrder orderOfQueries(const ArchiveTensor& tensor, AxisOrder ofKeys, std::int64_t tokens, bool together);

/// Keys and values in one tensor: [2, rows, heads * d] and [rows, 2, heads, d] as vLLM's connector used to write them,
/// [rows, heads, 2 d] as it writes them now, and [2, rows, heads, d]; all but the first also with heads before rows, if
/// `order` or `heads` says so. Where neither does, Auto refuses tensors with no more rows than heads. Throws Error
/// naming the tensor.
KeyValueViews keyValueViews(const ArchiveTensor& tensor, AxisOrder order, int heads);

/// The numbers as float, from the tensor's `bytes`. Throws Error for NaN and infinity (head and row named) and for
/// numbers beyond float. `firstToken`: index of the first row in messages.
HostTensor gather(const HeadView& view, const std::vector<std::byte>& bytes, std::int64_t firstToken);

} // namespace kvscope
