"""Label → pending → mig-parted → success or failed, and the device plug-in that comes back after.

After the documents of the GPU Operator: the node's label `nvidia.com/mig.config` asks,
`nvidia.com/mig.config.state` answers, and the clients of the GPUs are paused in between. Nothing
is checked beforehand: whether pods still use a GPU shows when mig-parted clears it.
"""

from __future__ import annotations

from tests.fleet.stand_ins.kubernetes import dra
from tests.fleet.stand_ins.kubernetes.kinds import Json
from tests.fleet.stand_ins.kubernetes.nodes import CLIENTS, Machine
from tests.fleet.stand_ins.kubernetes.store import OPERATOR, World
from tests.fleet.stand_ins.machines import Ran

_ASKED = "nvidia.com/mig.config"
_STATE = "nvidia.com/mig.config.state"
_PAUSED = "paused-for-mig-change"
#: Ticks until a new label is seen, and the old answer stands; and from pending to the new answer.
_NOTICE, _APPLY = 2, 3


def tick(world: World) -> None:
    """Start what is asked for, finish what is due, and let the plug-ins say what is there."""
    for machine in world.machines.values():
        if machine.config is None:
            _look(world, machine)
        elif world.store.now >= machine.due:
            _finish(world, machine)
    for machine in world.machines.values():
        _advertise(world, machine)


def _look(world: World, machine: Machine) -> None:
    """See a new label some time after it was set; the same label again is no news."""
    asked = world.store.get("Node", machine.name)["metadata"]["labels"].get(_ASKED)
    if asked == machine.seen:
        machine.noticed = None
        return
    if machine.noticed is None:
        machine.noticed = world.store.now + _NOTICE
    if world.store.now >= machine.noticed:
        machine.seen, machine.noticed = asked, None
        if asked is not None:
            _start(world, machine, asked)


def busy(world: World) -> bool:
    """Whether a change is on its way and will end by itself."""
    return any(m.config is not None or m.noticed is not None for m in world.machines.values())


def _run(world: World, machine: Machine, command: str, name: str) -> Ran:
    """Run mig-parted with what is in the ConfigMap."""
    held = world.store.find("ConfigMap", world.mig_config_map, OPERATOR) or {}
    text = (held.get("data") or {}).get("config.yaml", "")
    return machine.node.mig_parted([command, "-f", "-", "-c", name], text)


def _start(world: World, machine: Machine, name: str) -> None:
    ran = _run(world, machine, "assert", name)
    if "assertion failure" not in ran.error.lower():
        _label(world, machine, {_STATE: "failed" if ran.code else "success"})
        return
    machine.config, machine.due = name, world.store.now + _APPLY
    paused = {f"nvidia.com/gpu.deploy.{client}": _PAUSED for client in CLIENTS}
    _label(world, machine, {_STATE: "pending", **paused})


def _finish(world: World, machine: Machine) -> None:
    fails = machine.name in world.mig_fails
    done = not fails and _run(world, machine, "apply", machine.config or "").code == 0
    machine.config = None
    running = {f"nvidia.com/gpu.deploy.{client}": "true" for client in CLIENTS}
    _label(world, machine, {**running, _STATE: "success" if done else "failed"})


def _label(world: World, machine: Machine, labels: dict[str, str]) -> None:
    node = world.store.get("Node", machine.name)
    world.store.change(node, lambda n: n["metadata"]["labels"].update(labels))


def plugin_runs(world: World, machine: Machine) -> bool:
    return any(
        pod["spec"].get("nodeName") == machine.name
        and (pod["status"].get("phase") == "Running")
        and "deletionTimestamp" not in pod["metadata"]
        for pod in world.store.peek("Pod", OPERATOR)
        if (pod["metadata"].get("labels") or {}).get("app") == "nvidia-device-plugin-daemonset"
    )


def _advertise(world: World, machine: Machine) -> None:
    """Allocatable follows the plug-in at once; keys of capacity stay behind with zero."""
    runs = plugin_runs(world, machine)
    if world.dra:
        if runs:
            dra.publish(world, machine)
        return
    counts = machine.resources() if runs else {}

    def show(node: Json) -> None:
        status = node["status"]
        stale = {key for key in status["capacity"] if key.startswith("nvidia.com/")}
        for key in sorted(stale | counts.keys()):
            status["allocatable"][key] = str(counts.get(key, 0))
            if runs:
                status["capacity"][key] = str(counts.get(key, 0))
        if runs:
            labels, said = node["metadata"]["labels"], machine.discovered()
            for key in [k for k in labels if k.startswith("nvidia.com/mig-") and k not in said]:
                del labels[key]
            labels.update(said)

    world.store.change(world.store.get("Node", machine.name), show)
