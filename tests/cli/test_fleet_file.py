"""``fleet.toml``: its template, its way into every command, and what is wrong with it."""

from __future__ import annotations

import json
import re
import shutil
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
from tests.cli.shared import MATCH, ROOT, SERVICES, Cms
from tests.cli.test_help import COMMANDS
from tests.fleet.cluster import node, pod

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


PLAN = "plan -s w.csv -p p.csv"
PLACE = "plan plan.json --nodes nodes.csv"
SHARED = "plan -s ts.csv -p tp.csv --time-sharing --json"
APPLY = "apply then.json --current now.json --dry-run"
START = "apply plan.json --current empty.json --dry-run"
TICK = (
    "replan --current empty.json -s one.csv -p p.csv --rule parvagpu --rates rates.csv "
    "--forecast latest"
)
SIMULATE = "simulate plan.json --requests 60 --json"
DAY = "simulate share.json --problem sharing.json --truth none.csv"
OBSERVE = "observe node-a=lgi.txt node-a=gpus.xml cluster.json --plan plan.json --json"
PAIRS = f"{MATCH} --pairs pairs.csv"
LEARNT = "colocate match --online O.csv --offline F.csv --predictor model.json --json"
REACHED = [
    Reach('tables.services = "w.csv"', "plan -p p.csv", "1 GPU, lower bound", "-s one.csv"),
    Reach('tables.operating_points = "p.csv"', "plan -s w.csv", "1 GPU, lower bound", "-p q.csv"),
    Reach('tables.load_curves = "c.csv"', f"{PLAN} --json", '"measured"', "--load-curves d.csv"),
    Reach('tables.nodes = "nodes.csv"', "plan plan.json", "on 1 node", "--nodes one-node.csv"),
    Reach('tables.load_curves = "c.csv"', f"{PLAN} --json", '"measured"', "--load-curves none"),
    Reach('tables.nodes = "nodes.csv"', "plan plan.json", "on 1 node", "--nodes none"),
    Reach('tables.map = { qps = "rate_rps" }', PLAN.replace("w.csv", "qps.csv"), "1 GPU, lower",
          "--map q=rate_rps"),
    Reach("gpus.max = 0", f"{PLAN} --json", '"infeasible"', "--max-gpus a100-80gb=2"),
    Reach("gpus.price_per_hour = 3", f"{PLAN} --json", '"cost": 3', "--cost a100-80gb=2"),
    Reach('gpus.device = "own.json"', PLAN, "mine-24gb has no profile '3g", "--gpu a100-80gb"),
    Reach('group.name = "g"\nmax = 0', f"{PLAN} --json", '"infeasible"'),
    Reach("group.gpus = { a100-80gb = 10 }", f"{PLAN} --json", '"infeasible"'),
    Reach("group.max = 0.5", PLAN, "only 0.5 for group g"),
    Reach('group.max_cost = 0.5\ngpus = ["a100-80gb"]', PLAN, "only 0.5 for group g"),
    Reach('plan.rule = "plain"', f"{PLAN} --json", '"name": "plain"', "--rule half"),
    Reach('plan.rate_margin = "10%"', f"{PLAN} --json", '"rate_margin": "0.1"', "--rate-margin 0"),
    Reach('plan.latency_margin = "10%"', f"{PLAN} --json", '"latency_margin": "0.1"',
          "--latency-margin 0"),
    Reach("plan.max_processes = 1", PLAN, "was left out", "--max-processes 9"),
    Reach("plan.balance = false", PLAN, option="--balance"),
    Reach('plan.routing = "equal"', f"{PLAN} --json", '"routing": "equal"'),
    Reach('plan.currency = "EUR"', f"{PLAN} --json", '"currency": "EUR"'),
    Reach('plan.replica_share = "50%"', f"{PLAN} --json", '"replica_share": "0.5"'),
    Reach("plan.time_sharing = true", f"{PLAN} --json", "round_robin", "--no-time-sharing"),
    Reach("time_sharing.max_services = 1", SHARED, '"max_services": 1'),
    Reach('time_sharing.splits = "any"', SHARED, '"splits": "any"'),
    Reach('time_sharing.headroom = "gpulet"', SHARED, '"name": "gpulet"'),
    Reach('time_sharing.batching_overheads = "o.csv"\nheadroom = "gpulet"', SHARED, '"8": 1'),
    Reach('time_sharing.interference = "i.csv"', SHARED, '"slowdown": "1.25"'),
    Reach('time_sharing.utilisations = "u.csv"\ninterference = "i.csv"', SHARED, "1 pair does not"),
    Reach('time_sharing.classes = 1\ninterference = "i.csv"', SHARED, '"classes": 1'),
    Reach("placement.min_replicas = { chat = 2 }", PLACE, "min_replicas of chat"),
    Reach('placement.spread = { chat = "node" }', PLACE, "spread of chat"),
    Reach('placement.anti_affinity = [["chat", "see"]]', PLACE, "of chat and see: costs 1 GPU"),
    Reach("placement.max_per_gpu = { chat = 1 }", PLACE, "max_per_gpu of chat"),
    Reach('placement.survive = "node:50%"', PLACE, "survive"),
    Reach("placement.as_grouped = true\nmin_replicas = { chat = 2 }", PLACE, "as_grouped leaves"),
    Reach('observation.service_label = "app"', OBSERVE),
    Reach('observation.max_age = "none"', "show old.json then.json", "1 created",
          "--max-age 15min"),
    Reach('transition.tool = "mig-parted"', APPLY, option="--tool nvidia-smi"),
    Reach('transition.floor = "90%"', APPLY, "floor 90 %", "--floor 100%"),
    Reach('transition.floors = { chat = "50%" }', APPLY, "chat 50 %", "--floor 100%"),
    Reach("transition.spare = 0", APPLY, "none was found with 0 spare GPUs", "--spare auto"),
    Reach("transition.parallel = 2", START, "on 2 nodes at once", "--parallel 1"),
    Reach("transition.durations = { start_s = 600 }", START),
    Reach('apply.shell = "rsh {node}"', START, "# by rsh {node}; a look every 1 s"),
    Reach('apply.timeout = "20s"', START, "for at most 20 s"),
    Reach('apply.pause = "7s"', START, "a look every 7 s"),
    Reach('apply.drain_flags = "--force"', f"{START} --tool gpu-operator", "node-a --force"),
    Reach('apply.slurm_folder = "/srv"', f"{START} --tool slurm", "/srv/cms/node-a.conf"),
    Reach('apply.slurm_restart = "again"', f"{START} --tool slurm", "reconfigure; again"),
    *(Reach(f'work.{key} = "x"', START, "[work] of fleet.toml has no")
      for key in ("start", "stop", "ready", "drained", "capacity")),
    Reach('export.operator_namespace = "mine"', "export target.json -t gpu-operator -o -", "mine"),
    Reach('export.config_map = "my-map"', "export target.json -t gpu-operator -o -", "my-map"),
    Reach('export.merge = "merged.yaml"', "export target.json -t mig-parted -o -", "all-halves"),
    Reach('export.base = ["none.yaml"]', "export target.json -t kubernetes -o -", "none.yaml: "),
    Reach('export.namespace = "serving"', "export target.json -t kubernetes -o -", "serving"),
    Reach('export.gateway = "shared"', "export target.json -t kubernetes -o -", "HTTPRoute"),
    Reach("export.pin_nodes = true", "export target.json -t kubernetes -o -", "hostname: node-a"),
    Reach("export.pin_gpus = true", "export target.json -t dra -o -"),
    Reach('export.slurm_types = { a100-80gb = "big" }', "export target.json -t slurm -o -", "big"),
    Reach('export.slurm_nodes = { node-a = "CPUs=64" }', "export target.json -t slurm -o -",
          "CPUs=64"),
    Reach('replan.forecast = "latest"', TICK.replace(" --forecast latest", ""),
          option="--forecast daily"),
    Reach('replan.every = "90s"', TICK, "plans may change every 90 s", "--every 1h"),
    Reach('replan.horizon = "30min"', TICK, "shorter than the 3600 s"),
    Reach('replan.lead = "2h"', f"{TICK} --json"),
    Reach('replan.replan_cost = "400"', f"{TICK} --json"),
    Reach('replan.restart_cost = "7"', f"{TICK} --json"),
    Reach('replan.hysteresis = "90%"', f"{TICK} --json"),
    Reach("replan.regrouped = true", "replan --trace rates.csv -s one.csv -p p.csv --time-sharing",
          "not with regrouped"),
    Reach('traces.time_column = "when"', f"{SIMULATE} --arrivals when.csv"),
    Reach('traces.service_column = "who"', f"{SIMULATE} --arrivals seconds.csv"),
    Reach("traces.as_recorded = true", f"{SIMULATE} --arrivals seconds.csv"),
    Reach("colocation.margin = 50", PAIRS, "29 %"),
    Reach("colocation.lowest_share = 50", PAIRS),
    Reach("colocation.slowdown_limit = 1.3", f"{PAIRS} --online free.csv", "limit 1.3"),
    Reach("colocation.waiting_scale = 1800", PAIRS, "waiting_s"),
    Reach("colocation.lower_end = true", LEARNT),
    Reach('colocation.limit_by = "expected"', LEARNT),
    Reach("colocation.day = { hours = 1, sample = 0 }", f"{DAY[:-8]}pairs.csv -q --json"),
]  # fmt: skip
TIMES = re.compile(r'"(\w*seconds|problem_sha256)": [^,\n]*|\d+\.\d+ s\b')


def written(here: Path) -> None:
    device = json.loads((DEVICES / "a30-24gb.json").read_text("utf-8"))
    own = {**device, "key": "mine-24gb", "aliases": ["a100-80gb"], "pci_device_ids": []}
    labels = {"app": "chat", "cms.point": "3g.40gb-2x4"}
    cluster = [
        node("node-a", **{"mig-3g.40gb": "1"}),
        pod(resource="mig-3g.40gb", on="node-a", metadata={"labels": labels}),
    ]
    for name, text in {
        "w.csv": f"{SERVICES}chat,bert,20,1000\nsee,vgg,20,1000\n",
        "q.csv": (here / "p.csv").read_text("utf-8").replace("75.5", "20"),
        "qps.csv": f"{SERVICES}chat,bert,20,1000\n".replace("rate_rps", "qps"),
        "d.csv": (here / "c.csv").read_text("utf-8").replace("measured", "simulated"),
        "one-node.csv": "node,gpu,count\nnode-x,a100-80gb,1\nnode-y,a100-80gb,1\n",
        "own.json": json.dumps(own),
        "cluster.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster}),
        "merged.yaml": "version: v1\nmig-configs:\n  all-halves:\n  - devices: all\n"
        "    mig-enabled: true\n    mig-devices: {3g.40gb: 2}\n",
        "when.csv": "when\n" + "".join(f"{at / 8}\n" for at in range(90)),
        "seconds.csv": "seconds,service,who\n"
        + "".join(f"{at / 8},{('chat', 'see')[at % 2]},chat\n" for at in range(90)),
        "free.csv": (here / "online.csv").read_text("utf-8").replace(",1.4,", ",,"),
        "O.csv": "gpu,device,sm_activity,memory_used_mib,model,count,slowdown_limit\n"
        "n1,slow,35,0,m1,40,\nn2,fast,35,0,m6,20,1.6\nn3,slow,35,0,m5,5,1.6\n",
        "F.csv": "workload,memory_mib,count,model\ntrain,0,50,m7\n",
    }.items():
        (here / name).write_text(text, "utf-8")


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


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("plan.rate_margin = 20", (2, 15), "'20' is more than the whole"),
        ('plan.rate_margin = "x"', (2, 15), "plan.rate_margin: the share: 'x' is not a number"),
        ("plan.max_processes = 1.5", (2, 17), "is 1.5, expected a whole number >= 1"),
        ("gpus.price_per_hour = -1", (2, 18), "price_per_hour is -1, expected a number >= 0"),
        ("gpus.price_per_hour = 1e-400000000", (2, 18), "1e-400000000"),
        ("gpus.price_per_hour = inf", (2, 18), '"inf", expected a number'),
        ("group.max_cost = -1", (2, 12), "group[0].max_cost (group 'g') is -1, expected a number"),
        ("group.max = 1\nmax_cost = 1", (1, 1), "expected either max or max_cost"),
        ('group.gpus = ["a100-80gb", "h99"]', (2, 8), "unknown GPU 'h99'"),
        ("group.gpus = { a100-80gb = 0 }", (2, 22), "is 0, expected a number > 0"),
        ('group.name = "g"\nmax = 1\n[[group]]\nname = "g"\nmax = 2', (5, 8), "two groups 'g'"),
        ('observation.max_age = "soon"', (2, 11), "'soon': expected a time such as 15min"),
        ('transition.spare = "some"', (2, 9), "'some': expected auto or a whole number"),
        ('transition.floors = { chat = "180" }', (2, 19), "floors.chat: '180' is more than the"),
        ("transition.durations = { partition_s = -1 }", (2, 29), "partition_s is -1, expected"),
        ("transition.durations = { partitio_s = 1 }", (2, 15), "\"partitio_s\", expected only"),
        ('replan.replan_cost = "-4"', (2, 15), "GPU hours is -4; expected a number >= 0"),
        ('colocation.day = { hours = "x" }', (2, 17), 'day.hours is "x", expected a number'),
        ("colocation.day = { hours = 0 }", (2, 17), "hours is 0; expected"),
        ("colocation.day = { job_hour = 4 }", (2, 9), "nearest: 'job_hours'"),
        ("colocation.margin = 101", (2, 10), "expected at most 100"),
        ("colocation.slowdown_limit = 0.9", (2, 18), "expected a factor >= 1"),
        ('replan.every = "none"', (2, 9), "'none': expected a time such as 4h"),
        ('export.slurm_types = { a100 = "a" }', (2, 24), "unknown GPU 'a100'"),
        (
            'placement.anti_affinity = [\n  ["chat", "code"],\n  ["a", "b"]\n]\nsurvive = 2',
            (6, 11), "placement.survive: survive is '2'; expected a share of the rates: node:80%",
        ),
        ('plan.rule = "capacty"', (2, 8), "collect_then_run; nearest: 'capacity'"),
        ('time_sharing.splits = "an"', (2, 10), "expected one of any, pairs; nearest: 'any'"),
        ('time_sharing.headroom = "gpulett"', (2, 12), "nearest: 'gpulet'"),
        ('placement.spread = { chat = "rack" }', (2, 19), "expected one of node, zone"),
        ("placement.max_per_gpu = { chat = 0 }", (2, 24), "expected a whole number >= 1"),
        ('transition.tool = "nvidia-sm"', (2, 8), "nearest: 'nvidia-smi'"),
        ('replan.forecast = "lates"', (2, 12), "nearest: 'latest'"),
        ('colocation.limit_by = "uper"', (2, 12), "nearest: 'upper'"),
        ('tables.map = { qps = "rate" }', (2, 15), "nearest: 'rate_rps'"),
        ("\n[gpus.h201-141gb]\nmax = 1", (2, 1), "unknown GPU 'h201-141gb'; did you mean h200"),
        ('gpus.device = "no.yaml"', (None, None), "no.yaml: there is no such file"),
        (f'gpus.device = "{DEVICES}/a30-24gb.json"', (2, 10), "expected [gpus.a30-24gb]"),
        ("plan.rule = ", (2, 8), "this is no TOML: Invalid value"),
        ('plan.rule = "a"\nrule = "b"', (3, 11), "this is no TOML: Cannot overwrite a value"),
    ],
)  # fmt: skip
def test_wrong_value_has_its_place(
    text: str, place: tuple[int | None, int | None], words: str
) -> None:
    wrong = refused(text if text[0] == "\n" else file_of(text).rstrip("\n") + "\n")
    assert (wrong.line, wrong.column) == place
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
