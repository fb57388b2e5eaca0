"""What is refused: with an exit code, and one line that names the place, the value and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from cms.fleet.deployment import Instance, StartSource
from tests.cli.fleets import CUT, fleet, written
from tests.cli.shared import MATCH, S1, SERVICES, TABLES, Cms, one_line

PLAN = f"plan {TABLES}"
APPLY = "apply then.json --current now.json --dry-run"
REPLAN = "replan --current empty.json -s one.csv -p p.csv --rule parvagpu --forecast latest"
TICK = f"{REPLAN} --rates rates.csv"
SHARED = "plan -s ts.csv -p tp.csv --time-sharing"
OBSERVE = "observe node-a=lgi.txt node-a=gpus.xml --plan plan.json"
DAY = "simulate share.json --problem sharing.json --truth pairs.csv"
SMALL = "simulate plan.json --requests 50"
TO = "-o page.html"
MORE = {
    "model.json": '{"format": "cms-predictor"}',
    "empty": "",
    "text": "hello\n",
    "several.yaml": CUT.replace("current", "a")
    + CUT.partition("mig-configs:\n")[2].replace("current", "b"),
    "dated.csv": "time,service,rate_rps\n2024-01-01T00:00Z,chat,5\n2024-01-01T00:30Z,chat,5\n",
    "ahead.csv": "time,service,rate_rps\n2999-01-01T00:00Z,chat,5\n2999-01-01T00:30Z,chat,5\n",
    "simulation.json": '{"format": "cms-simulation", "schema": 2}',
    "e.csv": "seconds,what,target,value\n1,fail,gpu:0,1e400\n",
    "t.csv": "seconds\n1\n1e400\n",
    "when.csv": "when,who\n1,chat\n",
}
FRAMES = '[time_sharing]\nheadroom = "gpulet"\nbatching_overheads = "o.csv"\n'
BESIDE = '[time_sharing]\ninterference = "i.csv"\n'
Row = tuple[str, int, str, dict[str, str | tuple[str, str]]]


def row(typed: str, words: str, code: int = 2, **files: str | tuple[str, str]) -> Row:
    """A command, what its line says (``a ... b``), and files in place of the usual ones."""
    return typed, code, words, files


def settings(text: str) -> str:
    """A section and a setting as a file: ``plan.rule = 1``."""
    section, _, rest = text.partition(".")
    return f"[{section}]\n{rest}\n"


COMMANDS = [
    row("frob", "frob"),
    row("plan --frob", "--frob"),
    row("check - -", "only one of them can be standard input"),
    row("gpus h201-141gb", "h200-141gb"),
    row("calibrate", "P.csv: give the table of operating points"),
    row("calibrate p.csv --late-share 5", "--late-share: '5'"),
    row("calibrate p.csv --late-share 0.01% --requests 1000", "expected at least 100,000"),
    row(
        "calibrate p.csv --requests 1000",
        "may take longer than nine years",
        1,
        p=(",120,", ",1e-9,"),
    ),
    row("init s.csv", "DIR: the folder 's.csv' cannot be made: File exists"),
    row("init s.csv/below", "DIR: the folder 's.csv/below' cannot be made"),
    row("init no/dir", "cannot be made: No such file ... create the folder above it first"),
    row("init new --gpu h100", "--gpu: unknown GPU 'h100'"),
    row("init new --gpu none.yaml", "none.yaml: there is no such file", 1),
]
PLANS = [
    row("plan", "--published NAME"),
    row("plan -s s.csv", "--operating-points"),
    row("plan -s s.csv --published S1", "not both"),
    row("plan -s - -p -", "--services and --operating-points are"),
    row("plan --published S9", "'S9' is unknown; expected one of S1, S2, S3, S4, S5, S6 (try"),
    row("plan --published three-thirds", "cms problem solve --published"),
    row(f"{S1} -g H100", "h100-80gb (H100 80GB HBM3, H100 PCIe), h100-94gb (H100 NVL) or h100-9"),
    row(f"{S1} --gpu a100-80", "a100-80gb"),
    row(f"{S1} --gpu my-card", "or the path of a device file, .yaml or .json"),
    row(f"{S1} -m magic", "installed are auto"),
    row(f"{S1} --option x=1", "no option 'x'"),
    row(f"{S1} --option x", "expected KEY=VALUE"),
    row(f"{S1} --time-limit soon", "--time-limit: 'soon'"),
    row(f"{S1} --time-limit -1", "'-1'"),
    row(f"{S1} --gap 5%", "--gap: "),
    row(f"{S1} --seed x", "--seed"),
    row(f"{S1} --threads 0", "--threads"),
    row(f"{S1} --max-gpus a100-80gb=2.5", "2.5"),
    row(f"{S1} --max-gpus h100-80gb=2", "--max-gpus: 'h100-80gb' is no GPU of this plan"),
    row(f"{S1} --max-gpus a100-80gb=1 --max-gpus a100-80gb=2", "twice"),
    row(f"{S1} --cost a100-80gb=x", "--cost: "),
    row(f"{S1} --cost a100-80gb=-1", "--cost: "),
    row(f"{S1} --rule hope", "parvagpu"),
    row(f"{PLAN} --rule round_robin", "is for instances that services share in time"),
    row(f"{S1} --rate-margin 20", "--rate-margin: '20'"),
    row(f"{S1} --rate-margin much", "--rate-margin: "),
    row(f"{S1} --rate-margin 1%%", "--rate-margin: "),
    row(f"{S1} -o no/x.json", "no folder 'no'"),
    row(f"{S1} --picture .", "is a folder"),
    row(f"{S1} --picture x.png", "pictures are SVG"),
    row(f"{PLAN} --load-curves c.csv", "which the rule 'parvagpu' does not ask for"),
    row(
        f"{PLAN} --load-curves c.csv --rule capacity_certified", "takes only what is proved"
    ),
    row(f"{PLAN} --drop cht", "there is no service 'cht'; nearest: 'chat'"),
    row(f"{PLAN} --scale cht=2", "there is no service 'cht'; nearest: 'chat'"),
    row(f"{PLAN} --scale chat=2 --drop chat", "service 'chat' is left out, and its rate is"),
    row(f"{PLAN} --scale 2 --scale 3", "--scale: all rates is there twice; give it once"),
    row(f"{PLAN} --scale chat=2 --scale chat=3", "--scale: 'chat' is there twice; give it once"),
    row(f"{PLAN} --scale -1", "--scale: the factor of all rates is -1; expected a number >= 0"),
    row(f"{PLAN} --scale chat=", "--scale: the factor of 'chat': '' is not a number"),
    row(f"{PLAN} --scale twice", "--scale: the factor of all rates: 'twice' is not a number"),
    row(f"{PLAN} --gpu a100-80gb", "only on h100-80gb; plan with these GPUs (--gpu h100-80gb", 1,
        p=("a100-80gb", "H100 PCIe")),
    row(PLAN, "there is no such file", 1, s=""),
    row(PLAN, "no column 'service'", 1, s="chat,bert,100,99\n"),
    row(PLAN, "s.csv:2:11: rate_rps ", 1, s=f'{SERVICES}chat,bert,"12,5",100\n'),
    row(PLAN, "-1", 1, s=f"{SERVICES}chat,bert,-1,100\n"),
    row(PLAN, "many", 1, s=f"{SERVICES}chat,bert,many,100\n"),
    row(PLAN, "bert", 1, s=f"{SERVICES}chat,bort,1,100\n"),
    row(PLAN, "twice", 1, s=f"{SERVICES}chat,bert,1,100\nchat,bert,1,100\n"),
]  # fmt: skip
PLACED = [
    row("plan plan.json", "give --nodes nodes.csv, --current now.json, or both"),
    row("plan plan.json -s s.csv --nodes nodes.csv", "plan.json is placed as it is; leave it out"),
    row("plan plan.json --compact --current now.json", "plan.json is placed as it is"),
    row(f"{S1} --extra-cost 1", "--extra-cost: it goes with --current"),
    row("plan --compact --nodes nodes.csv", "--compact: it goes with --current"),
    row(f"{S1} --current now.json --free nodes", "--free: it goes with --compact"),
    row(f"{S1} --current now.json --max-restarts 1", "--max-restarts: it goes with --compact"),
    row("plan --compact --current now.json --free node", "expected one of gpus, nodes"),
    row("plan --compact --current now.json --max-restarts 1,", "expected a whole number, or"),
    row(f"{S1} --current now.json --balance", "--balance: --current chooses the instances"),
    row(f"{S1} --current s.csv", "is a table, expected a JSON document", 1),
    row(f"{S1} --current plan.json", "is a plan, which says nothing of numbered GPUs; place it"),
    row("plan plan.json --current old.json --max-age soon", "expected a time such as 15min"),
    row("plan plan.json --current now.json --nodes x.csv", "node 'node-a' has other GPUs here", 1,
        x="node,gpu,count\nnode-a,a100-80gb,1\n"),
    row("plan plan.json --nodes nodes.csv --time-limit 0", "no placement was found in time", 4,
        fleet=settings("placement.min_replicas = {chat = 2}")),
    *(
        row("plan plan.json --nodes nodes.csv", words, fleet=settings(f"placement.{given}"))
        for given, words in (
            ("min_replicas = {cat = 2}", "[placement]: 'cat', which constraints name, is no "),
            ("as_grouped = true\nmin_replicas = {chat = 2}", "give one of them"),
        )
    ),
]  # fmt: skip
TIME_SHARED = [
    row(SHARED, "service 'chat' has no latency limit", 1, ts=("60\n", "\n")),
    row(SHARED, 'rate_rps is "-1"', 1, ts=(",1000,", ",-1,")),
    row(SHARED, "has processes = 2", 1, tp=("mps:50,1", "mps:50,2")),
    row(SHARED, "bert", 1, tp=("bert,a", "brt,a")),
    row(SHARED, "no overhead of a batch of 8", fleet=FRAMES, o=("8,1", "4,1")),
    row(SHARED, '"-1"', 1, fleet=FRAMES, o=("8,1", "8,-1")),
    row(SHARED, 'slowdown is "0", expected a number > 0', 1, fleet=BESIDE, i=("1.25", "0")),
    row(SHARED, "shares its GPU with no other", 1, fleet=BESIDE, i=("mps:50", "mps:100")),
    row(SHARED, "the first: bert on a100-80gb, mps:50, batch 8", 1, fleet=BESIDE,
        i=("bert,8,1", "vgg,8,1")),
    row(SHARED, "no share of this GPU", 1, fleet=BESIDE, i=("a100-80gb", "h100-80gb")),
    row(SHARED, "1 pair does not tell the five", fleet=f'{BESIDE}utilisations = "u.csv"\n'),
    row(SHARED, "no measured pair", fleet=f'{BESIDE}utilisations = "u.csv"\n',
        u=("a100", "h100")),
    row(f"{SHARED} --rule rond_robin", "nearest: 'round_robin'"),
    row(f"{SHARED} --rule half", "the queueing rule 'half' knows no duty cycles"),
    row(f"{SHARED} --rate-margin -5%", "--rate-margin"),
    row(f"{SHARED} --load-curves c.csv", "--load-curves: it is for instances"),
    row(f"{SHARED} --current now.json", "--current: it is for instances"),
    row(f"{SHARED} --balance", "--balance: it is for instances"),
    *(
        row(SHARED, f"[time_sharing] {words}", fleet=settings(f"time_sharing.{given}"))
        for given, words in (
            ("classes = 2", "classes: it goes with interference"),
            ('utilisations = "u.csv"', "utilisations: it goes with interference"),
            ('batching_overheads = "o.csv"', "batching_overheads: it goes with headroom"),
            ('interference = "i.csv"\nsplits = "any"', "splits: 'any': what slows a batch is"),
        )
    ),
]  # fmt: skip
EXPLAINED = [
    row("explain plan.json caht", "no service 'caht'; nearest: 'chat'; expected one of: chat, see"),
    row("explain plan.json --to 1", "the wanted cost is 1, and the plan costs 1; expected less"),
    row("explain plan.json --to some", "'some' is not a number"),
    row("explain plan.json --time-limit -1", "--time-limit: '-1': expected seconds >= 0"),
    row("explain plan.json --load-curves c.csv", "they are of operating points: give these, too"),
    row("explain plan.json --published S1 -p x.csv", "give --published or the tables, not both"),
    row("explain plan.json --published S3", "runs the model 'vgg', which was", 1),
    *(
        row(f"explain {file} {service}", words, code)
        for service in ("chat", "")
        for file, words, code in (
            ("problem.json", '"cms-problem", expected "cms-plan" (a plan)', 1),
            ("target.json", '"cms-deployment", expected "cms-plan" (a plan)', 1),
            ("s.csv", "this is a table, expected a JSON document", 1),
            ("nowhere.json", "there is no such file", 1),
        )
    ),
]
SHOWN = [
    row("show", "give a file, or --live"),
    row(f"show problem.json {TO}", "a page is made of a plan"),
    row(f"show share.json {TO}", "holds a colocation solution"),
    row(f"show model.json {TO}", "holds a predictor; a page is made of a plan"),
    row(f"show sharing.json {TO}", "a co-location problem and its solution: cms show problem"),
    row(f"show plan.json share.json {TO}", "leave it out"),
    row(f"show - - {TO}", "only one of them can be standard input"),
    row("show plan.json -o no/page.html", "there is no folder"),
    row("show plan.json --exit-code", "--exit-code: it is for two deployments"),
    row("show now.json plan.json", "is a plan, which says nothing of numbered GPUs"),
    row("show now.json bad.json", "be as it is written: node-a/0 has 3g.40gb@0 and 4g.40gb@0", 1),
    row("show now.json blind.json", "observe it with nvidia-smi mig -lgi", 1),
    row("show --live --published S9", "'S9' is unknown"),
    row("show --live -g a1000", "did you mean a100-80gb"),
    row("show --live -s s.csv", "one table is given without the other"),
    row("show --live -s no.csv -p no.csv", "no.csv", 1),
    row("show --live -s s.csv -p p.csv --published S1", "not both"),
    row("show --live --notebook mine.txt", "ends in .py"),
]  # fmt: skip
PROBLEMS = [
    row("check problem.json", "holds a problem alone; give both"),
    row("problem solve --published decoy", "nearest: 'decoys'; expected one of aggregated-"),
    row("problem solve --published S1", "cms plan --published S1"),
    row(
        "problem solve plan.json", "to recheck it: cms check plan.json; to improve on it: cms plan"
    ),
    row("problem solve solution.json", "cms problem solve problem.json --start solution.json"),
    row("problem solve problem.json -m cp_sat --option workers=x", "workers"),
    row("problem solve problem.json --journal x", "is for problem folders"),
    row("problem solve problem.json --cluster x", "is for problem folders"),
]
EXPORTED = [
    row("export target.json", "--to: expected one or more of mig-parted, gpu-operator"),
    row("export target.json -t mig-partd", "no target 'mig-partd'; nearest: 'mig-parted'"),
    row("export target.json -t slurm --current none.json", "there is no such file", 1),
    row("export target.json -t dra", "there is no such file", 1,
        fleet=settings('export.base = ["none.yaml"]')),
    row("export target.json -t dra", "this folder holds no manifest", 1,
        fleet=settings('export.base = ["bare"]')),
]  # fmt: skip
APPLIED = [
    row("apply then.json --yes", "give what runs: --current now.json"),
    row("apply --current now.json --yes", "name what is to run"),
    row("apply then.json now.json --yes", "SOURCE: it goes with --check"),
    row("apply then.json --current now.json", "this is no terminal to ask on"),
    row(f"{APPLY} --resume", "the state says it"),
    row("apply --resume --yes", "there is no state to go on from", 1),
    row("export target.json -t slurm --force", "--force: it goes with --output"),
    row("export target.json -t slurm --force -o -", "--force: it goes with --output"),
    row(f"{APPLY} --method theirs", "'theirs': expected ours or exchange_and_compact"),
    row(f"{APPLY} --spare some", "--spare: 'some': expected auto or a whole number"),
    row(f"{APPLY} --floor much", "--floor"),
    row(f"{APPLY} --floor chat=80", "--floor: '80'"),
    row(f"{APPLY} --floor 1 --floor 2", "'2' is a second one for all services"),
    row(f"{APPLY} --floor cat=1", "a floor is given for the service 'cat'"),
    row(f"{APPLY} --tool nvidia-sm", "nearest: 'nvidia-smi'"),
    row(f"{APPLY} --tool slurm --method exchange_and_compact", "leave out --tool"),
    row(f"{APPLY} --method exchange_and_compact --spare 1", "--spare and floors of single"),
    row(f"{APPLY} --rates rates.csv", "add --timeline or --picture"),
    row(f"{APPLY} --timeline -o -", "--timeline: a report shows it, and JSON is printed"),
    row(f"{APPLY} --node n", "--node: it goes with --check"),
    row("apply then.json --check now.json --spare 1", "--spare: it is for finding the way"),
    row("plan plan.json --nodes nodes.csv --scale 9", "--scale: plan.json is placed as it is"),
    row("plan --compact --current now.json --drop chat", "--drop: --compact plans nothing new"),
    row("show plan.json --port 99", "--port: it goes with --live"),
    row("explain plan.json chat -p p.csv", "--operating-points: it goes without a SERVICE"),
    row("export target.json --advertise -o adv", "--output: nothing is written without --to"),
    row(f"{APPLY} --time-limit 0", "no transition was found in time", 4),
    row("apply then.json --current blind.json --dry-run",
        "the starts of the instances on node-a/0 are not known", 1),
]  # fmt: skip
REPLANNED = [
    row("replan -s one.csv -p p.csv --current now.json", "give what runs and its rates"),
    row(f"{TICK} --trace rates.csv", "or --trace TRACE.csv alone"),
    row("replan -s one.csv -p p.csv --rates rates.csv", "give what runs and its rates"),
    row("replan --current now.json --rates rates.csv", "--services S.csv and --operating-points"),
    row("replan -s one.csv -p p.csv --trace rates.csv", "shorter than the 24h that are played", 1),
    row(f"{REPLAN} --rates no.csv", "there is no such file", 1),
    row(f"{REPLAN} --rates dated.csv", "expected at most 30 min", 1),
    row(f"{REPLAN} --rates ahead.csv", "ahead of this machine's clock, expected rates up to now",
        1),
    row(f"{TICK} --current rates.csv", "is a table, expected a JSON document", 1),
    row(f"{TICK} --current now.json", "'chat' runs on node-a/0 and is no service; nearest", 1,
        one=("chat,", "chatt,"), rates="time,service,rate_rps\n0,chatt,5\n60,chatt,5\n"),
    row("replan -s one.csv -p p.csv --trace rates.csv --max-age 1h", "--max-age: it goes"),
    row(f"{TICK} --play 2h", "--play: it goes with --trace"),
    row(f"{TICK} --time-sharing", "with --trace TRACE.csv alone"),
    row(f"{TICK} --forecast lates", "nearest: 'latest'"),
    row(f"{TICK} --forecast daily", "no earlier day says what", 1,
        rates="time,service,rate_rps\n0,chat,5\n3600,chat,5\n"),
    row(f"{TICK} --rate-margin 5", "--rate-margin: '5'"),
    row(f"{TICK} --every none", "--every: 'none': expected a time such as 4h"),
    row(f"{TICK} --gpu a30", "nothing was measured on a30-24gb", 1),
    row(f"{TICK} --time-limit 0", "no plan was found in time", 4),
    row(TICK, "shorter than the 3600 s", fleet=settings('replan.horizon = "30min"')),
    row(TICK, "expected at most 200: change", fleet=settings('replan.horizon = "30d"')),
    *(
        row(TICK, words, code, rates=f"time,service,rate_rps\n{rows}" if rows else "")
        for rows, code, words in (
            ("0,chat,5\n0,chatt,5\n60,chat,5\n", 1, "'chatt', which is no service; near"),
            ("0,see,5\n60,see,5\n", 1, "expected a row of it among the services"),
            ("0,chat,5\n60,chat,\n", 1, "the rate of chat is not known at 60 s (no value)"),
            ("", 1, "rates.csv"),
            ("0,chat,5\n2400,chat,5\n", 2, "expected a multiple of that"),
            ("0,chat,9000\n60,chat,9000\n", 3, "no plan on the GPUs there are serves"),
        )
    ),
]  # fmt: skip
OBSERVED = [
    row("observe lgi.txt", "lgi.txt: ... NODE=FILE", 1),
    row("observe nowhere", "nowhere: there is no such file", 1),
    row("observe empty", "empty: ... a deployment", 1),
    row("observe text", "text: ... a deployment", 1),
    row("observe node-a=gpus.xml", "gpus.xml:5: ... nvidia-smi mig -lgi", 1),
    row("observe node-a=lgi.txt", "lgi.txt:3: ... --gpu", 1),
    row("observe plan.json", 'plan.json: ... "cms-deployment"', 1),
    row("observe --node a gpus.xml now.json", "now.json: ... --plan", 1),
    row("observe --node a several.yaml", "several.yaml: ... a, b", 1),
    row(f"{OBSERVE} --adopt node-a/0:4=code", "'code'"),
    row(f"{OBSERVE} --adopt node-a/0:4=see", "node-a/0 3g.40gb@4"),
    row(f"{OBSERVE} --adopt node-a/0:4=chat@9x9", "chat@2x4"),
    row(f"{OBSERVE} --adopt node-a/0:4", "KEY=VALUE"),
    row(f"{OBSERVE} --reclaim node-a/0:5", "1g.10gb@0, 3g.40gb@4"),
    row(f"{OBSERVE} --reclaim node-a", "NODE/GPU:START"),
    row(f"{OBSERVE} --reclaim node-b/0:0", "'node-b/0'"),
]
SIMULATED = [
    row(f"{SMALL} --routing fair", "'fair'"),
    row(f"{SMALL} --arrivals gamma:x", "--arrivals"),
    row(f"{SMALL} --arrivals gamma:4 --arrivals poisson", "twice"),
    row(f"{SMALL} --arrivals nope=t.csv", "'nope'; the services are chat, see"),
    row(f"{SMALL} --arrivals cht=poisson", "nearest: 'chat'"),
    row(f"{SMALL} --surge 2", "'2'"),
    row(f"{SMALL} --surge 1e400@1+1", "is about 1.000e400"),
    row(f"{SMALL} --seconds 1e400", "about 1.000e400 s"),
    row(f"{SMALL} --scale -1", "rates"),
    row(f"{SMALL} --truth pairs.csv", "--truth: it is for plans of offline work"),
    row(f"{SMALL} --arrivals t.csv", "t.csv:3:1: '1e400'", 1),
    row(f"{SMALL} --arrivals when.csv", "'user'", 1,
        fleet=settings('traces.time_column = "when"\nservice_column = "user"')),
    row(f"{SMALL} --events e.csv", "e.csv:2: about", 1),
    row("simulate simulation.json", "cms-plan", 1),
    row(f"{DAY} --scale 2", "--scale: it is for plans of instances"),
    row(f"{DAY} -o share.json", "would be lost"),
    row("simulate share.json --truth pairs.csv", "and not what there is; give the problem"),
    row("simulate share.json --problem sharing.json", "what happens is for --truth P.csv to say"),
]  # fmt: skip
COLOCATED = [
    row(MATCH, "none is given; expected one of"),
    row(f"{MATCH} --pairs pairs.csv --predictor x", "--pairs and --predictor are both given"),
    row(f"{MATCH} --pairs pairs.csv --profiles x", "--profiles: it goes with --predictor"),
    row(f"{MATCH} --predictor pairs.csv", "pairs.csv", 1),
    row(f"{MATCH} --pairs pairs.csv --option stay=-1", "stay is -1; expected a whole number"),
    row(f"{MATCH} --pairs pairs.csv --assign online.csv", "--assign: 'online.csv': it is read"),
    row(f"{MATCH} --pairs pairs.csv -o ./pairs.csv", "--output: 'pairs.csv': it is read"),
    row(f"{MATCH} --pairs pairs.csv -o x --problem x", "--problem: 'x': --output writes it, too"),
    row(f"{MATCH} --pairs pairs.csv", "waiting_s", 1,
        fleet=settings("colocation.waiting_scale = 9")),
    row("colocate train pairs.csv --model rigde", "nearest: 'ridge'"),
    row("colocate train pairs.csv --write-profiles x", "it goes with --probe"),
    row("colocate train pairs.csv --probe m12", "nothing was measured beside", 1),
]  # fmt: skip
TABLE = "{0}: this is a table, expected a JSON document; 'cms plan --services"
IN_PLACE = [
    row(typed, TABLE.format("s.csv"), 1)
    for typed in (
        "plan s.csv --nodes nodes.csv", "simulate s.csv", f"{S1} --current s.csv", "check s.csv",
        "show s.csv", "show now.json s.csv", "export s.csv -t slurm", "problem solve s.csv",
        "apply s.csv --current now.json --dry-run", "apply then.json --current s.csv --dry-run",
        "apply s.csv --check now.json", "observe now.json --plan s.csv",
    )
]  # fmt: skip
ROWS = [
    *(*COMMANDS, *PLANS, *PLACED, *TIME_SHARED, *EXPLAINED, *SHOWN, *PROBLEMS, *EXPORTED),
    *(*APPLIED, *REPLANNED, *OBSERVED, *SIMULATED, *COLOCATED, *IN_PLACE),
]


@pytest.mark.parametrize(("typed", "code", "words", "files"), ROWS, ids=[row[0] for row in ROWS])
def test_refused_command_names_place_value_and_fix(
    typed: str, code: int, words: str, files: dict[str, str | tuple[str, str]], here: Path, cms: Cms
) -> None:
    if "--live" in typed:
        pytest.importorskip("marimo")
    for name, text in MORE.items():
        (here / name).write_text(text, "utf-8")
    (here / "bare").mkdir()
    written(fleet([[Instance("3g.40gb", 0), Instance("4g.40gb", 0)]]), here / "bad.json")
    written(
        fleet([[Instance("1g.10gb")], []], start_source=StartSource.UNKNOWN), here / "blind.json"
    )
    for name, change in files.items():
        path = here / (f"{name}.toml" if name == "fleet" else f"{name}.csv")
        text = change if isinstance(change, str) else path.read_text("utf-8").replace(*change)
        path.write_text(text, "utf-8") if text else path.unlink()
    before = {path: path.read_bytes() for path in here.iterdir() if path.is_file()}
    out, err = cms(typed, code=code)
    lines = [line for line in err.splitlines(keepends=True) if not line.startswith("warning: ")]
    error = one_line(out, "".join(lines))
    assert all(each in error for each in words.split(" ... ")), error
    assert {path: path.read_bytes() for path in here.iterdir() if path.is_file()} == before
