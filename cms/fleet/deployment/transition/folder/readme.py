"""The page of a transition's folder."""

from __future__ import annotations

from collections.abc import Iterable

from .....values.numbers import shown
from ..model import Transition
from .steps import Step
from .summary import Summary

__all__ = ["readme"]


_ORDER = (
    "Fill in `work.sh`: how work is started, drained and stopped, and how nodes are reached. Or "
    "keep your own elsewhere: `export CMS_WORK=/path/to/work.sh`.",
    "`./run.sh --dry-run`: what would be done, and what is in the way of the first things.",
    "`./run.sh`: step after step; `--parallel N` for N things at once. Run it again after whatever "
    "stopped it: what is done is seen by looking, and not done again.",
    "`cms observe` and `cms apply --check` on this folder, or `steps/NN` on the way.",
)


def readme(
    transition: Transition,
    steps: Iterable[Step],
    words: Summary,
    losses: Iterable[str],
    back: str,
    tool: str,
    once: Iterable[str],
    *,
    has_picture: bool,
) -> str:
    """Write ``README.md``."""
    spare = transition.spare
    parts = [
        f"# {words.headline}",
        words.assumed,
        *(["![What happens when, if all goes by the assumed times](gantt.svg)"] * has_picture),
        "## What becomes of each service",
        "\n".join(_table(words)),
        "The lowest capacity holds at every moment, whatever runs side by side and however long "
        "anything takes, as long as nothing is begun before what it waits for; `run.sh` sees to "
        "that. It counts what instances are planned to supply, and what nobody else changes.",
        "## Spare GPUs",
        f"{spare.count} beyond the larger of before and after"
        + (f", borrowed: {', '.join(spare.borrowed)}" if spare.borrowed else "")
        + (f". Fewer do not do: {spare.reason}." if spare.reason else "."),
        "## In this order",
        "\n".join(f"{number}. {each}" for number, each in enumerate((*once, *_ORDER), 1)),
        "\n".join(_steps(transition, steps)),
        "## How to stop, and go on",
        "Ctrl-C begins nothing more and waits for what has begun. `run.sh` stops by itself at the "
        "first thing that is not there afterwards, says which and what to type. `--from N` begins "
        "with step N, `--only N` does it alone. Every state on the way is legal and above the "
        "floors, so it may also be planned anew from there:\n\n"
        f"    cms observe {_sources(tool)} -o now.json\n"
        f"    cms apply target.json --current now.json {_flag(tool)}-o again{_left(tool)}",
        "## How to go back",
        f"`./run.sh --undo N` goes back to what was there before step N, `--undo 1` all the way, "
        f"one thing after the other. {back} What hung, drained or had not started yet does not "
        "come back.",
        "## What these files do not say",
        "\n".join(f"- {loss}" for loss in losses),
        f'GPUs are cut by {tool}. If it says "In use by another client" though nothing of '
        "yours runs there, the telemetry agent may hold the instance (DCGM: nvidia-dcgm, "
        "dcgm-exporter): restart it, and go on. Nothing is forced.",
    ]
    return "\n\n".join(parts) + "\n"


def _sources(tool: str) -> str:
    if tool == "gpu-operator":  # the labels of pods say what serves
        return "cluster.json node-a=lgi.txt ... --plan transition.json"
    return "node-a=lgi.txt ... --plan transition.json $(./run.sh --serving)"


def _left(tool: str) -> str:
    """Say what a step that has stopped half-way leaves closed, and who opens it."""
    if tool == "gpu-operator":
        is_so, by_hand = (
            "cordoned, with the label `cms.cordoned=yes`",
            "`kubectl uncordon NODE; kubectl label node NODE cms.cordoned-`",
        )
    elif tool == "slurm":
        is_so, by_hand = (
            "drained, with the reason `cms: cut anew`",
            "`scontrol update nodename=NODE state=resume`",
        )
    else:
        return ""
    return (
        f"\n\nA step that has stopped half-way leaves its node {is_so}. Going on or back opens it "
        f"again; a new transition does if it cuts that node too. Else do it yourself: {by_hand}."
    )


def _flag(tool: str) -> str:
    return "" if tool == "nvidia-smi" else f"--tool {tool} "


def _table(words: Summary) -> Iterable[str]:
    yield "| service | kept | started | stopped | lowest, requests/s | floor, requests/s | why |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
    for each in words.services:
        name = each.service.replace("|", "\\|")
        floor = ("-", "") if each.floor is None else (shown(each.floor.rps), each.floor.reason)
        yield (
            f"| {name} | {each.kept} | {each.started} | {each.stopped} | {shown(each.lowest_rps)} "
            f"| {floor[0]} | {floor[1]} |"
        )


def _steps(transition: Transition, steps: Iterable[Step]) -> Iterable[str]:
    yield "| step | on | does | waits for |"
    yield "| ---: | --- | --- | --- |"
    for step in steps:
        for part in step.parts:
            does = "; ".join(
                str(transition.actions[at]).replace(f" on {part.where}:", ":").replace("|", "\\|")
                for at in part.positions
            )
            after = ", ".join(part.after) or "nothing"
            yield f"| {step.number} | {part.where} | {does} | {after} |"
