"""The two tables to begin with: every column explained in comments, with rows that make a plan."""

from __future__ import annotations

import csv
import io

from ..hardware import Gpu, Profile
from .csv_input import POINT_COLUMNS

_SERVICES = """\
# What to serve: a row for each service. The rows below are examples: put yours in their place.
#
# service           its name; each once
# model             what it runs, as the table of operating points calls it
# rate_rps          items per second that must be served, in the busiest minute
# latency_limit_ms  what 99 % of the answers may take, in milliseconds; empty: no limit
#
# Columns you may add:
# allowed_profiles  profiles it may run on, blanks between them (2g.20gb 3g.40gb); empty: all
# late_share        how many answers may be later than the limit (0.01 if left empty)
# queue             where requests wait: instance, or process (instance if left empty)
#
# Lines that begin with # are skipped. Decimal commas need semicolons between the cells.
service,model,rate_rps,latency_limit_ms
search,bert,600,120
chat,bert,45.5,200
photos,resnet50,2500,60
archive,resnet50,300,
"""
_POINTS = """\
# What was measured: a row for each way of running a model on an instance of a GPU.
# The numbers below are made up: measure your own models and put the results in their place.
#
# model           the model
# device          the GPU, a key of 'cms gpus' or a product name
# profile         the MIG profile, or mps:40 for 40 % of a whole GPU shared by MPS
# processes       processes inside the instance
# batch           items in a batch
# throughput_rps  items per second of the whole instance, all its processes together
# latency_ms      milliseconds that one batch takes, without the wait before it
#
# Leave out what did not run. More rows give more to choose from, and none is needed.
"""
#: Items per second of a whole GPU in batches of 8: orders of magnitude, not measurements.
_MODELS = {"bert": 800, "resnet50": 3000}
#: (processes, batch) and the part of the whole GPU's throughput that is reached with them.
_SETTINGS = {(1, 1): 0.45, (1, 8): 0.9, (2, 8): 1.0}


def services_template() -> str:
    """Return a table of services to begin with."""
    return _SERVICES


def points_template(gpu: Gpu) -> str:
    """Return a table of operating points on the profiles of a GPU, to begin with."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(POINT_COLUMNS)
    # one profile of each size: those with more memory or media engines are for what needs them
    sizes: dict[int, Profile] = {}
    for one in sorted(gpu.profiles, key=lambda each: (each.compute, each.memory, len(each.name))):
        sizes.setdefault(one.compute, one)
    for model, whole in _MODELS.items():
        for profile in sizes.values():
            # small instances do a little better than their share, as they do in measurements
            part = (profile.compute / gpu.compute_slices) ** 0.85
            for (processes, batch), reached in _SETTINGS.items():
                throughput = round(whole * part * reached, 1)
                latency = round(1000 * processes * batch / throughput, 1)
                own = model, gpu.key, profile.name, processes, batch
                writer.writerow((*own, f"{throughput:g}", f"{latency:g}"))
    return _POINTS + text.getvalue()
