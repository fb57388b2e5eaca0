
drain_flags=${CMS_DRAIN_FLAGS---ignore-daemonsets --timeout=600s}
say() { printf '%s\n' "$node: $*"; }
fail() {
    say "$*" >&2
    exit 1
}

# A field of the node, by JSONPath; empty if it is not there.
field() {
    kubectl get node "$node" -o "jsonpath={$1}" </dev/null ||
        fail "kubectl could not read it; nothing was changed by this step"
}
config() { field '.metadata.labels.nvidia\.com/mig\.config'; }
state() { field '.metadata.labels.nvidia\.com/mig\.config\.state'; }
ours() { field '.metadata.labels.cms\.cordoned'; }
closed() { field '.spec.unschedulable'; }

# Whether mig-manager says that the node is cut as $1.
is_cut() {
    is_config=$(config) || exit 1
    is_state=$(state) || exit 1
    [ "$is_config" = "$1" ] && [ "$is_state" = success ]
}

# Opens the node again if a run of this script closed it.
open_again() {
    is_managed=$(ours) || exit 1
    is_closed=$(closed) || exit 1
    if [ "$is_managed" = yes ]; then
        kubectl uncordon "$node" </dev/null ||
            fail "it is cut as it should be, but still cordoned: kubectl uncordon $node"
        kubectl label node "$node" cms.cordoned- </dev/null >/dev/null ||
            fail "it is in use again; remove its label: kubectl label node $node cms.cordoned-"
    elif [ "$is_closed" = true ]; then
        say "somebody else has cordoned it, so it stays so"
    fi
}

# Closes the node, so that nothing new comes, unless somebody else has.
close_it() {
    is_closed=$(closed) || exit 1
    if [ "$is_closed" != true ]; then
        kubectl label --overwrite node "$node" cms.cordoned=yes </dev/null >/dev/null ||
            fail "kubectl could not label it; nothing has changed"
        kubectl cordon "$node" </dev/null || fail "kubectl could not cordon it; nothing has changed"
    fi
}

# Says what helps where kubectl's complaint has $1.
hint() { case $drain_said in *"$1"*) drain_help="$drain_help $2" ;; esac; }

# Sends all pods of the node away. What kubectl complains of is shown when it ends.
drain_node() {
    # shellcheck disable=SC2086 # several words on purpose
    {
        drain_said=$(kubectl drain "$node" $drain_flags 2>&1 >&3 </dev/null)
        drain_code=$?
    } 3>&1
    [ -z "$drain_said" ] || printf '%s\n' "$drain_said" >&2
    [ "$drain_code" != 0 ] || return 0
    drain_help=
    drain_with="are given so: CMS_DRAIN_FLAGS='$drain_flags"
    hint "local storage (use --delete" "Pods with emptyDir data lose it; flags that let them go \
$drain_with --delete-emptydir-data'."
    hint "(use --force" "Pods without a controller are not started again elsewhere: delete them \
yourself, or let them go; flags $drain_with --force'."
    hint "disruption budget" "A PodDisruptionBudget keeps pods there, and no flag should overrule \
it: kubectl get pdb -A shows which. Have more of its pods ready elsewhere, then run this again."
    case $drain_help in *PodDisruptionBudget*) ;; *)
        hint "global timeout reached" "Pods take longer to end than --timeout allows: run this \
again, or give them more time; flags $drain_with'."
        ;;
    esac
    hint "(use --ignore-daemonsets" "Pods of DaemonSets can stay; flags \
$drain_with --ignore-daemonsets'."
    fail "it could not be drained and stays cordoned.${drain_help:- kubectl says why above.}" \
        "To give up: kubectl uncordon $node; kubectl label node $node cms.cordoned-"
}

# Takes the node through all that it needs to be cut as $1 has it.
change() {
    if is_cut "$1"; then
        say "it is cut as $1 has it; nothing to do"
        open_again
        return 0
    fi
    close_it
    drain_node
    is_config=$(config) || exit 1
    is_state=$(state) || exit 1
    if [ "$is_config" = "$1" ] && [ "$is_state" = failed ]; then
        fail "mig-manager has failed with $1 and does not try again by itself. Read its log, then" \
            "give it another label first: kubectl label --overwrite node $node" \
            "nvidia.com/mig.config=all-disabled"
    fi
    if [ "$is_config" != "$1" ]; then
        # The old state goes with the old label: it must not be taken for the answer.
        kubectl label --overwrite node "$node" "nvidia.com/mig.config=$1" \
            nvidia.com/mig.config.state- </dev/null >/dev/null ||
            fail "kubectl could not label it; it is drained and cordoned, its GPUs are as before"
    fi
    await "$1"
    open_again
}

# Waits until mig-manager has answered.
await() {
    tried=0
    while [ "$tried" -lt "$tries" ]; do
        is_state=$(state) || exit 1
        case $is_state in
        success)
            say "it is cut as $1 has it"
            return 0
            ;;
        failed)
            fail "mig-manager has failed with $1 (its log says why; a GPU in use by another" \
                "client may be held by the telemetry agent, DCGM). The node stays cordoned."
            ;;
        esac
        sleep "$pause"
        tried=$((tried + 1))
    done
    fail "mig-manager has not said success after $tries looks (its last word: '$is_state')." \
        "The node stays cordoned; run this again to go on waiting."
}
