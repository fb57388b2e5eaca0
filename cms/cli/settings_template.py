"""The ``fleet.toml`` to begin with: every setting, with what holds where it is left out."""

from __future__ import annotations

_TEXT = """\
# Settings of the fleet. The commands of cms read this file where they are started, or with
# --fleet FILE; their options override it. Remove the # before a setting to change it.
# Paths are relative to this file. Quote what is no plain number: "10%", "30min".

[tables]
services = "services.csv"
operating_points = "operating_points.csv"
# load_curves = "curves.csv"           # of cms calibrate
# nodes = "nodes.csv"                  # GPUs that are there: plans are placed on them
# map = { qps = "rate_rps" }           # columns that are called otherwise in your tables

# [gpus.a100-80gb]                     # what may be planned with, by its key in cms gpus
# max = 8                              # default: any number
# cost = 1.5                           # default: 1
# device = "gpu.yaml"                  # a device file of your own

[plan]
# rule = "capacity"                    # what an instance counts for
# rate_margin = "0"                    # plan for higher rates, 10%; default of cms replan: 5%
# max_processes = 4                    # in an instance; default: any number
# balance = true                       # spend the slack on letting all rates grow alike
# time_sharing = false                 # services take turns on an instance

[time_sharing]
# max_services = 2                     # on an instance; default: any number
# splits = "pairs"                     # MPS percentages of a GPU: pairs of 100 % together, or any
# headroom = "gpulet"                  # plan for more than is stated; default: none
# batching_overheads = "overheads.csv" # what making up a batch takes
# interference = "pairs.csv"           # how much longer a batch takes beside another one
# utilisations = "utilisations.csv"    # predicts pairs that were not measured
# classes = 3                          # of batches, by how much they slow others

[placement]
# min_replicas = { chat = 2 }          # instances at least
# spread = { chat = "node" }           # evenly over nodes, or zones
# anti_affinity = [["chat", "code"]]   # never on one GPU
# max_per_gpu = { chat = 1 }
# survive = "node:80%"                 # with any one node gone, this share of each rate
# as_grouped = false                   # GPUs hold together what the plan has on one GPU

[observation]
# service_label = "app"                # your own label that names a pod's service
# max_age = "15min"                    # what was observed longer ago is refused

[transition]
# tool = "nvidia-smi"                  # what partitions the GPUs
# floor = "100%"                       # of the smaller of old and new rate, at every moment
# floors = { chat = "50%" }            # of single services
# spare = "auto"                       # GPUs used in between: auto, or a number
# max_parallel = 4                     # actions at once; default: all
# durations = { partition_s = 5, start_s = 75, delete_s = 40, stop_s = 30, repartition_s = 60 }

[export]
# operator_namespace = "gpu-operator"
# config_map = "cms-mig-parted-config"
# merge = "mig-parted.yaml"            # whose configurations are kept
# base = ["deployments"]               # your own Deployments, which are patched
# namespace = "serving"
# pin_nodes = false                    # tie pods to their nodes
# pin_gpus = false                     # with DRA: tie pods to their GPUs
# slurm_types = { a100-80gb = "a100" } # what Slurm's types of a GPU begin with
# slurm_nodes = { node-a = "CPUs=64" } # the rest of a node's line

[replan]
# forecast = "daily"                   # or daily:0.9, latest
# every = "1h"                         # between moments to change plans
# horizon = "4h"                       # how far to look ahead
# lead = "30min"                       # what a change may take
# replan_cost = "4"                    # GPU hours that a change is worth
# restart_cost = "0.05"                # GPU hours that a start is worth
# hysteresis = "2%"                    # how much more going on may cost than changing
# regrouped = false                    # change to the plan as it was made

[traces]
# time_column = "timestamp"            # of recorded arrivals
# service_column = "service"
# as_recorded = false                  # do not stretch a trace's time to each service's rate

[colocation]
# margin = 10                          # per cent of every GPU that are kept free
# lowest_share = 5                     # smaller shares, in per cent, are not given
# slowdown_limit = 1.2                 # of GPUs whose rows have none; default: no limit
# waiting_scale = 3600                 # seconds after which a workload counts twice
# lower_end = false                    # count the lower ends of predicted throughputs
# limit_by = "upper"                   # which predicted slowdown is held against the limit

[colocation.day]
# hours = 24
# interval = 15                        # minutes from one matching to the next
# protection = true                    # the monitor of every GPU
"""


def settings_template(key: str, device: str | None = None, *, asked: bool = True) -> str:
    """Return settings to begin with, a GPU that was asked for among them.

    Examples
    --------
    >>> print(settings_template("a30", "own.yaml").split("\\n\\n")[2].splitlines()[:2])
    ['[gpus.a30]', 'device = "own.yaml"']
    """
    if not asked:
        return _TEXT
    head, more = _TEXT.split("# [gpus.a100-80gb]", 1)
    own = "" if device is None else f'device = "{device}"\n'
    return f"{head}[gpus.{key}]\n{own}#{more[1:]}"
