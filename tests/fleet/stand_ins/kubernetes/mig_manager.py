"""Label → pending → mig-parted → success or failed, and the device plug-in that comes back after.

After the documents of the GPU Operator: the node's label `nvidia.com/mig.config` asks,
`nvidia.com/mig.config.state` answers, and the clients of the GPUs are paused in between. Nothing
is checked beforehand: whether pods still use a GPU shows when mig-parted clears it.
"""

from __future__ import annotations

from tests.fleet.stand_ins.kubernetes import dra
from tests.fleet.stand_ins.kubernetes.nodes import CLIENTS, Json, Machine
from tests.fleet.stand_ins.kubernetes.store import OPERATOR, World
from tests.fleet.stand_ins.mig_parted_file import Entry, Failure, entry_of, specification
from tests.fleet.stand_ins.placement import place

_ASKED = "nvidia.com/mig.config"
_STATE = "nvidia.com/mig.config.state"
_PAUSED = "paused-for-mig-change"


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
        machine.noticed = world.store.now + world.timing.notice
    if world.store.now >= machine.noticed:
        machine.seen, machine.noticed = asked, None
        if asked is not None:
            _start(world, machine, asked)


def busy(world: World) -> bool:
    """Whether a change is on its way and will end by itself."""
    return any(m.config is not None or m.noticed is not None for m in world.machines.values())


def _entries(world: World, name: str) -> list[Entry] | None:
    held = world.store.find("ConfigMap", world.mig_config_map, OPERATOR) or {}
    try:
        return specification((held.get("data") or {}).get("config.yaml", "")).get(name)
    except Failure:
        return None


def _start(world: World, machine: Machine, name: str) -> None:
    entries = _entries(world, name)
    if entries is None:
        _label(world, machine, {_STATE: "failed"})
    elif _asserted(machine, entries):
        _label(world, machine, {_STATE: "success"})
    else:
        machine.config, machine.due = name, world.store.now + world.timing.apply
        paused = {f"nvidia.com/gpu.deploy.{client}": _PAUSED for client in CLIENTS}
        _label(world, machine, {_STATE: "pending", **paused})


def _asserted(machine: Machine, entries: list[Entry]) -> bool:
    """Whether mig-parted finds every GPU as asked, and each listed."""
    asked = [entry_of(entries, at, gpu.card.device_id) for at, gpu in enumerate(machine.gpus)]
    pairs = zip(machine.gpus, asked, strict=True)
    return all(entry is not None and gpu.is_cut(entry) for gpu, entry in pairs)


def _finish(world: World, machine: Machine) -> None:
    entries = _entries(world, machine.config or "")
    done = entries is not None and machine.name not in world.mig_fails
    for index, gpu in enumerate(machine.gpus):
        entry = entry_of(entries, index, gpu.card.device_id) if entries and done else None
        if entry is None or gpu.is_cut(entry):
            continue
        if any(device.gpu == index for device in machine.users):
            done = False  # "In use by another client"
            continue
        # A whole GPU is cleared before the new instances are tried, one by one.
        layout = place(gpu.model, entry.wanted or {})
        gpu.mig, gpu.layout, done = entry.enabled, layout or (), done and layout is not None
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
