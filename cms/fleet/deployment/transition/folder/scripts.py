"""The shell scripts of a folder: what all steps share, what runs them, and the hooks of the user.

``%(name)s`` in `RUN` is filled in; the others are written as they are. What differs from part to
part are tables, which the scripts in ``steps/`` hold.
"""

from __future__ import annotations

__all__ = ["RUN", "STEP", "WORK"]

#: ``work.sh``: the hooks as they are to be filled in. They refuse until somebody has done so.
WORK = r"""
# How work is started and stopped, and how nodes are reached: fill this in. Keep your own beside it
# and name it with CMS_WORK=/path/to/work.sh, then it serves the next transition as well.
#
# run.sh and the scripts in steps/ run where you can reach the cluster, and call these functions.
# They may read, of the instance that they are called for:
#   $service $model $point      chat, bert, 3g.40gb-2x8 (the label cms.point of exported pods)
#   $processes $batch $supply   2, 8, and the items per second that are counted on
#   $node $gpu $uuid            node-a, 3, and the GPU's UUID (- if it is not known)
#   $profile $start             3g.40gb and its first memory slice (- on a whole GPU, and where the
#                               tool that cuts the GPU chooses it: mig-parted, gpu-operator, slurm)
#   $number                     there: which of the GPU's 3g.40gb it is, from 1 on; else -
# and, with mig-parted and slurm, call mig_uuid, which looks up the UUID of its MIG device (nothing
# if it is not there). UUIDs change whenever a GPU is cut anew: never keep one.
# Each may be called twice, and does nothing the second time. Standard input is empty but for
# on_node. A function that fails (return 1) stops the step there; nothing is forced.

# Runs the sh script on the standard input on node $1, as root. Where run.sh runs on that very node,
# this does; else, for example: ssh "root@$1" sh -s
on_node() {
    case $1 in
    "$(hostname)" | "$(hostname -s)") sh -s ;;
    *) refuse "on_node: how a script is run on $1, for example: ssh \"root@\$1\" sh -s" ;;
    esac
}

# Begins to serve: deploy a replica there, put it behind the load balancer.
start_work() { refuse 'start_work: how $service is started on an instance'; }

# Whether it serves there now, with all of its capacity: ready, behind the load balancer. Asked
# again and again while one waits for it.
is_ready() { refuse 'is_ready: how one sees that $service serves on an instance'; }

# Takes it off the load balancer, lets it finish what it has, and ends it.
stop_work() { refuse 'stop_work: how $service is drained and stopped on an instance'; }

# Whether nothing of it runs there any more, so that the instance may be destroyed.
is_drained() { refuse 'is_drained: how one sees that nothing of $service is left there'; }

# Prints the items per second that service $1 can serve now, by your own monitoring; nothing where
# that is not known. If it prints a number, no work is stopped that would take it below its floor.
capacity() { :; }
"""

#: ``lib/step.sh``: what a step's script does, whatever cuts the GPU.
STEP = r"""
# What the scripts in steps/ share. Each of them sets step, node, cuts (whether GPUs are cut anew as
# a whole) and its tables.
set -u
tries=${CMS_TRIES:-10}        # looks at a listing that may lag behind
pause=${CMS_PAUSE:-1}         # seconds between looks
patience=${CMS_PATIENCE:-900} # looks at work that is to start or to end
tab=$(printf '\t')
columns='mark gpu uuid profile start number processes batch supply point back service model'
report() { printf '%s\n' "$step: $*"; } # never echo, which makes something of \033 in a name
give_up() {
    report "$*" >&2
    exit 1
}
refuse() { give_up "work.sh does not say yet $*. Fill it in, or name your own with CMS_WORK"; }
capacity() { :; }
. "${CMS_WORK:-$folder/work.sh}"

# Calls $2 for each instance of the table of work that is marked $1.
for_each() {
    work_rows | while IFS=$tab read -r $columns; do
        case "$1" in
        "$mark" | "$mark:$back") "$2" </dev/null || exit 1 ;;
        esac
    done
}
described() {
    place=$profile@$start
    [ "$number" = - ] || place="$profile number $number"
    printf '%s\n' "$service ($point) on GPU $gpu, $place"
}

# Waits until $1 says yes.
wait_until() {
    looks=0
    until "$1"; do
        looks=$((looks + 1))
        [ "$looks" -lt "$patience" ] || return 1
        sleep "$pause"
    done
}
ending() {
    if is_drained; then return 0; fi
    enough || return 1
    report "stop $(described)"
    stop_work || give_up "$(described): stop_work failed"
    wait_until is_drained || give_up "$(described): it does not end; nothing is forced"
}
beginning() {
    if is_ready; then return 0; fi
    report "start $(described)"
    start_work || give_up "$(described): start_work failed"
    wait_until is_ready || give_up "$(described): it does not become ready"
}
ready() { is_ready || give_up "$(described): it does not serve"; }
drained() { is_drained || give_up "$(described): it still runs"; }
# Of a place that serves something else, this step knows nothing: another comes before it, or has
# come after it.
elsewhen() {
    is_ready || return 0
    give_up "$(described) serves there, which does not belong to this step; see run.sh"
}
would_end() { is_drained || report "would stop $(described)"; }
would_begin() { is_ready || report "would start $(described)"; }

# Whether a service has enough, by the user's own monitoring, to miss what stops.
enough() {
    asked=$service
    floor_rows | while IFS=$tab read -r floor name; do
        [ "$name" = "$asked" ] || continue
        has=$(capacity "$name" </dev/null) || exit 0
        [ -n "$has" ] || continue
        awk -v has="$has" -v floor="$floor" -v less="$supply" \
            'BEGIN { exit !(has + 0 >= floor + less) }' ||
            give_up "$name has $has requests/s now; before $(described) stops it needs $supply" \
                "more than its floor of $floor"
    done
}

check() {
    for_each other elsewhen || return 1
    on_gpu check && for_each stop would_end && for_each again would_end &&
        for_each start would_begin
}
# What is marked "again" is there before and after, and has to stop while GPUs are cut.
apply() {
    for_each other elsewhen || return 1
    if on_gpu stands >/dev/null 2>&1; then
        for_each stop ending || return 1
    else
        on_gpu close && for_each stop ending && for_each again ending && on_gpu apply || return 1
    fi
    for_each start beginning && for_each again beginning
}
verify() {
    on_gpu verify && for_each start ready && for_each again ready && for_each stop drained &&
        for_each other elsewhen
}
undo() {
    for_each other elsewhen || return 1
    if on_gpu undone >/dev/null 2>&1; then
        for_each start ending || return 1
    else
        on_gpu close && for_each start ending && for_each again ending && on_gpu undo || return 1
    fi
    for_each stop:yes beginning && for_each again:yes beginning
}

# What serves on the places of this step, as arguments of cms observe. What else is on its GPUs is
# not spoken of: that nothing this step knows of serves there does not mean that it may go.
# They are split by the shell that takes them: a name that would not stay one word is not told.
serving_here() {
    is_ready || return 0
    case $service in
    *[[:space:]*?\\[]*)
        give_up "$(described) serves, and such a name cannot be told so; give it to cms observe:" \
            "--adopt '$node/$here=SERVICE@${processes}x$batch', the whole in quotes"
        ;;
    esac
    printf '%s\n' "--adopt $node/$here=$service@${processes}x$batch"
}
serving() {
    listed=$(on_gpu places) || return 1
    [ -n "$listed" ] || return 0
    echo "$listed" | while read -r index profile start number; do
        at=$index:$start
        [ "$start" != - ] || at=$index
        [ "$number" = - ] || start=-
        place="$index $profile $start $number"
        seat_rows | grep -Fqx -e "$place" || continue
        serves=$(here=$at each_here </dev/null) || exit 1
        serves=$(printf '%s\n' "$serves" | head -n 1)
        if [ -z "$serves" ] && [ "$profile" = whole ]; then continue; fi # it is seen to be empty
        printf '%s\n' "${serves:---reclaim $node/$at}"
    done
}
each_here() {
    work_rows | while IFS=$tab read -r $columns; do
        [ "$gpu $profile $start $number" != "$place" ] || serving_here </dev/null || exit 1
    done
}

case ${1-} in
"") apply && verify ;;
check | apply | verify | undo | serving) "$1" ;;
*)
    echo "usage: $step.sh [check|apply|verify|undo|serving]; without a word: apply, verify" >&2
    exit 2
    ;;
esac
"""

#: ``run.sh``
RUN = r"""
# usage: run.sh [--dry-run] [--from N | --only N | --undo N] [--parallel N] [--serving]
#   --dry-run    says what would be done, and changes nothing
#   --from N     begins with step N; --only N: does step N alone
#   --undo N     goes back to what was there before step N, the last thing first
#   --parallel N does N things at once (%(parallel)s), none before what it waits for
#   --serving    prints what serves now, as arguments of cms observe
# What is done already is seen by looking, and not done again. It stops at the first step that is
# not as it should be afterwards; what has begun is ended first.
set -uf
folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
# step, what is done, whether that shows, whether it may be hidden later, what it waits for, what
# it changes back, what changes it back
table() { cat <<'END'
%(table)sEND
}
mode=run first=1 last=%(steps)s parallel=%(parallel)s
usage() {
    sed -n 's/^# \(usage.*\|  .*\)/\1/p' "$folder/run.sh" >&2
    exit 2
}
number() {
    case ${1:-x} in
    *[!0-9]*) usage ;;
    esac
    number=$(echo "$1" | sed 's/^0*//')
    if [ "${number:-0}" -lt 1 ] || { [ "$2" != any ] && [ "$number" -gt "$2" ]; }; then
        echo "run.sh: $1 is no step; expected 1 to $2" >&2
        exit 2
    fi
}
dry=no
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry=yes ;;
    --serving) mode=serving ;;
    --from) number "${2-}" "$last" && first=$number && shift ;;
    --only) number "${2-}" "$last" && first=$number last=$number && shift ;;
    --undo) number "${2-}" "$last" && first=$number mode=undo && shift ;;
    --parallel) number "${2-}" any && parallel=$number && shift ;;
    *) usage ;;
    esac
    shift
done
say() { printf '%%s\n' "run.sh: $*"; }
do_step() { sh "$folder/steps/$1.sh" ${2+"$2"}; }

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
stopping=
trap 'stopping=yes; echo "run.sh: stopping; what has begun is ended first" >&2' INT TERM

# The steps that are done, as far as can be seen: what is there is as they leave it, and was never
# so before; or what changes it again is done; or, where that does not show, what waits for it is.
done_steps() {
    table | awk -v ok="$scratch/ok" '
        BEGIN { while ((getline name < ok) > 0) is_ok[name] = 1 }
        { n++; step[n] = $2; telling[$2] = $3; hidden[$2] = $4; after[$2] = $5; undoes[$2] = $6
          undone[$2] = $7 }
        function every(list, any,   names, i, count, found) {
            if (list == "-") return 0
            count = split(list, names, ",")
            for (i = 1; i <= count; i++) if (names[i] in done) found++
            return any ? found > 0 : found == count
        }
        function mark_hidden(name,   names, i, count) {
            if (name in seen) return
            seen[name] = 1
            if (after[name] == "-") return
            count = split(after[name], names, ",")
            for (i = 1; i <= count; i++) {
                if (hidden[names[i]] == "yes" && !(names[i] in done)) { done[names[i]]; more = 1 }
                mark_hidden(names[i])
            }
        }
        END {
            do {
                more = 0
                split("", seen)
                for (i = n; i > 0; i--) {
                    s = step[i]
                    shows = is_ok[s] && (telling[s] == "yes" || every(undoes[s], 0))
                    if (!(s in done) && (shows || every(undone[s], 1))) { done[s]; more = 1 }
                    if (s in done) mark_hidden(s)
                }
            } while (more)
            for (i = 1; i <= n; i++) if (step[i] in done) print step[i]
        }
    '
}
has() { case " $1 " in *" $2 "*) return 0 ;; *) return 1 ;; esac; }
# Whether all that $1 (a, b: a list with commas) names is done.
all_done() {
    for one in $(echo "$1" | tr ',' ' '); do
        [ "$one" = - ] || has "$finished" "$one" || return 1
    done
}

if [ "$mode" = serving ]; then
    table | while read -r number name rest; do do_step "$name" serving </dev/null || exit 1; done \
        >"$scratch/serves" || {
        say "what serves cannot be told, and cms observe refuses what this prints instead" >&2
        echo --what-serves-is-not-known
        exit 1
    }
    sort -u "$scratch/serves" | tr '\n' ' '
    echo
    exit 0
fi

: >"$scratch/ok"
table >"$scratch/table"
while read -r number name rest; do
    do_step "$name" verify </dev/null >"$scratch/said" 2>&1 && echo "$name" >>"$scratch/ok"
    if grep -q 'work.sh does not say yet' "$scratch/said"; then
        cat "$scratch/said" >&2
        exit 1
    fi
    [ -z "$stopping" ] || exit 130
done <"$scratch/table"
finished=$(done_steps | tr '\n' ' ')
say "$(echo "$finished" | wc -w | tr -d ' ') of %(parts)s things are done"

# What is to be done: in this order, or back in the opposite one.
chosen=
while read -r number name telling hidden after rest; do
    [ "$number" -ge "$first" ] && [ "$number" -le "$last" ] || continue
    if [ "$mode" = undo ]; then
        # what may have been begun as well
        if has "$finished" "$name" || all_done "$after"; then chosen="$name $chosen"; fi
    elif ! has "$finished" "$name"; then
        chosen="$chosen $name"
    fi
done <"$scratch/table"
after_of() { awk -v name="$1" '$2 == name { print $5 }' "$scratch/table"; }
step_of() { awk -v name="$1" '$2 == name { print $1 }' "$scratch/table"; }

if [ "$dry" = yes ]; then
    for name in $chosen; do
        sed -n '2,/^#$/s/^# \(.*\)/'"$mode $name"': \1/p' "$folder/steps/$name.sh"
        [ "$mode" = run ] && all_done "$(after_of "$name")" || continue
        do_step "$name" check </dev/null || exit 1
    done
    exit 0
fi

failed() {
    number=$(step_of "$1")
    say "step $number ($1) is not as it should be; nothing more is begun. What can be done:" >&2
    say "  go on:   '$0' --from $number" >&2
    say "  go back: '$0' --undo 1" >&2
    say "  or plan anew: cms observe ... --plan '$folder/transition.json' \$('$0' --serving)" >&2
}

if [ "$mode" = undo ]; then
    for name in $chosen; do
        [ -z "$stopping" ] || exit 130
        do_step "$name" undo </dev/null || {
            say "$name could not be undone; again: '$0' --undo $first" >&2
            exit 1
        }
    done
    say "all is as it was before step $first"
    exit 0
fi

mkfifo "$scratch/ended" || exit 1
exec 3<>"$scratch/ended"
waiting=$chosen running=0 wrong=
while :; do
    left=
    for name in $waiting; do
        if [ -z "$wrong$stopping" ] && [ "$running" -lt "$parallel" ] &&
            all_done "$(after_of "$name")"; then
            running=$((running + 1))
            { do_step "$name" </dev/null; echo "$name $?" >&3; } &
        else
            left="$left $name"
        fi
    done
    waiting=$left
    [ "$running" -gt 0 ] || break
    until read -r name code <&3; do :; done # a signal may come between
    running=$((running - 1))
    if [ "$code" = 0 ]; then
        finished="$finished $name"
    else
        [ -n "$wrong" ] || failed "$name"
        wrong="$wrong $name"
    fi
done
[ -z "$wrong" ] || exit 1
[ -z "$stopping" ] || exit 130
for name in $waiting; do
    for before in $(after_of "$name" | tr ',' ' '); do
        has "$finished" "$before" || {
            say "$name waits for $before; begin there: '$0' --from $(step_of "$before")" >&2
            exit 1
        }
    done
done
# What nothing changes again is to stand at the end, whoever has touched it meanwhile.
while read -r number name telling hidden after undoes undone; do
    [ "$undone" = - ] && has "$finished" "$name" || continue
    do_step "$name" verify </dev/null >"$scratch/said" 2>&1 || {
        cat "$scratch/said" >&2
        failed "$name"
        exit 1
    }
done <"$scratch/table"
say "all is as it should be"
"""
