"""Run the fast tests on the oldest and the newest supported Python, and compare what they compute.

Interpreters are looked for on the path and in pyenv's folder. Each gets a virtual environment with
the pinned requirements, below the environment that runs this. The demonstration's `estimates.csv`
has to be the same file on all of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAST = "not slow and not realdata and not browser"
Version = tuple[int, int]


def supported_versions(project: str) -> list[Version]:
    """Read the versions that a `pyproject.toml` declares."""
    return sorted(
        (int(major), int(minor))
        for major, minor in re.findall(r'"Programming Language :: Python :: (\d+)\.(\d+)"', project)
    )


def choose_interpreters(
    found: Mapping[Version, Path], supported: list[Version], own: Version
) -> dict[Version, Path]:
    """Choose the oldest and the newest supported version that is there, apart from our own."""
    known = [version for version in supported if version in found or version == own]
    ends = {known[0], known[-1]} if known else set()
    return {version: found[version] for version in sorted(ends - {own})}


def find_interpreters(versions: list[Version]) -> dict[Version, Path]:
    """Find an interpreter that starts for each version."""
    found: dict[Version, Path] = {}
    for version in versions:
        for path in _candidates(version):
            if _starts(path, version):
                found[version] = path
                break
    return found


def _candidates(version: Version) -> Iterator[Path]:
    name = f"python{version[0]}.{version[1]}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/*/bin/{name}"), reverse=True)
    on_path = shutil.which(name)
    if on_path is not None:
        yield Path(on_path)


def _starts(path: Path, version: Version) -> bool:
    """Say whether an interpreter runs and can make environments; pyenv's shims may do neither."""
    asked = "import ensurepip, sqlite3, sys, venv; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.split() == [str(part) for part in version]


def make_environment(interpreter: Path, folder: Path) -> Path:
    """Make an environment with the pinned requirements, unless it is there; give its Python."""
    python = folder / "bin" / "python"
    stamp = folder / ".ready"
    pinned = b"".join((ROOT / name).read_bytes() for name in ("requirements.txt", "pyproject.toml"))
    digest = hashlib.sha256(pinned).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _run(interpreter, "-m", "venv", folder)
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(*install, "--no-deps", "-r", ROOT / "requirements.txt")
    _run(*install, "--no-deps", "--no-build-isolation", "-e", ROOT)
    stamp.write_text(digest)
    return python


def demonstrate(python: Path, folder: Path) -> bytes:
    """Run the demonstration, and give its numbers."""
    script = "from routeprism.cli import main; main()"
    _run(python, "-c", script, "demo", "--run", folder, "--quiet", output=subprocess.DEVNULL)
    return (folder / "estimates.csv").read_bytes()


def _run(*command: object, output: int | None = None) -> None:
    subprocess.run([str(word) for word in command], check=True, cwd=ROOT, stdout=output)  # noqa: S603


def main() -> int:
    """Test on each chosen interpreter; end with 1 where one fails or computes something else."""
    supported = supported_versions((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    own = sys.version_info[:2]
    chosen = choose_interpreters(find_interpreters(supported), supported, own)
    if not chosen:
        names = ", ".join(f"{major}.{minor}" for major, minor in supported)
        print(f"no other supported Python ({names}) is installed: there is nothing to test")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        expected = demonstrate(Path(sys.executable), Path(scratch) / "own")
        for version, interpreter in chosen.items():
            name = f"{version[0]}.{version[1]}"
            print(f"Python {name}: {interpreter}", flush=True)
            python = make_environment(interpreter, Path(sys.prefix) / "pythons" / name)
            if demonstrate(python, Path(scratch) / name) != expected:
                print(f"Python {name} gives other numbers in the demonstration's estimates.csv")
                return 1
            print("the demonstration gives the same estimates.csv", flush=True)
            tests = (python, "-m", "pytest", "-q", "-m", FAST, "-n", "2", "--dist", "loadfile")
            _run(*tests, "-p", "no:cacheprovider")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd[:4]))} … ended with {error.returncode}")
