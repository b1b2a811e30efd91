"""The wheel's description agrees with the program's version, the tools' own package and what is built."""

import pathlib
import re
import runpy
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def described(path: str) -> dict:
    return tomllib.loads((ROOT / path / "pyproject.toml").read_text())


class PackageTest(unittest.TestCase):
    def test_the_wheel_holds_the_tools_as_they_are(self) -> None:
        wheel, tools = described("app/python"), described("resources/python")
        source = wheel["tool"]["scikit-build"]["metadata"]["version"]
        stated = re.search(source["regex"], (ROOT / "app/python" / source["input"]).read_text())
        self.assertEqual(stated["value"], runpy.run_path(str(ROOT / "app/python" / source["input"]))["VERSION"])
        needed = {package for package in tools["project"]["dependencies"] if not package.startswith("numpy")}
        extras = wheel["project"]["optional-dependencies"]
        self.assertEqual((set(extras["capture"]), set(extras["press"])), (needed, needed))
        for name, packages in tools["project"]["optional-dependencies"].items():
            self.assertEqual(extras[name], packages)
        self.assertEqual(
            wheel["project"]["dependencies"],
            [package for package in tools["project"]["dependencies"] if package.startswith("numpy")],
        )
        self.assertEqual(set(wheel["project"]["scripts"].values()), {"kvscope.tools:main"})
        commands = runpy.run_path(str(ROOT / "app/python/kvscope/tools.py"))["COMMANDS"]
        started = {name: f"{module}:main" for name, (module, _) in commands.items()}
        self.assertEqual(started, tools["project"]["scripts"])
        self.assertEqual(set(started), set(wheel["project"]["scripts"]))
        installed = (ROOT / "app/python/CMakeLists.txt").read_text()
        for package in tools["tool"]["setuptools"]["packages"]:
            self.assertIn(f"resources/python/{package}", installed)

    def test_one_nanobind_everywhere(self) -> None:
        requires = described("app/python")["build-system"]["requires"]
        version = next(package.partition("==")[2] for package in requires if package.startswith("nanobind"))
        self.assertIn(f"version={version} ", (ROOT / "resources/dev/nanobind.sh").read_text())
        self.assertIn(f"nanobind-{version}/", (ROOT / "app/python/CMakeLists.txt").read_text())


if __name__ == "__main__":
    unittest.main()
