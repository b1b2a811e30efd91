#pragma once

#include "core/base/host_tensor.h"
#include "core/capture/import/tensor_archive.h"

namespace kvscope {

/// Which axis of a tensor holds what: [heads, tokens, d] as Transformers' caches, or [tokens, heads, d].
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

/// Takes [heads, rows, d], [rows, heads, d], either with a leading batch of one, or [rows, heads * d]. `heads` is 0
/// when nobody says how many there are: then Auto takes the shorter axis of the two for the heads if it is the first.
/// Otherwise, and where both axes are equally long, Auto refuses. Throws Error naming the tensor.
HeadView headView(const ArchiveTensor& tensor, AxisOrder order, int heads);

/// Order of queries where nobody says how many heads there are: that of the keys, unless one axis alone is as long as
/// the prompt. Then keys and values of one tensor (`together`) may have the other order; keys apart throw Error.
AxisOrder orderOfQueries(const ArchiveTensor& tensor, AxisOrder ofKeys, std::int64_t tokens, bool together);

/// Keys and values in one tensor: [2, rows, heads * d] and [rows, 2, heads, d] as vLLM's connector wrote them, [rows,
/// heads, 2 d] as it writes them, and [2, rows, heads, d]; all but the first with heads before rows too, if `order` or
/// `heads` says so. Where neither does, Auto refuses an axis of rows that is not the longer one. Throws Error naming
/// the tensor.
KeyValueViews keyValueViews(const ArchiveTensor& tensor, AxisOrder order, int heads);

/// The numbers as float, from the tensor's `bytes`. Throws Error for NaN and infinity (head and row named) and for
/// numbers beyond float. `firstToken`: index of the first row in messages.
HostTensor gather(const HeadView& view, const std::vector<std::byte>& bytes, std::int64_t firstToken);

} // namespace kvscope
