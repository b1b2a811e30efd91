// Arrays of a running Python program as a one-layer capture, for the same code paths as files.
#include "app/python/array_capture.h"

#include "core/base/error.h"
#include "core/capture/memory_capture.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>

namespace py = pybind11;

namespace kvscope {

namespace {

constexpr const char* kShapes =
    "Give keys and values as (KV heads, tokens, head_dim), queries as (query heads, last tokens, head_dim)";

[[noreturn]] void refuse(const char* argument, std::string sentence, std::string remedy = kShapes) {
    throw Error({.sentence = std::move(sentence), .place = argument, .remedy = std::move(remedy), .path = {}});
}

/// A torch tensor as numpy array; bfloat16, which numpy lacks, is widened first.
py::object plain(const py::object& array) {
    if (!py::hasattr(array, "detach")) return array;
    const py::object tensor = array.attr("detach")().attr("cpu")();
    return py::str(tensor.attr("dtype")).cast<std::string>() == "torch.bfloat16" ? tensor.attr("float")() : tensor;
}

HostTensor tensorOf(const py::object& object, const char* argument) {
    const py::module_ numpy = py::module_::import("numpy");
    const py::object any = numpy.attr("asarray")(plain(object));
    if (std::string("fiu").find(any.attr("dtype").attr("kind").cast<std::string>()) == std::string::npos)
        refuse(argument, "the argument is no array of numbers");
    // through the buffer protocol, because numpy's structures differ between versions 1 and 2
    const py::buffer_info array = py::buffer(numpy.attr("ascontiguousarray")(any, "float32")).request();
    const std::size_t batch = array.ndim == 4 ? 1 : 0;
    if (array.ndim - static_cast<py::ssize_t>(batch) != 3 || (batch == 1 && array.shape[0] != 1))
        refuse(argument, fmt::format("the array has {} axes", array.ndim));
    HostTensor tensor{Shape{array.shape[batch], array.shape[batch + 1], array.shape[batch + 2]}, {}};
    if (tensor.shape.count() == 0) refuse(argument, "the array is empty");
    const auto* numbers = static_cast<const float*>(array.ptr);
    tensor.data.assign(numbers, numbers + array.size);
    for (std::size_t i = 0; i < tensor.data.size(); ++i)
        if (!std::isfinite(tensor.data[i])) {
            const auto row = static_cast<std::int64_t>(i) / tensor.shape[2];
            refuse(argument,
                   fmt::format("{} in head {}, row {}", std::isnan(tensor.data[i]) ? "NaN" : "infinity",
                               row / tensor.shape[1], row % tensor.shape[1]),
                   "Mask or repair it first");
        }
    return tensor;
}

void requireShape(const HostTensor& tensor, const Shape& shape, const char* argument) {
    if (!(tensor.shape == shape))
        refuse(argument, fmt::format("the shape is ({}, {}, {}), the other arrays ask for ({}, {}, {})",
                                     tensor.shape[0], tensor.shape[1], tensor.shape[2], shape[0], shape[1], shape[2]));
}

void numberTokens(MemoryCapture& capture, std::int64_t tokens) {
    capture.tokenTable.offsets.push_back(0);
    for (std::int64_t i = 0; i < tokens; ++i) {
        capture.tokenTable.ids.push_back(static_cast<std::int32_t>(i));
        capture.tokenTable.positions.push_back(i);
        capture.tokenTable.bytes += fmt::format(" #{}", i);
        capture.tokenTable.offsets.push_back(static_cast<std::int64_t>(capture.tokenTable.bytes.size()));
    }
}

/// [Hq] logits, or none.
std::vector<float> sinksOf(const py::object& given, std::int64_t queryHeads) {
    if (given.is_none()) return {};
    const auto sinks = py::list(plain(given)).cast<std::vector<float>>();
    const bool finite = std::all_of(sinks.begin(), sinks.end(), [](float x) { return std::isfinite(x); });
    if (std::ssize(sinks) != queryHeads || !finite)
        refuse("sinks", fmt::format("{} query heads need as many finite logits", queryHeads),
               "Give one for each query head");
    return sinks;
}

std::vector<std::int32_t> headMap(const py::object& given, int queryHeads, int kvHeads) {
    std::vector<std::int32_t> map;
    if (!given.is_none()) {
        map = py::list(given).cast<std::vector<std::int32_t>>();
        for (const std::int32_t head : map)
            if (static_cast<int>(map.size()) != queryHeads || head < 0 || head >= kvHeads)
                refuse("kv_of_q", fmt::format("{} query heads need as many KV heads below {}", queryHeads, kvHeads),
                       "Give one for each query head");
        return map;
    }
    if (queryHeads % kvHeads != 0)
        refuse("q", fmt::format("{} query heads do not divide among {} KV heads", queryHeads, kvHeads), "Give kv_of_q");
    for (int head = 0; head < queryHeads; ++head) map.push_back(head / (queryHeads / kvHeads));
    return map;
}

} // namespace

std::shared_ptr<const CaptureReader> captureOf(const LayerArrays& arrays) {
    auto capture = std::make_shared<MemoryCapture>();
    CaptureInfo& info = capture->captureInfo;
    HostTensor keys = tensorOf(arrays.keys, "k"), values = tensorOf(arrays.values, "v");
    const std::int64_t heads = keys.shape[0], tokens = keys.shape[1];
    requireShape(values, Shape{heads, tokens, values.shape[2]}, "v");
    if (tokens > (std::int64_t{1} << 24)) refuse("k", fmt::format("{} tokens are more than a prompt has", tokens));
    LayerInfo layer;
    layer.layer = LayerIndex(arrays.layer);
    layer.hasRope = !arrays.keysPreRope.is_none(); // without keys before RoPE the layer counts as having none
    layer.hasKeysPreRope = layer.hasRope;
    layer.attentionType = arrays.slidingWindow > 0 ? "sliding_attention" : "full_attention";
    layer.storedType = StoredType::Float32;
    layer.scaling = arrays.scaling.value_or(1 / std::sqrt(static_cast<double>(keys.shape[2])));
    if (!(arrays.softcap >= 0) || arrays.slidingWindow < 0)
        refuse(arrays.slidingWindow < 0 ? "sliding_window" : "softcap", "the number is negative", "Give 0 for none");
    layer.softcap = arrays.softcap;
    layer.slidingWindow = arrays.slidingWindow;
    std::int64_t queryHeads = heads;
    if (!arrays.queries.is_none()) {
        HostTensor queries = tensorOf(arrays.queries, "q");
        queryHeads = queries.shape[0];
        layer.queryCount = queries.shape[1];
        requireShape(queries, Shape{queryHeads, std::min(layer.queryCount, tokens), keys.shape[2]}, "q");
        capture->tensors[{layer.layer, TensorRole::Queries}] = std::move(queries);
    }
    if (layer.hasKeysPreRope) {
        HostTensor before = tensorOf(arrays.keysPreRope, "k_pre");
        requireShape(before, keys.shape, "k_pre");
        capture->tensors[{layer.layer, TensorRole::KeysPreRope}] = std::move(before);
    }
    layer.sinks = sinksOf(arrays.sinks, queryHeads);
    layer.gqaGroupOf = headMap(arrays.gqaGroupOf, static_cast<int>(queryHeads), static_cast<int>(heads));
    info.fileName = info.path = "arrays";
    info.hash = "arrays";
    info.numLayers = std::max(arrays.numLayers, arrays.layer + 1);
    info.numQueryHeads = static_cast<int>(queryHeads);
    info.numKvHeads = static_cast<int>(heads);
    info.headDim = static_cast<int>(keys.shape[2]);
    info.valueDim = static_cast<int>(values.shape[2]);
    info.numTokens = tokens;
    info.layers = {layer};
    numberTokens(*capture, tokens);
    capture->tensors[{layer.layer, TensorRole::Keys}] = std::move(keys);
    capture->tensors[{layer.layer, TensorRole::Values}] = std::move(values);
    return capture;
}

} // namespace kvscope
