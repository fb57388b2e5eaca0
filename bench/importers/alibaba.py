"""Usage by pod and hour, in the form of Alibaba's GPU trace of 2026. No licence: bring your own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from cms.errors import InvalidProblem
from cms.files.source import StrPath
from cms.files.tables import read_table
from cms.fleet.colocation.problem import OfflineClass, OnlineClass
from cms.fleet.colocation.tables import merge, round_to
from cms.values.names import nearest
from cms.values.numbers import Number, exact, shown

_COLUMNS = (
    *("pod_id", "gpu_spec_public", "priority_class", "job_type_public", "model_type_public"),
    *("gpu_request", "avg_gpu_sm_util", "avg_gpu_mem_gib"),
)
_MIB = 1024
_SCALES = {"per cent": Fraction(1), "fraction": Fraction(100)}


def read_alibaba_usage(
    path: StrPath,
    *,
    memory_total_mib: Mapping[str, Number],
    utilisation: str = "per cent",
    quantile: Number = "0.95",
    slowdown_limit: Number | None = None,
) -> tuple[tuple[OnlineClass, ...], tuple[OfflineClass, ...]]:
    """Read online services and offline workloads from usage by pod and hour.

    The CSV has the columns that the schema of ``asi_opensource_pod_hourly`` names, a row a pod and
    hour; ``avg_gpu_sm_util`` is in "per cent" or a "fraction", which the schema does not say. The
    memory of GPUs is by ``gpu_spec_public``.

    Online classes are pods of high-priority online inference on one whole GPU: the ``quantile`` of
    their hours' activities, rounded up to whole per cent, and the most memory of any hour; pods
    that are then alike are one class. Offline classes are low-priority training and offline
    inference on one GPU or less, one for each job type and model type, with the most memory of any
    of its pods.

    References
    ----------
    ``cluster-trace-gpu-v2026`` of alibaba/clusterdata, for research; ``docs/schema.md`` there.
    """
    if utilisation not in _SCALES:
        raise InvalidProblem(
            f"utilisation is {utilisation!r}; expected {' or '.join(map(repr, _SCALES))}"
        )
    part = exact(quantile, "quantile")
    if not 0 < part <= 1:
        raise InvalidProblem(f"quantile is {shown(part)}; expected a number > 0 and <= 1")
    services: dict[tuple[str, str, str], list[tuple[Fraction, Fraction]]] = {}
    work: dict[tuple[str, str], dict[str, Fraction]] = {}
    for row in read_table(path, _COLUMNS):
        kind, job = row["priority_class"].text, row["job_type_public"].text
        request, model = row["gpu_request"].number(), row["model_type_public"].text or "unknown"
        pod, memory = row["pod_id"].word(), row["avg_gpu_mem_gib"].number() * _MIB
        if kind == "HP" and job == "online_inference" and request == 1:
            activity = row["avg_gpu_sm_util"].number() * _SCALES[utilisation]
            if activity > 100:
                raise row["avg_gpu_sm_util"].error(
                    f"avg_gpu_sm_util is {row['avg_gpu_sm_util'].text}, which is more than all SMs",
                    expected='at most 100, or 1 with utilisation="fraction"',
                )
            key = row["gpu_spec_public"].word(), model, pod
            services.setdefault(key, []).append((activity, memory))
        elif kind == "LP" and job in ("training", "offline_inference") and 0 < request <= 1:
            pods = work.setdefault((job, model), {})
            pods[pod] = max(memory, pods.get(pod, memory))
    online = []
    for (device, model, _), hours in services.items():
        if device not in memory_total_mib:
            raise InvalidProblem(
                f"memory_total_mib says nothing of {device!r}{nearest(device, memory_total_mib)}"
            )
        activities = sorted(activity for activity, _ in hours)
        one = OnlineClass(
            device, count=1, sm_activity=activities[math.ceil(part * len(activities)) - 1],
            memory_mib=max(memory for _, memory in hours),
            memory_total_mib=memory_total_mib[device], model=model, slowdown_limit=slowdown_limit,
        )  # fmt: skip
        online.append(round_to(one, 1, -1))
    offline = [
        OfflineClass(f"{job} {model}", count=len(pods), memory_mib=max(pods.values()))
        for (job, model), pods in work.items()
    ]
    return tuple(merge(online)[0]), tuple(offline)
