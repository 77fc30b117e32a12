"""Builds the compiled core. Everything else is in pyproject.toml.

Portable on purpose: no -march=native and no -ffast-math, so that the same numbers come out on every
machine. BPE_DROPOUT_SANITIZE=1 builds with the address and undefined-behaviour sanitizers.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

CORE = Path("bpe_dropout/core")
NO_COMPILER = """
bpe-dropout needs a C++17 compiler (GCC 9 or newer, or Clang 10 or newer) and found none that works.
Install one, then run the same command again:
  Debian, Ubuntu:  apt-get install g++
  Fedora:          dnf install gcc-c++
  macOS:           xcode-select --install
What the compiler said, if it ran, is above."""

flags = ["-O3", "-ffp-contract=off", "-Wall", "-Wextra"]
link_flags = ["-pthread"]
if os.environ.get("BPE_DROPOUT_SANITIZE"):
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
    flags = [*flags, "-O1", "-g", *sanitize]
    link_flags = [*link_flags, *sanitize]


class BuildCore(build_ext):
    """Compiles the files of the core side by side, and says in a sentence if there is no compiler."""

    def build_extension(self, ext):
        compile_one = self.compiler.compile

        def compile_all(sources, **options):
            def compile_source(source):
                return compile_one([source], **options)

            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return [path for paths in pool.map(compile_source, sources) for path in paths]

        self.compiler.compile = compile_all
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError) as error:
            print(error, NO_COMPILER, sep="\n", file=sys.stderr)
            raise SystemExit(1) from None
        finally:
            self.compiler.compile = compile_one


core = Pybind11Extension(
    "bpe_dropout._core",
    sorted(str(path) for path in CORE.glob("*.cpp")),
    depends=sorted(str(path) for path in CORE.glob("*.h")),
    cxx_std=17,
    extra_compile_args=flags,
    extra_link_args=link_flags,
)
setup(ext_modules=[core], cmdclass={"build_ext": BuildCore})
