"""The wheel alone, installed outside of a checkout, gives the same `yaq`, daemons and prepared processes included."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def _run(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment that has the wheel and, of what it depends on, this environment's packages."""
    folder = tmp_path_factory.mktemp("wheel")
    # Without isolation, as that asks the package index for what builds it; set-up has brought it already.
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    _run(sys.executable, "-m", "pip", *build, cwd=folder)
    venv.create(folder / "env", with_pip=False)
    python = folder / "env" / "bin" / "python"
    packages = Path(_run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    # A folder named in a .pth file is searched, but its own .pth files, such as the editable install's, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    [wheel] = folder.glob("*.whl")
    _run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel, cwd=folder)
    found = _run(python, "-c", "import yaqd, rm; print(yaqd.__file__, rm.__file__)", cwd=folder)
    assert str(ROOT) not in found and str(packages) in found
    return python.parent


def test_the_demo_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("to be or not to be\n" * 1000)
    shown = _run(installed / "yaq", "demo", "--input", tmp_path / "text", "--nodes", 1, cwd=tmp_path)
    assert "check: 6,000 words, 4 different: the same" in shown


def test_the_configuration_is_shipped(installed: Path, tmp_path: Path) -> None:
    shown = _run(installed / "yaq", "conf", "docs", cwd=tmp_path)
    assert "yarn.nodemanager.resource.memory-mb" in shown
