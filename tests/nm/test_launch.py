"""The launch script and environment: Hadoop's text, judged by bash itself."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.launch.context import BadLaunchContext, LaunchContext
from nm.launch.environment import (
    Environment,
    NeedsShell,
    build_environment,
    double_quoted,
    expand,
    resolve,
)
from nm.launch.java import add_opens
from nm.launch.prepare import search_path
from nm.launch.script import launch_script
from yaqd.proto import yarn_common_pb2 as pb

LOG_DIR = Path("/logs/c1")


def run_script(tmp_path: Path, environment: Environment, command: str, links: dict[str, Path] | None = None) -> str:
    """What the script's command prints."""
    work, logs = tmp_path / "work", tmp_path / "logs"
    work.mkdir(exist_ok=True)
    logs.mkdir(exist_ok=True)
    script = launch_script(environment=environment, links=links or {}, command=[command], log_dir=logs)
    (work / "launch_container.sh").write_text(script)
    started = {**environment.inherited}
    subprocess.run(["/bin/bash", "launch_container.sh"], cwd=work, env=started, check=True)
    return (logs / "prelaunch.out").read_text().rpartition("Launching container\n")[2]


def environment(own: dict[str, str], *, node: dict[str, str] | None = None) -> Environment:
    return build_environment(
        own,
        node=node or {},
        admin={},
        whitelist=["PATH"],
        node_environment={"PATH": "/usr/bin:/bin"},
        log_dir=LOG_DIR,
        java_options="",
    )


def test_script_word_for_word() -> None:
    script = launch_script(
        environment=Environment({"PATH": "/bin"}, {"PWD": "/w", "JVM_PID": "$$"}, {"A": "$PWD/x"}),
        links={"job.jar": Path("/l/10/job.jar"), "sub/part": Path("/l/11/part")},
        command=["$JAVA_HOME/bin/java", "Main", "1>/logs/c1/stdout"],
        log_dir=LOG_DIR,
    )
    assert script == (
        "#!/bin/bash\n"
        "\n"
        "set -o pipefail -e\n"
        'export PRELAUNCH_OUT="/logs/c1/prelaunch.out"\n'
        'exec >"${PRELAUNCH_OUT}"\n'
        'export PRELAUNCH_ERR="/logs/c1/prelaunch.err"\n'
        'exec 2>"${PRELAUNCH_ERR}"\n'
        'echo "Setting up env variables"\n'
        'export PATH=${PATH:-"/bin"}\n'
        'export PWD="/w"\n'
        'export JVM_PID="$$"\n'
        'export A="$PWD/x"\n'
        'echo "Setting up job resources"\n'
        'ln -sf -- "/l/10/job.jar" "job.jar"\n'
        'mkdir -p -- "sub"\n'
        'ln -sf -- "/l/11/part" "sub/part"\n'
        'echo "Launching container"\n'
        'exec /bin/bash -c "$JAVA_HOME/bin/java Main 1>/logs/c1/stdout"\n'
    )


def test_replacements_in_hadoops_order() -> None:
    text = "{{JAVA_HOME}}/bin/java <ADD_OPENS> -cp a<CPS>b 1><LOG_DIR>/stdout"
    assert expand(text, log_dir=LOG_DIR, add_opens="-x") == "$JAVA_HOME/bin/java -x -cp a:b 1>/logs/c1/stdout"


@pytest.mark.parametrize(
    ("release", "opens"),
    [
        ('JAVA_VERSION="1.8.0_392"', False),
        ('JAVA_VERSION="17.0.9"', True),
        (f'JAVA_VERSION="{"9" * 50_000}"', True),
    ],
    ids=["8", "17", "endless"],
)
def test_module_options_follow_the_containers_java(tmp_path: Path, release: str, opens: bool) -> None:
    (tmp_path / "release").write_text(f'IMPLEMENTOR="x"\n{release}\n')
    assert bool(add_opens(str(tmp_path))) is opens
    assert add_opens(str(tmp_path / "absent")) == ""


def java_at(home: Path, release: str | None) -> str:
    """A JDK of that release; returns its bin folder."""
    (home / "bin").mkdir(parents=True)
    (home / "bin/java").write_text("#!/bin/sh\n")
    (home / "bin/java").chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return str(home / "bin")


def test_without_a_java_home_the_java_on_the_path_tells(tmp_path: Path) -> None:
    old, modern = java_at(tmp_path / "8", 'JAVA_VERSION="1.8.0_392"\n'), java_at(tmp_path / "17", 'JAVA_VERSION="17"\n')
    assert add_opens(None, f"/nonexistent:{modern}:{old}") != ""
    assert add_opens(None, f"{old}:{modern}") == ""
    links = tmp_path / "alternatives"
    links.mkdir()
    (links / "java").symlink_to(f"{old}/java")
    assert add_opens("", str(links)) == ""
    inner = java_at(tmp_path / "jdk8/jre", None)
    (tmp_path / "jdk8/release").write_text('JAVA_VERSION="1.8.0_392"\n')
    assert add_opens(None, inner) == ""


def test_a_java_that_does_not_tell_its_version_counts_as_modern(tmp_path: Path) -> None:
    assert add_opens(None, java_at(tmp_path / "silent", None)) != ""
    pipe = java_at(tmp_path / "pipe", None)
    os.mkfifo(tmp_path / "pipe/release")  # must not hold the node up
    assert add_opens(None, pipe) != ""
    assert add_opens(None, f"relative:{tmp_path}") != ""


def test_the_java_is_looked_for_on_the_containers_path(tmp_path: Path) -> None:
    old = java_at(tmp_path / "8", 'JAVA_VERSION="1.8.0_392"\n')
    modern = java_at(tmp_path / "21", 'JAVA_VERSION="21.0.1"\n')
    for own, nodes, opens in (({}, old, False), ({}, modern, True), ({"PATH": old}, modern, False)):
        assert bool(add_opens(None, search_path(own, {"PATH": nodes}))) is opens
    assert search_path({"PATH": "/opt:$PATH"}, {"PATH": "/bin"}) == "/opt:$PATH:/bin"


def test_variables_come_after_those_they_refer_to(tmp_path: Path) -> None:
    built = environment({"C": "$B!", "B": "${A}b", "A": "a", "LOOP1": "$LOOP2", "LOOP2": "$LOOP1"})
    assert list(built.own)[:3] == ["A", "B", "C"]
    assert run_script(tmp_path, built, "printenv C") == "ab!\n"


def test_the_nodes_variables_win_and_whitelisted_ones_fill_gaps(tmp_path: Path) -> None:
    built = environment({"USER": "mallory", "PATH": "/opt:/bin:/usr/bin"}, node={"USER": "alice"})
    assert not built.inherited
    assert run_script(tmp_path, built, "printenv USER PATH") == "alice\n/opt:/bin:/usr/bin\n"


def test_admin_environment_is_forced_unless_empty() -> None:
    def own(node: dict[str, str]) -> dict[str, str]:
        return dict(
            build_environment(
                {"MALLOC_ARENA_MAX": "9"},
                node={},
                admin={"MALLOC_ARENA_MAX": "$MALLOC_ARENA_MAX"},
                whitelist=[],
                node_environment=node,
                log_dir=LOG_DIR,
                java_options="",
            ).own
        )

    assert own({}) == {"MALLOC_ARENA_MAX": "9"}
    assert own({"MALLOC_ARENA_MAX": "4"}) == {"MALLOC_ARENA_MAX": "4"}


def test_quoting_of_real_clients_survives(tmp_path: Path) -> None:
    """Spark escapes for one pair of double quotes and single-quotes its arguments."""
    built = environment({"SPARK_DIST": 'a\'b \\$x \\`y\\` \\"z\\"'})
    printed = run_script(tmp_path, built, "printf '%s|' 'a b' \\\"c d\\\" '\\$HOME'; printenv SPARK_DIST")
    assert printed == 'a b|c d|$HOME|a\'b $x `y` "z"\n'


def test_hostile_link_names_stay_names(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("content")
    name = 'a "$(touch evil)" `touch evil` b'
    run_script(tmp_path, environment({}), "true", {name: target})
    assert (tmp_path / "work" / name).read_text() == "content"
    assert not (tmp_path / "work" / "evil").exists()


values = st.text(alphabet=st.sampled_from("ab $\"\\`{}'X1:/.-()"), max_size=20)


@given(st.dictionaries(st.sampled_from(["X", "Y", "Z"]), values, max_size=3))
def test_resolving_without_a_shell_agrees_with_bash(own: dict[str, str]) -> None:
    """Either the environment is bash's, or it says that it needs a shell."""
    built = environment(own, node={"PWD": "/"})
    try:
        ours = resolve(built)
    except NeedsShell:
        return
    exports = "".join(f'export {name}="{value}"\n' for name, value in built.own.items())
    printed = subprocess.run(
        ["/bin/bash", "-c", f"{exports}printenv -0 X; printenv -0 Y; printenv -0 Z"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert printed == "".join(ours[name] + "\0" for name in ("X", "Y", "Z") if name in own)


@pytest.mark.parametrize("text", ["$(date)", "`date`", "${X:-y}", 'a"b', "$1", "$", "$$", "a\\"])
def test_shell_only_values_are_recognised(text: str) -> None:
    with pytest.raises(NeedsShell):
        double_quoted(text, {})


@pytest.mark.parametrize("link", ["/etc/passwd", "../../x", "a/../../x", "", "a\nb", "x" * 2000, "."])
def test_links_that_leave_the_folder_are_refused(link: str) -> None:
    context = pb.ContainerLaunchContext()
    resource = pb.LocalResource()
    resource.resource.file = "/x"
    context.localResources.add(key=link, value=resource)
    with pytest.raises(BadLaunchContext):
        LaunchContext.from_pb(context)


@pytest.mark.parametrize(("name", "value"), [("A B", "x"), ("A;touch x", "x"), ("", "x"), ("A", "\0")])
def test_environment_names_must_be_shell_names(name: str, value: str) -> None:
    context = pb.ContainerLaunchContext()
    context.environment.add(key=name, value=value)
    with pytest.raises(BadLaunchContext):
        LaunchContext.from_pb(context)
