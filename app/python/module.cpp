// The module `kvscope` for Python: names, docstrings and exceptions around the core.
#include "app/python/array_capture.h"
#include "app/python/python_run.h"
#include "app/python/result_arrays.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/policy.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

namespace py = pybind11;

namespace kvscope {

namespace {

using Names = std::vector<std::string>;
constexpr std::size_t kArrayCache = std::size_t{256} << 20; // of one call: evict shares its tensors with measure
constexpr std::size_t kCaptureCache = std::size_t{2} << 30;

std::string onePolicy(const py::object& policy) { return py::str(policy).cast<std::string>(); }

py::dict valuesOf(const LayerRunner& runner, const RunResult& result, const Names& metrics) {
    requireFidelity(result);
    std::vector<MeasureValues> measured;
    withoutLock([&](const Checkpoint& checkpoint) { measured = runner.measure(result, metrics, checkpoint); });
    py::dict values;
    for (const MeasureValues& one : measured) values[py::str(one.id)] = arrayOf(one.perHead);
    return values;
}

/// An open capture with its cached results.
struct OpenCapture {
    std::shared_ptr<const CaptureReader> reader;
    std::shared_ptr<const LayerRunner> runner;

    explicit OpenCapture(const std::string& path) : reader(openCapture(path)), runner(makeRunner(0, kCaptureCache)) {}

    const CaptureInfo& info() const { return reader->info(); }
    py::object tensor(int layer, TensorRole role) const {
        HostTensor tensor;
        withoutLock([&](const Checkpoint& checkpoint) { tensor = reader->read(LayerIndex(layer), role, checkpoint); });
        return arrayOf(std::move(tensor));
    }
    LayerSelection evict(int layer, const py::object& policy, const std::string& cut, std::uint64_t seed) const {
        return LayerSelection(runLayer(*runner, reader, info().layerInfo(LayerIndex(layer)).layer,
                                       {onePolicy(policy), cut, seed, {}, {}}, false));
    }
    py::dict measure(int layer, const py::object& policy, const Names& metrics, const std::string& cut,
                     std::uint64_t seed) const {
        for (const std::string& metric : metrics) measureById(metric);
        const auto result = runLayer(*runner, reader, info().layerInfo(LayerIndex(layer)).layer,
                                     {onePolicy(policy), cut, seed, {}, {}}, true);
        return valuesOf(*runner, *result, metrics);
    }
    py::list texts() const {
        py::list texts;
        for (TokenIndex token = 0; token < info().numTokens; ++token) {
            const std::string_view bytes = reader->tokens().textOf(token);
            texts.append(py::reinterpret_steal<py::object>(
                PyUnicode_DecodeUTF8(bytes.data(), static_cast<py::ssize_t>(bytes.size()), "replace")));
        }
        return texts;
    }
    py::list segments() const {
        py::list segments;
        for (const Segment& segment : reader->tokens().segments)
            segments.append(py::make_tuple(segment.begin, segment.end, std::string(segmentName(segment.kind))));
        return segments;
    }
    std::vector<int> layers() const {
        std::vector<int> layers;
        for (const LayerInfo& layer : info().layers) layers.push_back(layer.layer.value);
        return layers;
    }
};

LayerSelection evictArrays(const LayerArrays& arrays, const RunWords& words, int threads) {
    const auto capture = captureOf(arrays);
    return LayerSelection(runLayer(*makeRunner(threads, kArrayCache), capture, LayerIndex(arrays.layer), words, false));
}

py::dict measureArrays(const LayerArrays& arrays, const RunWords& words, const Names& metrics, int threads) {
    for (const std::string& metric : metrics) measureById(metric);
    const auto capture = captureOf(arrays);
    const auto runner = makeRunner(threads, kArrayCache);
    return valuesOf(*runner, *runLayer(*runner, capture, LayerIndex(arrays.layer), words, true), metrics);
}

/// A figure as notebooks show it.
struct Figure {
    std::string svg, finding;

    void save(const std::string& path) const { writeFileAtomically(path, svg); }
};

void addOption(Names& words, const std::string& name, const py::handle& value) {
    if (py::isinstance<py::bool_>(value)) {
        if (value.cast<bool>()) words.push_back("--" + name);
    } else if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
        for (const py::handle& one : value) addOption(words, name, one);
    } else {
        words.push_back("--" + name);
        words.push_back(py::str(value).cast<std::string>());
    }
}

/// The program that this module was built with, or the one on the path. It draws figures in a process of its own,
/// because Python may have loaded another Qt.
std::string program() {
    const py::object os = py::module_::import("os"), environment = os.attr("environ"), path = os.attr("path");
    if (environment.contains("KVSCOPE_PROGRAM")) return environment["KVSCOPE_PROGRAM"].cast<std::string>();
    const py::object folder = path.attr("dirname")(py::module_::import("kvscope").attr("__file__"));
    const py::object beside = path.attr("join")(folder, "..", "bin", "kvscope");
    if (path.attr("exists")(beside).cast<bool>()) return path.attr("abspath")(beside).cast<std::string>();
    const py::object found = py::module_::import("shutil").attr("which")("kvscope");
    if (found.is_none())
        throw Error(
            {.sentence = "the program kvscope, which draws figures, is not beside the module and not on the path",
             .place = "plot",
             .remedy = "Build it, or set KVSCOPE_PROGRAM",
             .path = {}});
    return found.cast<std::string>();
}

/// Runs the program in Python's working directory; the figure's command names no temporary folder.
Figure drawn(Names words) {
    const py::object folder = py::module_::import("tempfile").attr("TemporaryDirectory")("", "kvscope");
    const std::string file = folder.attr("name").cast<std::string>() + "/figure.svg";
    words.insert(words.begin(), program());
    words.insert(words.end(), {"--out", file});
    const py::object done =
        py::module_::import("subprocess").attr("run")(words, py::arg("capture_output") = true, py::arg("text") = true);
    std::string said = done.attr("stderr").cast<std::string>();
    if (done.attr("returncode").cast<int>() != 0) {
        if (said.starts_with("kvscope: ")) said = said.substr(9);
        throw Error(
            {.sentence = said.substr(0, said.find_last_not_of(" .\n") + 1), .place = {}, .remedy = {}, .path = {}});
    }
    Figure figure{readWholeFile(file), done.attr("stdout").cast<std::string>()};
    folder.attr("cleanup")();
    for (std::size_t at = figure.svg.find(file); at != std::string::npos; at = figure.svg.find(file))
        figure.svg.replace(at, file.size(), "figure.svg");
    return figure;
}

/// Keyword arguments are the options of `kvscope plot`.
Figure plot(const std::string& view, const py::object& capture, const py::kwargs& options) {
    const bool open = py::isinstance<OpenCapture>(capture);
    Names words = {"plot", view,
                   open ? capture.cast<const OpenCapture&>().info().path : py::str(capture).cast<std::string>()};
    for (const auto& [key, value] : options) {
        std::string name = py::str(key).cast<std::string>();
        std::replace(name.begin(), name.end(), '_', '-');
        if (name == "out")
            throw Error(
                {.sentence = "plot returns the figure", .place = "out", .remedy = "Save it with plot(...).save(FILE)"});
        addOption(words, name, value);
    }
    return drawn(std::move(words));
}

void addExceptions(py::module_& module) {
    static py::exception<Error> type(module, "Error", PyExc_ValueError);
    py::register_exception_translator([](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(thrown);
        } catch (const Error& error) {
            const py::object instance = py::reinterpret_borrow<py::object>(type)(error.what());
            instance.attr("sentence") = error.parts().sentence;
            instance.attr("place") = error.parts().place;
            instance.attr("remedy") = error.parts().remedy;
            instance.attr("path") = error.parts().path;
            PyErr_SetObject(type.ptr(), instance.ptr());
        }
    });
}

void addSelection(py::module_& module) {
    py::class_<LayerSelection>(module, "Selection",
                               "What a policy keeps of one layer. Arrays view the result and are read-only.")
        .def_property_readonly(
            "kept", &LayerSelection::kept,
            "For each KV head the kept tokens, rising; of query heads with sets of their own the union.")
        .def_property_readonly(
            "query_heads", &LayerSelection::queryHeads,
            "For each query head its own kept tokens, rising, or None: those of a group share a set.")
        .def_property_readonly(
            "numerator_weights", [](const LayerSelection& s) { return s.weights(true); },
            "Per kept token, or None: all 1.")
        .def_property_readonly(
            "denominator_weights", [](const LayerSelection& s) { return s.weights(false); },
            "Per kept token, or None: all 1.")
        .def_property_readonly(
            "scores", &LayerSelection::scores,
            "[KV heads, tokens before the cut], or None; the group's where query heads have sets of their own.")
        .def_property_readonly("query_head_scores", &LayerSelection::queryHeadScores,
                               "[query heads, tokens before the cut], or None: those of a group share a set.")
        .def_property_readonly("margins", &LayerSelection::margins,
                               "For each KV head how far the closest decision was from going the other way.")
        .def_property_readonly("retention", &LayerSelection::retention,
                               "Share of the tokens before the cut that a query head keeps.")
        .def_property_readonly(
            "cut", [](const LayerSelection& s) { return s.result().request.cut.token; },
            "First token that the policy did not see.")
        .def_property_readonly("policy", [](const LayerSelection& s) { return s.result().request.policy.text(); })
        .def_property_readonly(
            "notes", [](const LayerSelection& s) { return s.result().notes; }, "What the reader must know.")
        .def_property_readonly("simulated", [](const LayerSelection& s) { return s.result().simulated; })
        .def("mask", &LayerSelection::mask, "[KV heads, tokens before the cut], true where kept.")
        .def("__repr__", &LayerSelection::text);
}

void addCapture(py::module_& module) {
    using py::arg;
    const Names metrics = {"output_error", "retained_mass"};
    py::class_<OpenCapture>(module, "Capture", "An open capture; tensors are read when they are asked for.")
        .def_property_readonly("path", [](const OpenCapture& c) { return c.info().path; })
        .def_property_readonly("model_id", [](const OpenCapture& c) { return c.info().modelId; })
        .def_property_readonly("hash", [](const OpenCapture& c) { return c.info().hash; })
        .def_property_readonly("notes", [](const OpenCapture& c) { return c.info().notes; })
        .def_property_readonly("num_tokens", [](const OpenCapture& c) { return c.info().numTokens; })
        .def_property_readonly("num_query_heads", [](const OpenCapture& c) { return c.info().numQueryHeads; })
        .def_property_readonly("num_kv_heads", [](const OpenCapture& c) { return c.info().numKvHeads; })
        .def_property_readonly("head_dim", [](const OpenCapture& c) { return c.info().headDim; })
        .def_property_readonly("layers", &OpenCapture::layers, "Layers in the file.")
        .def_property_readonly("token_ids", [](const OpenCapture& c) { return c.reader->tokens().ids; })
        .def_property_readonly("texts", &OpenCapture::texts,
                               "Text of each token; a part of a character reads as U+FFFD.")
        .def_property_readonly("segments", &OpenCapture::segments, "(begin, end, kind), half-open.")
        .def(
            "keys", [](const OpenCapture& c, int layer) { return c.tensor(layer, TensorRole::Keys); }, arg("layer"))
        .def(
            "values", [](const OpenCapture& c, int layer) { return c.tensor(layer, TensorRole::Values); }, arg("layer"))
        .def(
            "queries", [](const OpenCapture& c, int layer) { return c.tensor(layer, TensorRole::Queries); },
            arg("layer"))
        .def(
            "keys_pre_rope", [](const OpenCapture& c, int layer) { return c.tensor(layer, TensorRole::KeysPreRope); },
            arg("layer"))
        .def("evict", &OpenCapture::evict, arg("layer"), arg("policy"), arg("cut") = "default", arg("seed") = 0,
             "What `policy` (with its @budget) keeps of a layer.")
        .def("measure", &OpenCapture::measure, arg("layer"), arg("policy"), arg("metrics") = metrics,
             arg("cut") = "default", arg("seed") = 0, "Measures per head, by their ids (`kvscope measures`).")
        .def("__repr__", [](const OpenCapture& c) {
            return "<kvscope.Capture " + c.info().fileName + ", " + std::to_string(c.info().numTokens) + " tokens, " +
                   std::to_string(c.info().layers.size()) + " layers>";
        });
}

void addFunctions(py::module_& module) {
    using py::arg, py::none;
    using Scaling = std::optional<double>;
    const Names metrics = {"output_error", "retained_mass"};
    module.def(
        "open", [](const py::object& path) { return OpenCapture(py::str(path).cast<std::string>()); }, arg("path"),
        "Opens a capture, or tensors of other programs (.safetensors, .npz).");
    module.def(
        "evict",
        [](py::object k, py::object v, py::object q, const py::object& policy, const std::string& cut,
           std::uint64_t seed, Scaling scaling, double softcap, std::int64_t slidingWindow, py::object sinks,
           py::object kPre, py::object gqaGroupOf, int layer, int numLayers, const std::string& uniforms,
           const std::string& sketch, int threads) {
            return evictArrays({std::move(k), std::move(v), std::move(q), std::move(kPre), std::move(gqaGroupOf),
                                std::move(sinks), scaling, softcap, slidingWindow, layer, numLayers},
                               {onePolicy(policy), cut, seed, uniforms, sketch}, threads);
        },
        arg("k"), arg("v"), arg("q") = none(), arg("policy") = "keydiff@0.25", py::kw_only(), arg("cut") = "none",
        arg("seed") = 0, arg("scaling") = none(), arg("softcap") = 0, arg("sliding_window") = 0, arg("sinks") = none(),
        arg("k_pre") = none(), arg("kv_of_q") = none(), arg("layer") = 0, arg("num_layers") = 0, arg("uniforms") = "",
        arg("sketch") = "", arg("threads") = 0,
        "What `policy` keeps of keys and values [KV heads, tokens, head_dim] and queries [query heads, last tokens, "
        "head_dim]. The layer's `softcap`, `sliding_window` and `sinks` (a logit for each query head) as in a "
        "capture.");
    module.def(
        "measure",
        [](py::object k, py::object v, py::object q, const py::object& policy, const Names& wanted,
           const std::string& cut, std::uint64_t seed, Scaling scaling, double softcap, std::int64_t slidingWindow,
           py::object sinks, py::object kPre, py::object gqaGroupOf, int layer, int numLayers, int threads) {
            return measureArrays({std::move(k), std::move(v), std::move(q), std::move(kPre), std::move(gqaGroupOf),
                                  std::move(sinks), scaling, softcap, slidingWindow, layer, numLayers},
                                 {onePolicy(policy), cut, seed, {}, {}}, wanted, threads);
        },
        arg("k"), arg("v"), arg("q"), arg("policy") = "keydiff@0.25", arg("metrics") = metrics, py::kw_only(),
        arg("cut") = "last:256", arg("seed") = 0, arg("scaling") = none(), arg("softcap") = 0,
        arg("sliding_window") = 0, arg("sinks") = none(), arg("k_pre") = none(), arg("kv_of_q") = none(),
        arg("layer") = 0, arg("num_layers") = 0, arg("threads") = 0,
        "What the selection costs: measures per head, by their ids.");
    module.def("plot", &plot, arg("view"), arg("capture"),
               "Draws a view. Keywords are the options of `kvscope plot`: policy, layer, kv_head, size ...");
    module.def(
        "policies",
        [] {
            Names ids;
            for (const Policy* policy : allPolicies()) ids.push_back(policy->card().id);
            return ids;
        },
        "Ids of all policies.");
}

} // namespace

void addEverything(py::module_& module) {
    addExceptions(module);
    addArrayMemory(module);
    addSelection(module);
    addCapture(module);
    addFunctions(module);
    py::class_<Figure>(module, "Figure", "A figure as SVG; notebooks show it.")
        .def_readonly("svg", &Figure::svg)
        .def_readonly("finding", &Figure::finding, "The view's finding in words.")
        .def(
            "save",
            [](const Figure& figure, const py::object& path) { figure.save(py::str(path).cast<std::string>()); },
            py::arg("path"))
        .def("_repr_svg_", [](const Figure& figure) { return figure.svg; })
        .def("__str__", [](const Figure& figure) { return figure.finding; });
}

} // namespace kvscope

PYBIND11_MODULE(kvscope, module) {
    module.doc() = "What KV-cache compression keeps, what it evicts and what that costs.";
    kvscope::addEverything(module);
}
