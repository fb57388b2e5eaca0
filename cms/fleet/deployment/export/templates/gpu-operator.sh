# Usage: {{ node }}.sh [apply|verify|undo]. Run it from where kubectl reaches the cluster.
# It stops at the first thing that fails, says so, and can be run again: what is done stays done.
set -u
node='{{ node }}'
wanted='{{ wanted }}'
former='{{ former }}'
tries=${CMS_TRIES:-240}
pause=${CMS_PAUSE:-5}
{% include "gpu-operator-functions.sh" %}

apply() { change "$wanted"; }

verify() {
    is_cut "$wanted" ||
        fail "its label is '$is_config' and its state '$is_state', not $wanted and success"
    say "it is cut as $wanted has it"
}

undo() {
    [ "$former" != - ] || fail "what stood before was not known when this was written"
    change "$former"
}

case ${1-} in
"") apply && verify ;;
apply | verify | undo) "$1" ;;
*)
    echo "usage: $node.sh [apply|verify|undo]" >&2
    exit 2
    ;;
esac
