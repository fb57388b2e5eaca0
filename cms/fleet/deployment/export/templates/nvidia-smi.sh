# Usage, as root on the node: {{ node }}.sh [check|apply|verify|undo]; without a word: apply, verify.
# check says what would be done and changes nothing. Running it again does nothing again: GPU
# instances are looked up by their place each time, and what counts is what nvidia-smi lists,
# never how it ends. Nothing is forced, and nothing is destroyed that the tables do not name.
set -u
node='{{ node }}'

# GPU, UUID or -, MIG to be on or off, MIG before, whether a change takes a reset; MIG that is -
# is left as it is, or was not known
gpus() { cat <<'END'
{{ gpus }}END
}
# What is to stand: GPU, profile, start, memory slices, names of the profile
wanted() { cat <<'END'
{{ wanted }}END
}
# What stood before and is ours, so that it may go
former() { cat <<'END'
{{ former }}END
}
# What is not ours and stays
others() { cat <<'END'
{{ others }}END
}
former_is_known={{ known }}
{% include "nvidia-smi-functions.sh" %}

check() { examine wanted former; }
apply() { change wanted former; }
verify() { stand_as wanted former; }
undo() {
    [ "$former_is_known" = yes ] || fail "what stood before was not known when this was written"
    change former wanted && stand_as former wanted
}

case ${1-} in
"") apply && verify ;;
check | apply | verify | undo) "$1" ;;
*)
    echo "usage: $node.sh [check|apply|verify|undo]" >&2
    exit 2
    ;;
esac
