"""For the GPU Operator: nodes are drained and cut anew as a whole, by label.

All that a step does on a node is one part: cordon, stop our work, drain, label, wait for what
mig-manager answers and for what the node offers, uncordon, start our work.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...export.advertised import offer_of
from ...export.export import ExportOptions, shell_functions
from ...export.gpu_operator import config_map, kubernetes_name, once
from ...export.mig_parted import configs_of, merged, name_of, text_of
from ...model import Deployment, FleetGpu, FleetNode
from ..model import Transition
from .steps import Part, Step
from .whole_gpus import about_whole_gpus, cuts_of, refuse_part, whole_alone

__all__ = ["files", "losses", "order", "refuse", "refuse_part", "tables"]

_ON_GPU = r"""
config_map=%(map)s
operator_namespace=%(namespace)s

# Does a step's part with a node, by kubectl: nothing where no GPU is cut anew.
on_gpu() {
    if [ "$cuts" = no ]; then
        [ "$1" != stands ] && [ "$1" != undone ]
        return
    fi
    (
        tries=$patience
        . "$folder/lib/gpu-operator.sh"
        wanted=$(wanted) former=$(former)
        case $1 in
        check) examine && say "would be cordoned, drained, cut as $wanted, and uncordoned" ;;
        close) examine && close_it ;;
        apply) change "$wanted" && await_offer wanted ;;
        stands | verify) stand ;;
        undo) change "$former" && await_offer former ;;
        undone) is_undone ;;
        places) ;; # the labels of pods tell, not the place
        esac
    )
}

# The UUIDs of devices are the device plug-in's to give.
mig_uuid() { :; }
"""

_MORE = r"""
# Whether the node exists and mig-manager knows both of its configurations.
examine() {
    config >/dev/null || exit 1
    known=$(kubectl get configmap -n "$operator_namespace" "$config_map" \
        -o 'jsonpath={.data.config\.yaml}' </dev/null) ||
        fail "there is no ConfigMap $operator_namespace/$config_map:" \
            "kubectl apply -f configmap.yaml"
    for name in "$wanted" "$former"; do
        echo "$known" | grep -q "^ *$name:" ||
            fail "ConfigMap $operator_namespace/$config_map has no $name; it is another" \
                "transition's: kubectl apply -f configmap.yaml"
    done
}

# The MIG resources that the node offers, as the device plug-in says; 0 is what is left of old ones.
offers() {
    field .status.allocatable | tr '{},' '\n\n\n' |
        awk -F'"' 'index($2, "nvidia.com/mig-") == 1 && $4 != "0" { print $2, $4 }' | LC_ALL=C sort
}
# Whether it offers what table $1_offer has; with another strategy than mixed it has other names.
is_offered() {
    strategy=$(field '.metadata.labels.nvidia\.com/mig\.strategy') || exit 1
    [ "$strategy" = mixed ] || return 0
    has=$(offers) || exit 1
    [ "$has" = "$("$1_offer" | LC_ALL=C sort)" ]
}
await_offer() {
    tried=0
    until is_offered "$1"; do
        tried=$((tried + 1))
        [ "$tried" -lt "$tries" ] ||
            fail "mig-manager has said success, but the node offers" $has "and not" \
                $("$1_offer") "(does the device plug-in run there?)"
        sleep "$pause"
    done
}

# Whether the node is cut, offers that, and is open again.
stand() {
    is_cut "$wanted" ||
        fail "its label is '$is_config' and its state '$is_state', not $wanted and success"
    is_offered wanted || fail "it offers" $has "and not" $(wanted_offer)
    is_managed=$(ours) || exit 1
    [ "$is_managed" != yes ] || fail "it is cut as $wanted has it, but still cordoned"
    say "it is cut as $wanted has it"
}

# Whether it is not, or not any more, as it was to be, and open.
is_undone() {
    is_config=$(config) || exit 1
    is_managed=$(ours) || exit 1
    [ "$is_managed" != yes ] || exit 1
    if [ "$former" = "$wanted" ] || [ "$is_config" != "$wanted" ]; then return 0; fi
    exit 1
}
"""


def files(
    transition: Transition, steps: tuple[Step, ...], options: ExportOptions
) -> dict[str, str]:
    """Return the ConfigMap, with the configurations of all nodes on the way, and the library."""
    sides = [node.gpus for d in (transition.start, transition.target) for node in d.nodes]
    for step in steps:
        for part in step.parts:
            if part.repartitions:
                sides += [part.befores, part.afters]
    configs = configs_of(cuts_of(cards) for cards in sides if cards)
    text = text_of(configs) if options.merge is None else merged(options.merge, configs)
    said = {"map": options.config_map, "namespace": options.operator_namespace}
    return {
        "configmap.yaml": config_map(text, options),
        "lib/gpu-operator.sh": (shell_functions("gpu-operator") + _MORE).lstrip(),
        "lib/on-gpu.sh": (_ON_GPU % said).lstrip(),
    }


def order(options: ExportOptions) -> tuple[str, ...]:
    """Return what has to be done once, before the rest."""
    return once(options)


def refuse(start: Deployment, options: ExportOptions) -> None:
    """Refuse names that Kubernetes does not take; nodes are cut by counts, whatever is known."""
    names = (options.config_map, options.operator_namespace)
    for name in (*names, *(node.name for node in start.nodes)):
        kubernetes_name(name)


def losses(transition: Transition) -> Iterator[str]:
    """What these scripts do not say."""
    yield from about_whole_gpus(transition)
    yield (
        "Single GPUs: a node is drained to cut any GPU of it, and all of its pods stop, also those "
        "of others; which pod gets which instance of the node is the device plug-in's choice."
    )


def tables(part: Part, options: ExportOptions) -> dict[str, tuple[str, ...]]:
    """Return the rows of each table of a part's script: configurations and what they offer."""
    if not part.repartitions:
        return {}
    return {
        "wanted": (name_of(cuts_of(part.afters)),),
        "former": (name_of(cuts_of(part.befores)),),
        "wanted_offer": tuple(_offer(part.node, part.afters)),
        "former_offer": tuple(_offer(part.node, part.befores)),
    }


def _offer(node: str, cards: tuple[FleetGpu, ...]) -> Iterator[str]:
    offer = offer_of(FleetNode(node, whole_alone(cards)))
    for name, count in sorted(offer.resources.items()):
        if name.startswith("nvidia.com/mig-"):
            yield f"{name} {count}"
