"""What the folders of tools that cut whole GPUs have in common: tables, refusals, and scripts.

`CUT` runs on a node, behind the functions of the exporter's script for nvidia-smi: mig-parted cuts,
and what counts is what nvidia-smi lists. Its configuration names the GPUs of the part alone, as
parts of one node may run side by side: what is not named is left as it is. Where a node is drained
or reset, these are all of its GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from .....errors import InvalidProblem
from ...export.export import ExportOptions, refuse_doubtful, require_word
from ...export.mig_parted import cut_of, name_of, text_of
from ...export.nvidia_smi import gpu_row
from ...guesses import doubtful, in_doubt
from ...instance import Mode
from ...model import Deployment, FleetGpu
from ...observation.mig_parted import Cut
from ..model import Transition, What
from .steps import Part

__all__ = [
    "CUT",
    "PARTED",
    "about_whole_gpus",
    "cuts_of",
    "refuse",
    "refuse_part",
    "tables",
    "whole_alone",
]

#: On a node; needs the functions of the script for nvidia-smi, and the tables of a part.
CUT = r"""
# Below: mig-parted, which cuts whole GPUs and chooses the starts itself.
parted=${MIG_PARTED:-nvidia-mig-parted}

# The instances of GPU $1: profile, start, whether it is whole, a line each.
wholes() {
    listed=$(instances "$1") || exit 1
    [ -n "$listed" ] || return 0
    echo "$listed" | while read -r profile start size id; do
        whole=no
        if is_whole "$1" "$id"; then whole=yes; fi
        echo "$profile $start $whole $id"
    done
}

# How GPU $1 differs from table $2: missing and extra profiles, and what is half made.
amiss() {
    rows=$(wholes "$1") || exit 1
    { "$2" | sed 's/^/W /'; echo "$rows" | sed 's/^/L /'; } | awk -v gpu="$1" -v cuts="$cuts" '
        $1 == "W" && $2 == gpu { n++; left[n] = $4; name[n] = $3; names[n] = "|" $5 "|" }
        $1 == "L" && $4 == "no" { if (cuts == "yes") print "half", $2; next }
        $1 == "L" && NF == 5 {
            for (i = 1; i <= n; i++)
                if (left[i] > 0 && index(names[i], "|" $2 "|")) { left[i]--; next }
            print "extra", $2
        }
        END { for (i = 1; i <= n; i++) if (left[i] > 0) print "missing", left[i], "x", name[i] }
    '
}

# Whether each GPU is cut as table $1 has it.
stand_as() {
    gpus | while read -r gpu uuid on before reset; do
        recognise "$gpu" "$uuid"
        [ "$1" = wanted ] || on=$before
        mode=$(mode_of "$gpu") || exit 1
        [ "$mode" = "$on" ] || fail "GPU $gpu: MIG is $mode, not $on"
        [ "$on" = on ] || continue
        wrong=$(amiss "$gpu" "$1") || exit 1
        # shellcheck disable=SC2086 # several words on purpose
        [ -z "$wrong" ] || fail "GPU $gpu is not cut as it should be:" $wrong
    done || exit 1
    say "every GPU is cut as it should be"
}

# Says what would be done, and fails if something is in the way: $1 is the table of what is to
# stand, and $2 of what stood. What is there has to be part of one of them.
examine() {
    gpus | while read -r gpu uuid on before reset; do
        recognise "$gpu" "$uuid"
        [ "$1" = wanted ] || on=$before
        mode=$(mode_of "$gpu") || exit 1
        [ "$mode" = "$on" ] || say "GPU $gpu: MIG would be switched $on"
        [ "$mode" = on ] || continue
        wrong=$(amiss "$gpu" "$1") || exit 1
        other=$(amiss "$gpu" "$2") || exit 1
        case $wrong/$other in
        *extra*/*extra*)
            # shellcheck disable=SC2046 # several words on purpose
            fail "GPU $gpu holds what is neither to stay nor to come, and would lose it:" \
                $(wholes "$gpu" | sed 's/ /@/; s/ .*//') "; observe the node again"
            ;;
        esac
        [ -z "$wrong" ] || say "GPU $gpu: would be cut anew as a whole"
    done
}

# Removes what is half made on GPU $1: mig-parted does not see it, and it takes room.
sweep() {
    rows=$(wholes "$1") || exit 1
    echo "$rows" | while read -r profile start whole id; do
        [ "$whole" != no ] || destroy "$1" "$profile" "$start" "$id"
    done
}

# Makes the GPUs as table $1 has them; $2 is the table of what stood.
change() {
    examine "$1" "$2" >/dev/null || exit 1
    if (stand_as "$1") >/dev/null 2>&1; then return 0; fi
    gpus | while read -r gpu more; do
        mode=$(mode_of "$gpu") || exit 1
        [ "$mode" = off ] || sweep "$gpu"
    done || exit 1
    if (stand_as "$1") >/dev/null 2>&1; then return 0; fi
    say "cut as $("$1_name") has it, GPU" $(gpus | awk '{ print $1 }')
    told=$("$1_config" | "$parted" apply -f - -c "$("$1_name")" 2>&1)
    ended=$?
    tried=0
    until (stand_as "$1") >/dev/null 2>&1; do
        tried=$((tried + 1))
        if [ "$ended" -ne 0 ] || [ "$tried" -ge "$tries" ]; then
            (stand_as "$1") || :
            teller=mig-parted
            fail_as_told "it is not cut as it should be (if all orderings failed, run this again:" \
                "the driver's starts left no room this time)"
        fi
        sleep "$pause"
    done
}

# Every instance that is there: GPU, profile by its usual name, start, and its number.
places() {
    gpus | while read -r gpu uuid on before reset; do
        recognise "$gpu" "$uuid"
        mode=$(mode_of "$gpu") || exit 1
        if [ "$mode" = off ]; then
            echo "$gpu whole - 1"
            continue
        fi
        rows=$(wholes "$gpu") || exit 1
        { profiles | sed 's/^/P /'; echo "$rows" | sort -k 2n | sed 's/^/L /'; } |
            awk -v gpu="$gpu" '
                $1 == "P" { n++; names[n] = "|" $3 "|"; usual[n] = $2 }
                $1 == "L" && $4 == "yes" {
                    for (i = 1; i <= n; i++)
                        if (index(names[i], "|" $2 "|")) {
                            print gpu, usual[i], $3, ++count[i]
                            next
                        }
                }
            '
    done
}

# The UUID of number $3 of the MIG devices of GPU $1 that have the profile $2, as it is now.
uuid_of() {
    names=$(profiles | awk -v profile="$2" '$1 == profile { print $2 }')
    tell -L || fail_as_told "the devices cannot be listed"
    printf '%s\n' "$told" | awk -v gpu="$1:" -v names="|$names|" -v number="$3" '
        $1 == "GPU" { here = $2 == gpu }
        here && $1 == "MIG" && index(names, "|" $2 "|") && ++n == number {
            sub(/[)]$/, "", $NF)
            print $NF
            exit
        }
    '
}
"""

#: Where the steps run: what a node is asked to do, and the UUID of a MIG device.
PARTED = r"""
# Runs "$*" on the node, with this part's tables and the functions of lib/mig-parted.sh.
tables='gpus wanted former profiles wanted_name wanted_config former_name former_config'
parted() {
    {
        echo "node='$node' cuts=$cuts CMS_TRIES=$tries CMS_PAUSE=$pause"
        for table in $tables; do
            echo "$table() { cat <<'END'"
            "$table"
            echo END
            echo '}'
        done
        cat "$folder/lib/mig-parted.sh"
        echo "$*"
    } | on_node "$node"
}

# The UUID of the MIG device of the instance that a hook is called for; nothing if it is not there.
mig_uuid() {
    [ "$number" = - ] || (
        tables=profiles
        parted "uuid_of $gpu '$profile' $number"
    )
}
"""


def cuts_of(cards: Iterable[FleetGpu]) -> dict[int, Cut]:
    """Return how GPUs are cut, by their whole instances."""
    return {card.index: cut_of(card) for card in whole_alone(cards)}


def whole_alone(cards: Iterable[FleetGpu]) -> tuple[FleetGpu, ...]:
    """Return GPUs without what has no compute instance: most tools do not find it."""
    return tuple(
        replace(card, instances=tuple(each for each in card.instances if each.is_whole))
        for card in cards
    )


def refuse(start: Deployment, options: ExportOptions) -> None:
    """Refuse a start in which it is not known which of several instances does what."""
    for node in start.nodes:
        require_word(node.name, "node")
    for card in start.gpus():
        works: dict[str, set[object]] = {}
        for each in card.instances if card.mode is Mode.MIG else ():
            if each.start is None:
                works.setdefault(each.profile, set()).add(each.work)
        for profile, found in works.items():
            if len(found) > 1:
                raise InvalidProblem(
                    f"{card.name} has several {profile} that do different things, and of which the "
                    f"starts are not known; observe node {card.node!r} with: nvidia-smi mig -lgi"
                )


def refuse_part(transition: Transition, part: Part) -> None:
    """Refuse what cuts part of a GPU, and to delete an instance that may not be ours."""
    for at in part.positions:
        action = transition.actions[at]
        card = next(card for card in part.befores if card.index == action.index)
        if action.what in (What.CREATE, What.DELETE) and card.mode is Mode.MIG:
            raise InvalidProblem(
                f"{action}: this cuts part of a GPU, which this tool cannot; expected a "
                "transition planned for it (--tool), or the tool nvidia-smi"
            )
    if part.repartitions:
        doubts = doubtful(transition.start.node(part.node))
        indices = {place.gpu for place in part.removes}
        for card in part.cards:
            for each in in_doubt(card, doubts) if card.index in indices else ():
                refuse_doubtful(card, each, doubts)


def about_whole_gpus(transition: Transition) -> Iterator[str]:
    """Say what a tool that cuts whole GPUs does not."""
    yield (
        "Starts: the driver chooses them where a GPU is cut anew; instances of one profile on a "
        "GPU are told apart by their number."
    )
    yield "Work: starting, draining and stopping it is yours to say, in work.sh."
    shared = [card.name for card in transition.target.gpus() if card.mode is Mode.MPS]
    if shared:
        yield f"Shares under MPS of {', '.join(shared[:5])}: the daemon and its clients are yours."


def tables(part: Part, options: ExportOptions) -> dict[str, tuple[str, ...]]:
    """Return the rows of the tables that `CUT` reads."""
    return {
        "gpus": tuple(
            gpu_row(after, after.mode, before.mode)
            for after, before in zip(part.afters, part.befores, strict=True)
        ),
        "wanted": tuple(_rows(part.afters)),
        "former": tuple(_rows(part.befores)),
        "profiles": tuple(
            dict.fromkeys(
                f"{name} {_names(card, name)}"
                for card in part.cards
                for profile in card.gpu.profiles
                for name in (profile.name, *profile.other_names)
            )
        ),
        **_config("wanted", part.afters),
        **_config("former", part.befores),
    }


def _names(card: FleetGpu, name: str) -> str:
    profile = card.gpu.profile(name)
    return "|".join((profile.name, *profile.other_names))


def _rows(cards: Iterable[FleetGpu]) -> Iterator[str]:
    """GPU, profile, how many, names of the profile."""
    for card in whole_alone(cards):
        if card.mode is Mode.MIG:
            for profile, count in sorted(card.counts.items()):
                yield f"{card.index} {profile} {count} {_names(card, profile)}"


def _config(side: str, cards: tuple[FleetGpu, ...]) -> dict[str, tuple[str, ...]]:
    cuts = cuts_of(cards)
    name = name_of(cuts)
    return {f"{side}_name": (name,), f"{side}_config": tuple(text_of({name: cuts}).splitlines())}
