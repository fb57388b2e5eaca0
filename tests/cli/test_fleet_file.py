"""``fleet.toml``: its template, its way into every command, and what is wrong with it."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from cms.cli.fleet_file import _OPTIONS, read_fleet_file
from cms.cli.init import settings_template
from cms.cli.settings import Fleet, Gpu, Group
from cms.errors import FileError
from cms.fleet.deployment.transition import Durations
from cms.fleet.simulation.colocation_loop import Terms
from tests.cli.shared import FILES, ROOT, Cms
from tests.cli.test_help import COMMANDS

#: Settings that reach their commands, and values that are refused.
TABLE = tomllib.loads(Path(__file__).with_name("settings.toml").read_text("utf-8"))
NAME = "fleet.toml"
DEVICES = ROOT / "cms/fleet/hardware/devices"


def leaves() -> Iterator[tuple[str, str, Any]]:
    """Every setting: its section, its key and what holds without it."""
    for section, field in Fleet.model_fields.items():
        parts: dict[str, Any] = {"gpus": Gpu, "group": Group}
        model = parts.get(section, field.annotation)
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        for key, each in model.model_fields.items():
            none = each.is_required()
            yield section, key, None if none else each.get_default(call_default_factory=True)


LEAVES = {f"{section}.{key}": default for section, key, default in leaves()}


def file_of(text: str) -> str:
    """``plan.rule = 1`` as a file; a GPU's settings are of an A100."""
    section, _, rest = text.partition(".")
    if section == "group":  # which has a name and a limit
        given = {line.partition(" ")[0] for line in rest.splitlines()}
        rest += "" if "name" in given else '\nname = "g"'
        rest += "" if given & {"max", "max_cost"} else "\nmax = 9"
        return f"[[group]]\n{rest}\n"
    return f"[{'gpus.a100-80gb' if section == 'gpus' else section}]\n{rest}\n"


# --- the template ---------------------------------------------------------------------------------

SHOWN = re.compile(r"(?:# )?(\w+) = (\S.*?)\s*(?:# .*)?")


def template() -> dict[str, str]:
    """Every setting of the template as a file of its own, its comment marks removed."""
    found, section = {}, ""
    for line in settings_template("a100-80gb").splitlines():
        if head := re.match(r"(?:# )?\[+(.+?)\]", line):
            section = head[1].split(".a100")[0]
        elif shown := SHOWN.fullmatch(line):
            found[f"{section}.{shown[1]}"] = file_of(f"{section}.{shown[1]} = {shown[2]}")
    return found


TEMPLATE = template()


def test_template_shows_every_setting_and_all_of_them_at_once_are_a_file(tmp_path: Path) -> None:
    shown = {key for key in TEMPLATE if not key.startswith("colocation.day.")}
    assert shown | {"colocation.day"} == LEAVES.keys()
    whole = re.sub(r"(?m)^# (\w+ = |\[)", r"\1", settings_template("a100-80gb"))
    shutil.copyfile(DEVICES / "a100-80gb.json", "gpu.yaml")
    (tmp_path / NAME).write_text(whole, "utf-8")
    assert len(read_fleet_file(Path(NAME)).model_dump(exclude_defaults=True)) > 8


@pytest.mark.parametrize("setting", TEMPLATE)
def test_setting_of_the_template_is_a_file_that_shows_the_default(setting: str) -> None:
    Path(NAME).write_text(TEMPLATE[setting], "utf-8")
    shutil.copyfile(DEVICES / "a100-80gb.json", "gpu.yaml")
    found = read_fleet_file(Path(NAME))
    section, *_, key = setting.split(".")
    one: dict[str, Any] = {"gpus": found.gpus.get("a100-80gb"), "group": (*found.group, None)[0]}
    part: Any = one.get(section) or getattr(found, section)
    if setting.startswith("colocation.day."):
        assert part.day == Terms()
    elif setting == "transition.durations":
        assert part.durations == Durations()
    elif (default := LEAVES[setting] or default_of_option(section, key)) not in (None, {}, ()):
        assert getattr(part, key) == default


def default_of_option(section: str, key: str) -> Any:
    """What an option of the same name is without a file."""
    command = {"plan": "plan", "observation": "plan", "transition": "apply"}.get(section, section)
    name = "shared" if key == "time_sharing" else key
    names = {each.name: each for each in COMMANDS[command].params} if command in COMMANDS else {}
    return names[name].default if name in names else None


# --- from the file into the commands --------------------------------------------------------------


class Reach(NamedTuple):
    """A setting, the command that it changes, and words of its answer that are not there without.

    Without words the answers differ. With the option the setting makes no difference.
    """

    setting: str
    command: str
    words: str = ""
    option: str = ""


APPLY = "apply then.json --current now.json --dry-run"
OBSERVE = "observe node-a=lgi.txt node-a=gpus.xml cluster.json --plan plan.json --json"
REACHED = [Reach(*row) for row in TABLE["reached"]]
TIMES = re.compile(r'"(\w*seconds|problem_sha256)": [^,\n]*|\d+\.\d+ s\b')


def written(here: Path) -> None:
    shutil.copytree(FILES / "settled", here, dirs_exist_ok=True)


def answer(cms: Cms, command: str) -> str:
    said = cms(command, code=(0, 1, 2, 3, 4))
    return TIMES.sub("", said.out + said.err)


def test_every_setting_and_every_option_of_a_setting_is_tried() -> None:
    tried = {each.setting.partition(" =")[0]: each for each in REACHED}
    assert tried.keys() == LEAVES.keys()
    names = {each.name for command in COMMANDS.values() for each in command.params}
    optional = {
        key for key in LEAVES if key.split(".")[0] in _OPTIONS and key.split(".")[1] in names
    }
    optional |= {key for key in LEAVES if key.startswith(("tables.", "gpus."))}
    optional |= {"plan.time_sharing", "transition.floor", "transition.floors"}
    optional -= {"plan.routing"}  # --routing is of a replay
    assert {key for key, each in tried.items() if each.option} == optional


@pytest.mark.parametrize("reach", REACHED, ids=[each.setting for each in REACHED])
def test_setting_reaches_its_command(reach: Reach, here: Path, cms: Cms) -> None:
    written(here)
    if "--predictor" in reach.command:
        cms("colocate train P.csv --model mean -o model.json")
    without = answer(cms, reach.command)
    (here / NAME).write_text(file_of(reach.setting), "utf-8")
    changed = answer(cms, reach.command)
    assert answer(cms, f"{reach.command} --fleet none") == without
    if reach.words:
        assert (reach.words in without, reach.words in changed) == (False, True), changed[:400]
    else:
        assert changed != without
    if reach.option:
        command = f"{reach.command} {reach.option}"
        assert answer(cms, command) == answer(cms, f"{command} --fleet none")


@pytest.mark.parametrize("command", [APPLY, OBSERVE, "apply then.json --check now.json"])
def test_gpus_of_the_fleet_say_nothing_of_what_is_observed(
    command: str, here: Path, cms: Cms
) -> None:
    written(here)
    without = answer(cms, command)
    (here / NAME).write_text("[gpus.h100-80gb]\nmax = 8\n", "utf-8")
    assert answer(cms, command) == without


def test_floor_of_a_service_that_is_not_there_is_told(here: Path, cms: Cms) -> None:
    (here / NAME).write_text('[transition]\nfloors = { caht = "50%" }\n', "utf-8")
    said = cms(APPLY)
    assert "no service 'caht' is there" in said.err
    assert "caht" not in said.out


# --- refused --------------------------------------------------------------------------------------


def refused(text: str | bytes) -> FileError:
    Path(NAME).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    with pytest.raises(FileError) as caught:
        read_fleet_file(Path(NAME))
    return caught.value


@pytest.mark.parametrize("setting", LEAVES)
def test_wrong_key_and_wrong_type_are_refused_with_their_place(setting: str) -> None:
    head, key, *rest = file_of(f"{setting} = 1").splitlines()
    name = key.split()[0]
    longer = name + name[-1]
    wrong = refused(f"# first\n{head}\n  {longer} = 1\n")
    assert (wrong.line, wrong.column) == (3, 3)
    assert f'unknown key "{longer}"' in str(wrong)
    assert f"nearest: '{name}'" in str(wrong)
    wrong = refused("\n".join([head, f"{name} = 1979-05-27", *rest]))
    assert (wrong.line, wrong.column) == (2, len(name) + 4)
    assert "1979-05-27" in str(wrong)
    section = head.strip("[]").partition(".")[0]
    wrong = refused(f"\n[{section}z]\n")
    assert (wrong.line, wrong.column) == (2, 1)
    assert f"nearest: '{section}'" in str(wrong)


@pytest.mark.parametrize(("text", "place", "words"), TABLE["wrong"])
def test_wrong_value_has_its_place(text: str, place: list[int], words: str) -> None:
    text = text.replace("DEVICES", str(DEVICES))
    wrong = refused(text if text[0] == "\n" else file_of(text).rstrip("\n") + "\n")
    assert [each for each in (wrong.line, wrong.column) if each] == place
    assert words in str(wrong)


def test_file_that_is_none_is_refused_by_every_command(here: Path, cms: Cms) -> None:
    assert "is not UTF-8" in str(refused(b"\xff\xfe[\x00p"))
    assert "the file is empty" in str(refused(""))
    assert "is an array, expected an object" in str(refused("[[gpus]]\nmax = 3\n"))
    (here / NAME).write_text("[plan]\nrulle = 1\n", "utf-8")
    files = {"plan": "plan.json", "explain": "plan.json", "apply": "then.json"}
    for typed, command in COMMANDS.items():
        if any(each.name == "fleet" for each in command.params):
            required = [
                word
                for each in command.params
                if each.required
                for word in [*each.opts[:1], files.get(typed, "x")][
                    each.param_type_name != "option" :
                ]
            ]
            said = cms(typed, required, code=1).error
            assert said.startswith("error: fleet.toml:2:1: plan.rulle: unknown key"), typed
    assert "there is no such file" in cms("plan --fleet no.toml", code=1).error


# --- where it is ----------------------------------------------------------------------------------


def test_paths_are_beside_the_file_which_published_plans_do_not_read(here: Path, cms: Cms) -> None:
    (here / "elsewhere").mkdir()
    text = '[tables]\nservices = "../s.csv"\noperating_points = "p.csv"\n[plan]\nrule = "plain"\n'
    (here / "elsewhere" / "ours.toml").write_text(text, "utf-8")
    (here / "p.csv").rename(here / "elsewhere" / "p.csv")
    assert "1 GPU, lower bound 1" in cms("plan --fleet elsewhere/ours.toml").out
    (here / "elsewhere" / "ours.toml").rename(here / NAME)
    (here / NAME).write_text("[gpus.a100-80gb]\nmax = 0\n", "utf-8")
    assert "2 GPUs, lower bound 2" in cms("plan --published S1").out
    assert "infeasible" in cms("plan --published S1 --fleet fleet.toml", code=3).out


@pytest.mark.parametrize("change", [("", "\ufeff"), ("\n", "\r\n"), (" = ", "=")])
def test_mark_of_bytes_and_line_ends_do_not_matter(change: tuple[str, str]) -> None:
    text = 'x-own = "é"\n' + settings_template("a100-80gb")
    Path(NAME).write_text(text, "utf-8")
    plain = read_fleet_file(Path(NAME))
    old, new = change
    Path(NAME).write_bytes((text.replace(old, new) if old else new + text).encode("utf-8"))
    assert read_fleet_file(Path(NAME)) == plain
    wrong = refused(Path(NAME).read_bytes() + b"[x-more]\n[planning]\n")
    assert (wrong.line, wrong.column) == (text.count("\n") + 2, 1)


def test_limits_and_costs_hold_for_the_gpus_that_are_chosen(here: Path, cms: Cms) -> None:
    (here / NAME).write_text(
        "[gpus.A100-SXM4-80GB]\nmax = 8\nprice_per_hour = 1.5\n[gpus.h100-80gb]\nmax = 3\n", "utf-8"
    )
    typed = "plan -s s.csv -p p.csv --rule plain --gpu a100-80gb --json"
    (machine,) = cms(typed).json["problem"]["machine_types"]
    assert (machine["cost"], machine["limit"]) == ("1.5", 8)
