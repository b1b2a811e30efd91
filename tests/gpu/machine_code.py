#!/usr/bin/env python3
"""Holds the machine code of the CUDA kernels to rules and to the golden table machine_code.txt.

Usage: machine_code.py [--update] OBJECT... (objects that nvcc made). --update writes the table.
Exit code 77, with the reason, where cuobjdump is missing. The table says which nvcc made it; another one may give
other registers, so then the rules alone are held: no local memory in a loop (spills), no call in a fast loop of products
(in exact ones the softcap divides), at most MOST_CONVERSIONS from double in a fast loop of products, at most MOST_LOADS
loads from shared memory per tensor instruction.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine_code.txt")
MOST_LOADS = 3.0
MOST_CONVERSIONS = 4  # a query's normaliser, of which some are made again
# Fast kernels whose every entry needs the double terms of the contract's walk.
CONVERTING = ("walkKernel",)


def tool(name):
    """cuobjdump of the toolkit, or the one that Triton's wheel carries."""
    home = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    carried = glob.glob(home + "/kvscope/*/venv/lib/python3*/site-packages/triton/backends/nvidia/bin/" + name)
    for path in [os.environ.get("KVSCOPE_CUOBJDUMP"), shutil.which(name), "/usr/local/cuda/bin/" + name] + carried:
        if path and os.access(path, os.X_OK):
            return path
    return None


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def kernel_names(mangled):
    """{mangled: columnKernel<DoubleProducts<16,32>>}"""
    found = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True).stdout
    names = {}
    for raw, name in zip(mangled, found.splitlines()):
        name = name.replace("kvscope::gpu::", "").replace("(anonymous namespace)::", "").replace("void ", "")
        depth, end = 0, len(name)
        for i, letter in enumerate(name):  # up to the arguments
            depth += (letter == "<") - (letter == ">")
            if letter == "(" and depth == 0:
                end = i
                break
        names[raw] = re.sub(r"> >", ">>", re.sub(r"\(int\)", "", name[:end])).replace(" ", "")
    return names


def resources(cuobjdump, path):
    """{(kernel, architecture): (registers, stack)}"""
    found, architecture, function = {}, "", ""
    for line in output(cuobjdump, "-res-usage", path).splitlines():
        if match := re.match(r"arch = (sm_\d+a?)", line):
            architecture = match.group(1)
        elif match := re.match(r"\s*Function (\S+):", line):
            function = match.group(1)
        elif match := re.search(r"REG:(\d+) STACK:(\d+)", line):
            found[function, architecture] = int(match.group(1)), int(match.group(2))
    names = kernel_names([f for f, _ in found])
    return {(names[f], a): numbers for (f, a), numbers in found.items()}


def loops(instructions):
    """The bodies between a backward branch and its target."""
    bodies = []
    for at, text in instructions:
        match = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", text)
        if match and int(match.group(1), 16) < at:
            begin = int(match.group(1), 16)
            bodies.append([t for a, t in instructions if begin <= a <= at])
    return bodies


def count(body, pattern):
    return sum(bool(re.match(r"(@!?U?P\w+\s+)?" + pattern, text)) for text in body)


def loop_facts(cuobjdump, path, architecture):
    """{kernel: (local accesses, calls, conversions from double, loads per tensor instruction)} over its loops."""
    functions, name = collections.OrderedDict(), None
    for line in output(cuobjdump, "-sass", "-arch", architecture, path).splitlines():
        if match := re.search(r"Function : (\S+)", line):
            name = match.group(1)
            functions[name] = []
        elif (match := re.match(r"\s+/\*([0-9a-f]{4,6})\*/\s+(.*?);", line)) and name:
            functions[name].append((int(match.group(1), 16), match.group(2).strip()))
    names, facts = kernel_names(list(functions)), {}
    for function, instructions in functions.items():
        local = calls = conversions = loads = 0
        for body in loops(instructions):
            tensor = count(body, "(HGMMA|HMMA|DMMA)")
            local = max(local, count(body, "(LDL|STL)"))
            if tensor or count(body, "(DFMA|FFMA)") > 16 and count(body, "LDS") > 8:  # products of tiles
                conversions = max(conversions, count(body, r"F2F\.F32\.F64"))
                inner = not any(len(other) < len(body) and set(other) < set(body) for other in loops(instructions)
                                if count(other, "(HGMMA|HMMA|DMMA|DFMA|FFMA)"))
                if inner:
                    calls = max(calls, count(body, "CALL"))
                    loads = max(loads, count(body, "LDS") / tensor if tensor else 0)
        facts[names[function]] = local, calls, conversions, round(loads, 2)
    return facts


def broken_rules(kernel, facts):
    local, calls, conversions, loads = facts
    fast = "TensorProducts" in kernel or kernel.endswith("float>")
    rules = {
        "has %d local accesses in a loop" % local: local > 0,
        "has %d calls in a loop of products" % calls: fast and calls > 0,
        "converts %d doubles in a fast loop" % conversions: fast and conversions > MOST_CONVERSIONS and
        not kernel.startswith(CONVERTING),
        "has %s loads per tensor instruction" % loads: loads > MOST_LOADS,
    }
    return [sentence for sentence, broken in rules.items() if broken]


def table_of(cuobjdump, objects):
    """Lines of the table, and sentences about broken rules."""
    lines, broken, architectures = [], [], []
    for path in sorted(objects, key=os.path.basename):
        usage = resources(cuobjdump, path)
        architectures = sorted({a for _, a in usage}, key=lambda a: int(a[3:].rstrip("a"))) or architectures
        seen = "sm_90a" if "sm_90a" in architectures else architectures[-1] if architectures else ""
        facts = loop_facts(cuobjdump, path, seen) if usage else {}
        for kernel in sorted({k for k, _ in usage}):
            of = [usage.get((kernel, a), (0, 0)) for a in architectures]
            numbers = ["%d%s" % (registers, "+%d" % stack if stack else "") for registers, stack in of]
            local, calls, conversions, loads = facts[kernel]
            lines.append("%-52s" % kernel + "".join("%8s" % n for n in numbers) +
                         "%7d%7d%7d%7s" % (local, calls, conversions, loads))
            broken += [kernel + " " + sentence for sentence in broken_rules(kernel, facts[kernel])]
    head = "%-52s" % "kernel" + "".join("%8s" % a for a in architectures) + "  local  calls conver  loads"
    return [head] + lines, broken


def nvcc_release():
    nvcc = os.environ.get("KVSCOPE_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    match = re.search(r"release [^,]*, V(\S+)", output(nvcc, "--version")) if os.access(nvcc, os.X_OK) else None
    return match.group(1) if match else "unknown"


def main():
    update = "--update" in sys.argv
    objects = [a for a in sys.argv[1:] if a.endswith((".o", ".cubin"))]
    cuobjdump = tool("cuobjdump")
    if not cuobjdump or not objects:
        print("skipped: " + ("no kernels are built" if not objects else "cuobjdump is missing (CUDA toolkit, or set "
                                                                        "KVSCOPE_CUOBJDUMP)"))
        return 77
    lines, broken = table_of(cuobjdump, objects)
    release = "nvcc " + nvcc_release()
    with open(TABLE, encoding="utf-8") as file:
        golden = file.read().splitlines()
    comment = [line for line in golden if line.startswith("#")]
    if update:
        comment[-1] = "# " + release
        with open(TABLE, "w", encoding="utf-8") as file:
            file.write("\n".join(comment + lines) + "\n")
    elif comment[-1] != "# " + release or golden[len(comment)] != lines[0]:
        print("registers not compared: the table is of %s, %s" % (comment[-1][2:], golden[len(comment)].split()[1:-4]))
    else:
        for line in sorted(set(golden[len(comment):]) ^ set(lines)):
            broken.append(("expected: " if line in golden else "found:    ") + line)
    print("\n".join(broken) if broken else "%d kernels keep the rules" % (len(lines) - 1))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
