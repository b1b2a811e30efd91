"""An installed wheel: what it holds, that its libraries are its own, and what its commands say without extras."""

import ctypes
import importlib.metadata
import importlib.resources
import pathlib
import subprocess
import sys
import unittest

import kvscope

SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "sample_data" / "needle-1k.h5"
SITE = pathlib.Path(kvscope.__file__).resolve().parents[1]


class WheelTest(unittest.TestCase):
    def test_it_is_the_wheel_that_is_tested(self) -> None:
        self.assertTrue(SITE.is_relative_to(pathlib.Path(sys.prefix).resolve()), SITE)
        self.assertEqual(importlib.metadata.version("kvscope"), kvscope.__version__)
        files = [str(file) for file in importlib.metadata.files("kvscope") or []]
        for part in ("kvscope/py.typed", "kvscope/_core.pyi", "kvscope_capture/command.py", "kvscope_press/py.typed"):
            self.assertIn(part, files)
        self.assertTrue([file for file in files if file.endswith("licenses/LICENSE")], files)
        self.assertFalse([file for file in files if file.endswith((".cpp", ".h", ".a"))])
        stable = [file for file in files if file.startswith("kvscope/_core.abi3")]
        self.assertEqual(bool(stable), sys.version_info >= (3, 12), files)

    def test_it_opens_a_capture_with_its_own_libraries(self) -> None:
        capture = kvscope.open(SAMPLE)
        self.assertEqual(len(capture.evict(0, "keydiff@0.25").kept), capture.num_kv_heads)
        self.assertGreater(len(capture.measure(0, "snapkv@0.25")["output_error"]), 0)
        maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
        loaded = {pathlib.Path(line.split(maxsplit=5)[5]) for line in maps if ".so" in line}
        ours = {path.name for path in loaded if path.is_relative_to(SITE / "kvscope.libs")}
        self.assertTrue(any(name.startswith("libhdf5") for name in ours), ours)
        core = next(path for path in loaded if path.name.startswith("_core."))
        self.assertEqual(core.parent, SITE / "kvscope")
        for name in ("hdf5", "tbb", "fmt", "zip", "crypto", "curl"):  # none of the machine's own
            system = [path for path in loaded if path.name.startswith(f"lib{name}") and not path.is_relative_to(SITE)]
            self.assertFalse([path for path in system if "python" not in str(path)], name)

    def test_its_libraries_hide_from_others(self) -> None:
        with self.assertRaises(AttributeError):
            ctypes.CDLL(None).H5open  # noqa: B018

    def test_commands_without_their_packages_say_what_to_install(self) -> None:
        table = importlib.metadata.entry_points(group="console_scripts")
        names = [script.name for script in table if script.dist is not None and script.dist.name == "kvscope"]
        self.assertIn("kvscope-capture", names)
        for name in names:
            done = subprocess.run([pathlib.Path(sys.prefix) / "bin" / name, "--help"], capture_output=True, text=True)
            if done.returncode != 0:
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(
                    done.stderr, rf"^{name}: the package \w+ is missing. Install it with pip install 'kvscope\[\w+\]'$"
                )


if __name__ == "__main__":
    unittest.main()
