// The extension module `kvscope._core`: captures, kept lists, measures and exceptions around the core. The Python
// package around it checks arguments.
#include "app/python/array_capture.h"
#include "app/python/result_arrays.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "core/engine/engine.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/policy.h"
#include "core/run/random_files.h"
#include "core/run/run.h"
#include "core/run/stored_rows.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace kvscope {

namespace {

using Names = std::vector<std::string>;
using Array = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

/// How a run is to be done, as evict() and measure() take it.
struct RunWords {
    std::string policy; ///< with its budget: "keydiff:kvpress@0.25"
    std::string cut = "none";
    std::uint64_t seed = 0;
    std::string uniforms, sketch; ///< FILE.h5:/path, replayed
};

constexpr std::chrono::milliseconds kSignalInterval{50};

std::shared_ptr<const LayerRunner> makeRunner(int threads, std::size_t cacheBytes) {
    return std::make_shared<const LayerRunner>(std::shared_ptr<const Engine>(makeCpuEngine(threads, {})), cacheBytes);
}

/// Does `work` with the interpreter's lock released. Ctrl+C stops the work and raises KeyboardInterrupt; any other
/// signal raises what its Python handler raises. Throws Error.
void withoutLock(const std::function<void(const Checkpoint&)>& work) {
    std::stop_source stop;
    std::exception_ptr raised; // by the handler of a signal
    auto last = std::chrono::steady_clock::now();
    const auto caller = std::this_thread::get_id(); // Python runs the handlers of signals in its main thread only
    const Checkpoint checkpoint(stop.get_token(), [&](double, double) { // one call at a time
        const auto now = std::chrono::steady_clock::now();
        if (raised || std::this_thread::get_id() != caller || now - last < kSignalInterval) return;
        last = now;
        const nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() == 0) return;
        raised = std::make_exception_ptr(nb::python_error()); // raised again where Python called
        stop.request_stop();
    });
    try {
        const nb::gil_scoped_release released;
        work(checkpoint);
    } catch (const Cancelled&) {
        if (!raised) throw;
    }
    if (raised) std::rethrow_exception(raised); // also where the signal came at the last report
}

/// Runs one layer. Throws Error with the command line's sentences.
std::shared_ptr<const RunResult> runLayer(const LayerRunner& runner, std::shared_ptr<const CaptureReader> capture,
                                          LayerIndex layer, const RunWords& words, bool measure) {
    RunRequest request;
    request.policy = PolicySpec::parse(words.policy);
    if (!request.policy.budget && policyById(request.policy.policy).card().usesBudget)
        throw Error({"policy '" + words.policy + "' has no budget", "policy",
                     "Write " + words.policy + "@0.25 (fraction kept) or " + words.policy + "@2048t (tokens)"});
    request.budget = request.policy.budget.value_or(Budget{});
    request.cut = Cut::resolve(words.cut, *capture);
    request.random = words.uniforms.empty() && words.sketch.empty()
                         ? nullptr
                         : replayRandom(words.uniforms, words.sketch, capture->info());
    request.capture = std::move(capture);
    request.layer = layer;
    request.seed = words.seed;
    request.measure = measure;
    std::shared_ptr<const RunResult> result;
    withoutLock([&](const Checkpoint& checkpoint) { result = runner.run(request, checkpoint); });
    return result;
}

constexpr std::size_t kArrayCache = std::size_t{256} << 20; // of one call: a run shares its tensors with its measures
constexpr std::size_t kCaptureCache = std::size_t{2} << 30;

/// An open capture with its cached results.
struct OpenCapture {
    std::shared_ptr<const CaptureReader> reader;
    std::shared_ptr<const LayerRunner> runner;

    const CaptureInfo& info() const { return reader->info(); }
    const LayerInfo& layer(int index) const { return info().layerInfo(LayerIndex(index)); }
    nb::object tensor(int index, TensorRole role) const {
        HostTensor tensor;
        withoutLock([&](const Checkpoint& checkpoint) { tensor = reader->read(LayerIndex(index), role, checkpoint); });
        return arrayOf(std::move(tensor));
    }
    LayerSelection evict(int index, const std::string& policy, const std::string& cut, std::uint64_t seed,
                         const std::string& uniforms, const std::string& sketch) const {
        return LayerSelection(
            runLayer(*runner, reader, layer(index).layer, {policy, cut, seed, uniforms, sketch}, false));
    }
    nb::dict measure(int index, const std::string& policy, const Names& metrics, const std::string& cut,
                     std::uint64_t seed) const {
        for (const std::string& metric : metrics) measureById(metric);
        const auto result = runLayer(*runner, reader, layer(index).layer, {policy, cut, seed, {}, {}}, true);
        requireFidelity(*result);
        std::vector<MeasureValues> measured;
        withoutLock([&](const Checkpoint& checkpoint) { measured = runner->measure(*result, metrics, checkpoint); });
        nb::dict values;
        for (const MeasureValues& one : measured) values[one.id.c_str()] = arrayOf(one.perHead);
        return values;
    }
    nb::list texts() const {
        nb::list texts;
        for (TokenIndex token = 0; token < info().numTokens; ++token) {
            const std::string_view bytes = reader->tokens().textOf(token);
            texts.append(nb::steal(PyUnicode_DecodeUTF8(bytes.data(), std::ssize(bytes), "replace")));
        }
        return texts;
    }
    std::vector<std::tuple<int, int, std::string>> segments() const {
        std::vector<std::tuple<int, int, std::string>> segments;
        for (const Segment& segment : reader->tokens().segments)
            segments.emplace_back(segment.begin, segment.end, std::string(segmentName(segment.kind)));
        return segments;
    }
    std::vector<int> layers() const {
        std::vector<int> layers;
        for (const LayerInfo& layer : info().layers) layers.push_back(layer.layer.value);
        return layers;
    }
    /// Inverse frequencies, interleaved, first rotated component, magnitude; empty where the frequencies are not known.
    std::optional<std::tuple<std::vector<float>, bool, int, double>> rope(int index) const {
        const RopeInfo& rope = info().rope;
        if (!layer(index).hasRope || reader->inverseFrequencies(LayerIndex(index)).empty()) return {};
        return std::tuple{reader->inverseFrequencies(LayerIndex(index)), rope.interleaved, rope.rotaryBegin,
                          rope.attentionScaling};
    }
};

HostTensor tensorOf(const Array& array) {
    const auto size = [&](std::size_t axis) { return static_cast<std::int64_t>(array.shape(axis)); };
    return {Shape{size(0), size(1), size(2)}, std::vector<float>(array.data(), array.data() + array.size())};
}

std::optional<HostTensor> tensorOf(const std::optional<Array>& array) {
    return array ? std::optional(tensorOf(*array)) : std::nullopt;
}

OpenCapture openArrays(const Array& keys, const Array& values, const std::optional<Array>& queries,
                       const std::optional<Array>& keysPreRope, const std::vector<float>& sinks,
                       const std::vector<std::int32_t>& groups, const std::vector<std::int64_t>& positions,
                       const std::vector<float>& frequencies, bool interleaved, int rotaryBegin, double magnitude,
                       std::optional<double> scaling, double softcap, std::int64_t slidingWindow, int layer,
                       int numLayers, int threads) {
    RopeInfo rope;
    rope.type = frequencies.empty() ? "none" : "given";
    rope.attentionScaling = magnitude;
    rope.interleaved = interleaved;
    rope.rotaryBegin = rotaryBegin;
    return {captureOf({tensorOf(keys), tensorOf(values), tensorOf(queries), tensorOf(keysPreRope), sinks, groups,
                       positions, frequencies, rope, scaling, softcap, slidingWindow, layer, numLayers}),
            makeRunner(threads, kArrayCache)};
}

/// Sets Python's error to an instance of kvscope.Error (the payload) with the parts of the C++ one.
void translateError(const std::exception_ptr& thrown, void* type) {
    try {
        std::rethrow_exception(thrown);
    } catch (const Error& error) {
        const nb::object instance = nb::borrow<nb::object>(static_cast<PyObject*>(type))(error.what());
        instance.attr("sentence") = error.parts().sentence;
        instance.attr("place") = error.parts().place;
        instance.attr("remedy") = error.parts().remedy;
        instance.attr("path") = error.parts().path;
        PyErr_SetObject(static_cast<PyObject*>(type), instance.ptr());
    }
}

/// Returns a function that adds a read-only property to the class: name, docstring, getter.
template <class Class> auto factsOf(nb::class_<Class>& stated) {
    return [&stated](const char* name, const char* doc, auto get) { stated.def_prop_ro(name, get, doc); };
}

void addSelection(nb::module_& module) {
    nb::class_<LayerSelection> selection(module, "Selection",
                                         "What a policy keeps of one layer. Arrays view the result and are read-only.");
    const auto fact = factsOf(selection);
    fact("kept", "For each KV head the kept tokens, rising; of query heads with sets of their own the union.",
         &LayerSelection::kept);
    fact("query_heads", "For each query head its own kept tokens, rising, or None: those of a group share a set.",
         &LayerSelection::queryHeads);
    fact("numerator_weights", "Per kept token, or None: all 1.",
         [](const LayerSelection& s) { return s.weights(true); });
    fact("denominator_weights", "Per kept token, or None: all 1.",
         [](const LayerSelection& s) { return s.weights(false); });
    fact("scores", "[KV heads, tokens before the cut], or None; the group's where query heads have sets of their own.",
         &LayerSelection::scores);
    fact("query_head_scores", "[query heads, tokens before the cut], or None: those of a group share a set.",
         &LayerSelection::queryHeadScores);
    fact("margins", "For each KV head how far the closest decision was from going the other way.",
         &LayerSelection::margins);
    fact("retention", "Share of the tokens before the cut that a query head keeps.", &LayerSelection::retention);
    fact("stored_tokens", "What a KV head stores, in tokens with a key and a value each; mean over the KV heads.",
         [](const LayerSelection& s) { return meanStoredTokens(s.result()); });
    fact("cut", "First token that the policy did not see.",
         [](const LayerSelection& s) { return s.result().request.cut.token; });
    fact("policy", "The policy with its variant, parameters and budget.",
         [](const LayerSelection& s) { return s.result().request.policy.text(); });
    fact("notes", "What the reader must know.", [](const LayerSelection& s) { return s.result().notes; });
    fact("simulated", "Whether the policy simulates what a real run would do.",
         [](const LayerSelection& s) { return s.result().simulated; });
    selection.def("mask", &LayerSelection::mask, "[KV heads, tokens before the cut], true where kept.")
        .def("__repr__", &LayerSelection::text);
}

void addCapture(nb::module_& module) {
    nb::class_<OpenCapture> capture(module, "Capture");
    const auto fact = factsOf(capture);
    fact("path", "The file.", [](const OpenCapture& c) { return c.info().path; });
    fact("_file_name", "", [](const OpenCapture& c) { return c.info().fileName; });
    fact("model_id", "The model that was captured.", [](const OpenCapture& c) { return c.info().modelId; });
    fact("hash", "SHA-256 of the file's numbers, or its size and time where the file states none.",
         [](const OpenCapture& c) { return c.info().hash; });
    fact("notes", "What the capturing tool noted.", [](const OpenCapture& c) { return c.info().notes; });
    fact("num_tokens", "Tokens of the prompt.", [](const OpenCapture& c) { return c.info().numTokens; });
    fact("num_query_heads", "Query heads of a layer.", [](const OpenCapture& c) { return c.info().numQueryHeads; });
    fact("num_kv_heads", "KV heads of a layer.", [](const OpenCapture& c) { return c.info().numKvHeads; });
    fact("head_dim", "Components of a key.", [](const OpenCapture& c) { return c.info().headDim; });
    fact("layers", "Layers in the file.", &OpenCapture::layers);
    fact("token_ids", "Id of each token in the model's vocabulary.",
         [](const OpenCapture& c) { return c.reader->tokens().ids; });
    fact("positions", "Position id of each token: what RoPE turns it by.",
         [](const OpenCapture& c) { return c.reader->tokens().positions; });
    fact("texts", "Text of each token; a part of a character reads as U+FFFD.", &OpenCapture::texts);
    fact("segments", "(begin, end, kind), half-open.", &OpenCapture::segments);
    const auto open = [](OpenCapture* made, const std::string& path) {
        new (made) OpenCapture{openCapture(path), makeRunner(0, kCaptureCache)};
    };
    capture.def("__init__", open, nb::arg("path"))
        .def("_rope", &OpenCapture::rope, nb::arg("layer"))
        .def("_evict", &OpenCapture::evict, nb::arg("layer"), nb::arg("policy"), nb::arg("cut"), nb::arg("seed"),
             nb::arg("uniforms") = "", nb::arg("sketch") = "")
        .def("_measure", &OpenCapture::measure, nb::arg("layer"), nb::arg("policy"), nb::arg("metrics"), nb::arg("cut"),
             nb::arg("seed"));
    for (const auto& [name, role] :
         {std::pair{"keys", TensorRole::Keys}, std::pair{"values", TensorRole::Values},
          std::pair{"queries", TensorRole::Queries}, std::pair{"keys_pre_rope", TensorRole::KeysPreRope}})
        capture.def(
            name, [role = role](const OpenCapture& c, int layer) { return c.tensor(layer, role); }, nb::arg("layer"));
}

void addFunctions(nb::module_& module) {
    using nb::arg;
    module.def("arrays", &openArrays, nb::kw_only(), arg("k"), arg("v"), arg("q").none(), arg("k_pre").none(),
               arg("sinks"), arg("kv_of_q"), arg("positions"), arg("inv_freq"), arg("interleaved"), arg("rotary_begin"),
               arg("attention_scaling"), arg("scaling").none(), arg("softcap"), arg("sliding_window"), arg("layer"),
               arg("num_layers"), arg("threads"));
    module.def("policies", [] {
        Names ids;
        for (const Policy* policy : allPolicies()) ids.push_back(policy->card().id);
        return ids;
    });
    module.def("write", &writeFileAtomically, arg("path"), arg("text"));
    module.def(
        "fail",
        [](const std::string& sentence, const std::string& place, const std::string& remedy) {
            throw Error({sentence, place, remedy});
        },
        arg("sentence"), arg("place"), arg("remedy"));
}

void addEverything(nb::module_& module) {
    const nb::object error = nb::exception<Error>(module, "Error", PyExc_ValueError);
    error.attr("__module__") = "kvscope";
    nb::register_exception_translator(&translateError, error.ptr()); // tried before that of nb::exception
    addSelection(module);
    addCapture(module);
    addFunctions(module);
    module.attr("__version__") = KVSCOPE_VERSION;
}

} // namespace

} // namespace kvscope
NB_MODULE(_core, module) { kvscope::addEverything(module); }
