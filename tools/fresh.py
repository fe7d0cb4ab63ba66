"""Runs README's commands in a pristine Debian 12: ``make fresh`` as root, ``make fresh-user`` as an ordinary user.

Built from Debian's packages, with what README names and nothing else; caches are empty.  From this machine come only the
settings without which nothing can be fetched: apt's sources, pip's configuration, proxies, certificate authorities.  The
root is a mount point in namespaces of its own, so whatever is started in it ends with it, and nothing is left.

``FRESH="demo test"`` chooses commands, ``FRESH_TEST=tests/unit`` a part of the tests, ``FRESH_KEEP=1`` keeps the root.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LOGS: Final = ROOT / "build" / "fresh"
BIG: Final = "/var/tmp"  # noqa: S108 — a folder of its own is made in it; /tmp may be small
SUITE: Final = "bookworm"
TOOLS: Final = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "pivot_root": "util-linux", "git": "git"}
COMMANDS: Final = ("demo", "test")
USERS: Final = {"root": "/root", "person": "/home/person"}
CARRIED: Final = re.compile(
    r"(https?|all|no)_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|(PIP|UV)_\w+|BALLAST_MAVEN_\w+",
    re.IGNORECASE,
)
"""Variables that say where packages come from."""
LEFT: Final = re.compile(r".*_(CACHE_DIR|CONFIG_FILE|REQUIRE_VIRTUALENV)")
"""Among them those that belong to this machine: its caches must not help."""
INSIDE: Final = """
set -eu
mount --bind "$NEW" "$NEW"
mount --rbind /dev "$NEW/dev"
mount --rbind /sys "$NEW/sys"
mount -t proc proc "$NEW/proc"
for shared in $SHARED; do mkdir -p "$NEW$shared"; mount --bind -o ro "$shared" "$NEW$shared"; done
mkdir "$NEW/outside"
cd "$NEW"
pivot_root . outside
cd /
umount -l outside
rmdir outside
[ "$WHO" = root ] || { useradd --home-dir "$HOME_DIR" --shell /bin/bash "$WHO"; chown -R "$WHO:" "$HOME_DIR"; }
size() { if [ -d "$1" ]; then du -sm "$1" | cut -f1; else echo 0; fi; }
as_them() { setpriv --reuid="$WHO" --regid="$WHO" --init-groups env -i $VARIABLES "$@"; }
worst=0
for goal in $GOALS; do
  began=$(date +%s); code=0
  echo "== make $goal"
  as_them make -C "$PLACE" "$goal" TEST="$TEST" || code=$?
  echo "== make $goal: exit $code after $(( $(date +%s) - began )) s; MB: .venv $(size "$PLACE/.venv"), cache $(size "$HOME_DIR/.cache")"
  [ "$code" = 0 ] || worst=1
done
exit "$worst"
"""
"""What the shell does as the first process of the new namespaces; it ends orphans as an init does."""


def readme_packages() -> list[str]:
    """The Debian packages that README tells a newcomer to install."""
    named = re.search(r"apt-get install ([\w. -]+)", (ROOT / "README.md").read_text())
    assert named, "README names no packages"
    return named[1].split()


def apt_sources() -> str:
    """This machine's sources of the same Debian, in one-line form; empty where it has none, for the tool's own."""
    wanted = {SUITE, f"{SUITE}-updates", f"{SUITE}-security"}
    form = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", form, "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = [line.split() for line in listed.splitlines()]
    return "".join(f"deb {uri} {suite} {part}\n" for suite, part, uri in rows if suite in wanted and part == "main")


def apt_options() -> list[str]:
    """How this machine's apt fetches: proxies, certificates, retries."""
    shown = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^Acquire::(?:https?|Retries|Check-|ForceIPv)[^\n]*;$", shown, re.MULTILINE)


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment says where packages come from and how to reach it."""
    return {k: v for k, v in environment.items() if CARRIED.fullmatch(k) and not LEFT.fullmatch(k)}


def pip_configuration(files: list[Path]) -> configparser.ConfigParser:
    """Pip's own files as one, the later ones winning, as pip reads them."""
    merged = configparser.ConfigParser(interpolation=None)
    merged.read([file for file in files if file.is_file()])
    return merged


def pip_files(environment: Mapping[str, str]) -> list[Path]:
    """Where pip's configuration may lie on this machine."""
    home = Path.home()
    named = [Path(environment["PIP_CONFIG_FILE"])] if "PIP_CONFIG_FILE" in environment else []
    return [Path("/etc/pip.conf"), home / ".pip" / "pip.conf", home / ".config" / "pip" / "pip.conf", *named]


def build(new: Path, carried: Mapping[str, str]) -> list[Path]:
    """Make the root and give it the settings; returns the folders that these name, to be shared read-only."""
    options = [f"--aptopt={option}" for option in apt_options()]
    packages = f"--include={','.join(readme_packages())}"
    command = ["mmdebstrap", "--variant=minbase", "--quiet", packages, *options, SUITE, str(new)]
    sources = apt_sources()
    subprocess.run([*command, "-"] if sources else command, input=sources, text=True, check=True)
    for path in (Path("/etc/resolv.conf"), Path("/etc/hosts")):
        shutil.copy(path, new / path.relative_to("/"))
    own_authorities = Path("/usr/local/share/ca-certificates")
    if own_authorities.is_dir():
        shutil.copytree(own_authorities, new / own_authorities.relative_to("/"), dirs_exist_ok=True)
    configured = pip_configuration(pip_files(os.environ))
    with (new / "etc" / "pip.conf").open("w") as file:
        configured.write(file)
    values = [*carried.values(), *(value for section in configured.values() for value in section.values())]
    named = [Path(word) for value in values for word in value.split() if word.startswith("/")]
    for path in {path for path in named if path.is_file()}:
        there = new / path.relative_to("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, there)
    return sorted({path for path in named if path.is_dir()})


def copy_checkout(place: Path) -> None:
    """The files of the checkout, with what is not committed yet, without what git ignores."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)


def run(new: Path, who: str, goals: list[str], log: Path) -> int:
    """Build the root, run the commands in it, and write everything they say to the log as well."""
    carried = variables(os.environ)
    shared = build(new, carried)
    home = USERS[who]
    place = f"{home}/ballast"
    copy_checkout(new / place.lstrip("/"))
    theirs = carried | {"HOME": home, "USER": who, "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb"}
    if who == "root":
        # Root may install everything, so nothing may be left out.
        theirs |= {"CI": "true", "PATH": f"/usr/local/sbin:/usr/sbin:/sbin:{theirs['PATH']}"}
    settings = {
        "NEW": str(new),
        "WHO": who,
        "PLACE": place,
        "HOME_DIR": home,
        "GOALS": " ".join(goals),
        "TEST": os.environ.get("FRESH_TEST") or "tests",
        "SHARED": " ".join(str(path) for path in shared),
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    }
    script = INSIDE.replace("$VARIABLES", shlex.join(f"{name}={value}" for name, value in theirs.items()))
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", script]
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, env=settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                sys.stdout.write(line)
                sys.stdout.flush()
                file.write(line)
                file.flush()
        except BaseException:
            process.kill()
            raise
    return process.returncode


def main(who: str) -> int:
    """One pristine root, from nothing to nothing."""
    goals = (os.environ.get("FRESH") or " ".join(COMMANDS)).split()
    if who not in USERS or set(goals) - set(COMMANDS):
        print(f'usage: fresh.py {"|".join(USERS)}, with FRESH="{" ".join(COMMANDS)}" or one of them', file=sys.stderr)
        return 2
    lacking = sorted(
        {package for tool, package in TOOLS.items() if shutil.which(tool, path="/usr/sbin:/usr/bin") is None}
    )
    if os.geteuid() != 0 or lacking:
        why = f"apt-get install {' '.join(lacking)}" if lacking else "only root may build another root"
        print(f"A pristine root cannot be made here: {why}.", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{who}-{time.strftime('%Y%m%dT%H%M%S')}.log"
    folder = Path(tempfile.mkdtemp(prefix="ballast-fresh-", dir=os.environ.get("TMPDIR") or BIG))
    folder.chmod(0o755)
    print(f"log: {log}", flush=True)
    try:
        code = run(folder / "root", who, goals, log)
    finally:
        if os.environ.get("FRESH_KEEP") == "1":
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)
    print(f"{'green' if code == 0 else 'RED'}: make {' '.join(goals)} as {who}; log: {log}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) == 2 else ""))
