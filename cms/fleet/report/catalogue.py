"""Lists: GPUs and algorithms of the catalogue, predictors, decisions and policies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...values.numbers import shown
from ...values.words import count, decimal, printable
from ..replanner.reasons import headline, reasons
from .page import Bullets, Page, Part, Section, Words
from .proofs import list_reasons
from .tables import table

if TYPE_CHECKING:
    from ...plugin.registry import AlgorithmDetails
    from ..colocation import ColocationProblem, ColocationSolution
    from ..colocation.predictor import PredictedWeights, Predictor, Report
    from ..hardware import Gpu
    from ..replanner import Compared, ReplanDecision, Scene

_TARGETS = {"throughput": "throughput", "speed": "1 / slowdown"}


def gpus_page(gpus: Sequence[Gpu]) -> Page:
    """List GPUs, one a line."""
    rows = [
        [gpu.key, gpu.architecture, f"{gpu.compute_slices} + {gpu.memory_slices}",
         " ".join(gpu.base_profiles)]
        for gpu in gpus
    ]  # fmt: skip
    note = Words("slices: compute + memory; 'cms gpus NAME' shows placements and sources", "soft")
    return _only([table("GPUs", "key | architecture | >slices | profiles", rows), note])


def _only(parts: Sequence[Part], *end: Words, title: str = "") -> Page:
    return Page(title, "", (), [Section("all", "", parts)], end=end)


def gpu_page(gpu: Gpu) -> Page:
    """Describe one GPU: profiles with their starts, configurations, and sources of the figures."""
    lead = (
        f"{gpu.architecture}: {gpu.compute_slices} compute and {gpu.memory_slices} memory slices, "
        f"file version {gpu.version}"
    )
    lead += f"; also called {', '.join(gpu.aliases)}" if gpu.aliases else ""
    rows = [
        [one.name, "?" if one.id is None else one.id, one.compute, one.memory,
         ", ".join(map(str, one.starts)), one.max, "?" if one.sms is None else one.sms,
         one.since_driver or ""]
        for one in gpu.profiles
    ]  # fmt: skip
    shapes, placed = gpu.configurations, []
    for shape in shapes:
        starts: dict[str, list[str]] = {}  # of each profile together: 1g@0,1 3g@4
        for one in sorted(gpu.place(shape.blocks) or (), key=lambda placement: placement.start):
            starts.setdefault(one.profile, []).append(str(one.start))
        words = " ".join(f"{profile}@{','.join(own)}" for profile, own in starts.items())
        placed.append((str(shape), words))
    cited = [
        (f"[{each.evidence}]", f"{', '.join(each.fields)}: "
         f"{', '.join(filter(None, (each.source, each.driver, each.date)))}")
        for each in gpu.sources
    ]  # fmt: skip
    heads = "profile | >id | >compute | >memory | starts | >most | >SMs | since"
    held = f"{len(shapes)} maximal configurations of the plain profiles, and starts"
    sections = [
        Section("profiles", "Profiles", [table("Profiles", heads, rows)], drawn=True),
        Section("configurations", "Configurations", [Words(held, "head"), Bullets(placed)]),
        Section("sources", "Sources", [Words("Sources", "head"), Bullets(cited)]),
    ]  # fmt: skip
    return Page(gpu.key, lead, (), sections)


def algorithms_page(found: Iterable[AlgorithmDetails]) -> Page:
    """List algorithms with their options; a third party's is marked."""
    parts: list[Part] = []
    for one in found:
        of = "" if one.trusted else f" (of {printable(one.distribution)})"
        options = [("", f"--option {name}={value}") for name, value in one.options.items()]
        parts += [Words(f"{one.name}{of}", "head"), Bullets([("", one.summary), *options])]
    return _only(parts)


def trained_page(report: Report, predictor: Predictor) -> Page:
    """Say how well held-out measurements are predicted."""
    models = f"{len(predictor.online)} online and {count(len(predictor.offline), 'offline model')}"
    features = count(len(predictor.features), "feature")
    heads = (
        "predicted | not seen before | >samples | >error | >of the mean | >rank | "
        f">in {predictor.level:.0%} interval | >half-width"
    )
    rows = [
        [_TARGETS[split.target], split.split, decimal(split.samples), f"{split.mae:.3f}",
         f"{split.constant:.3f}", f"{split.rank:.2f}", f"{split.coverage:.1%}",
         f"{split.half_width:.3f}"]
        for split in report.splits
    ]  # fmt: skip
    head = f"{report.model} on {features} of {models}, seed {report.seed}"
    return _only([table("Errors", heads, rows)], title=head)


def predicted_parts(
    problem: ColocationProblem, solution: ColocationSolution, weights: PredictedWeights
) -> list[Part]:
    """List the predictions of the pairs in a plan, if there are any."""
    if not solution.plan.placed:
        return []
    rows = []
    for pair in solution.plan:
        told = weights.pair(
            problem.online[problem.online_index[pair.online]],
            problem.offline[problem.offline_index[pair.offline]],
        )
        most = "any" if math.isinf(told.slowdown_high) else f"{told.slowdown_high:.2f}"
        rows.append(
            [pair.online, f"{decimal(pair.count)} x {pair.offline}", f"{told.throughput:.2f}",
             f"{told.throughput_low:.2f}", f"{told.slowdown:.2f}", most]
        )  # fmt: skip
    heads = "online class | runs | >speed | >at least | >slowdown | >at most"
    head = Words(f"predicted, with the ends of {weights.predictor.level:.0%} intervals:")
    return ["", head, table("Predicted", heads, rows, rest="more pair| of classes")]


def replan_page(answer: ReplanDecision) -> Page:
    """Describe each service's rate and capacity, the decision, and its reasons."""
    rows = [
        [each.service, decimal(each.rate_rps), decimal(each.has_rps), decimal(each.will_have_rps)]
        for each in answer.services
    ]
    heads = "service | >requests/s now | >capacity/s | >afterwards"
    grid = table("Services", heads, rows, rest="more service")
    return _only([grid, Words(headline(answer), "head"), list_reasons(reasons(answer))])


def policies_page(scene: Scene, found: Sequence[Compared]) -> Page:
    """Describe the cost of each policy, and its distance from the least."""
    heads = "policy|>GPU hours|>re-plans|>starts (+temp.)|>spare|>longest|>shortage|>to least"
    rows = [
        [own.policy, decimal(own.gpu_hours), str(own.replans),
         f"{own.starts} ({own.temporary_starts})", str(own.worst_spare_gpus),
         f"{decimal(own.longest_transition_s / 60, 3)} min", f"{decimal(own.shortage_s, 3)} s",
         f"{float(100 * each.distance):+.1f} %"]
        for each in found
        for own in (each.played,)
    ]  # fmt: skip
    hours = shown(scene.count * scene.terms.every_s / 3600)
    said = (
        f"{hours} h from {scene.trace.said(scene.first)} on, {shown(100 * scene.planner.margin)} % "
        "margin. GPU hours: of plans alone. Starts: of instances, and of those that went again "
        "(temp.). Spare: the most GPUs that a change borrowed. Longest: of the changes, by assumed "
        "durations. Shortage: while some service had less than its rate. To least: GPU hours above "
        "the fewest with as many re-plans; below 0 %, plans had no room for what came."
    )
    plays = (each.played for each in found)
    refused = (
        f"{own.policy}: a change was not possible {why}" for own in plays for why in own.refused
    )
    return _only([table("Policies", heads, rows, most=10**6), said, *refused])
