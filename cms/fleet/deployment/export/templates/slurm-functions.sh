
conf=${CMS_SLURM_DIR:-/etc/slurm}
reason="cms: cut anew"

say() { printf '%s\n' "$node: $*"; }
fail() {
    say "$*" >&2
    exit 1
}

# What Slurm says of the node: $state, with all its flags (idle+drain+invalid_reg), and $why.
look() {
    seen=$(sinfo -h -N -n "$node" -O 'StateComplete:200,Reason:200' </dev/null) || return 1
    read -r state why <<END
$seen
END
    [ -n "$state" ]
}
must_look() { look || fail "sinfo does not tell its state (does Slurm have such a node?)"; }
is_closed() { case +$state in *+drain* | +down*) ;; *) return 1 ;; esac; }
# Whether it is closed by a run of this script, or by Slurm itself, which finds less than promised
# on a node that has rebooted.
is_managed() {
    is_closed || return 1
    case $why in
    "$reason"* | gres/*lower\ than\ configured* | *unexpectedly\ rebooted* | Not\ responding*) ;;
    *) return 1 ;;
    esac
}
# Whether nothing runs there and nothing begins; a node that Slurm calls inval may be drained, too.
is_drained() {
    look && is_closed &&
        case $state in *alloc* | *mixed* | *compl* | *unknown*) return 1 ;; esac
}
is_invalid() { case $state in *inval*) ;; *) return 1 ;; esac; }
# Whether slurmd has answered since slurmctld has read the lines.
is_heard() { look && case $state in *unknown* | *not_resp*) return 1 ;; esac; }
# Whether that lasts, and no less is there than promised: a slurmd that begins anew is heard twice.
is_found() {
    is_heard && ! is_invalid && sleep "$pause" && is_heard && ! is_invalid
}
is_offered() { line_of "$1" | cmp -s - "$conf/cms/$node.conf"; }
# Waits until $1 says yes.
wait_until() {
    tried=0
    until "$1"; do
        tried=$((tried + 1))
        [ "$tried" -lt "$tries" ] || return 1
        sleep "$pause"
    done
}

# Before 23.11 slurmctld takes counts that grow only when it starts.
is_old() {
    version=$(scontrol -V </dev/null) && version=${version##* } && printf '%s\n' "$version" |
        awk -F. '{ exit !($1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && $1 * 100 + $2 < 2311) }'
}

# Writes the node's line $1, and waits until both daemons have taken it.
offer() {
    mkdir -p "$conf/cms"
    line_of "$1" >"$conf/cms/$node.conf" ||
        fail "$conf/cms/$node.conf could not be written"
    scontrol reconfigure </dev/null || fail "scontrol could not reconfigure; it stays drained"
    if is_old; then sh -c "$CMS_SLURM_RESTART" </dev/null || fail "slurmctld did not start"; fi
    wait_until is_heard || fail "slurmd does not answer ($state, $why); it stays drained"
}

# Lets nothing new begin on the node, unless somebody else has seen to that.
close_it() {
    must_look
    if is_old && [ -z "${CMS_SLURM_RESTART-}" ]; then
        fail "this is Slurm $version, where slurmctld has to start again before it takes more" \
            "devices than before (23.11 does not need that); nothing has changed. Say how:" \
            "CMS_SLURM_RESTART='systemctl restart slurmctld'"
    fi
    if is_closed && ! is_managed; then
        say "somebody else drains it ($why), so it stays drained at the end"
    elif ! is_closed || [ "${why#"$reason"}" = "$why" ]; then
        say "drain it"
        scontrol update nodename="$node" state=drain reason="$reason" </dev/null ||
            fail "it could not be drained; nothing has changed"
    fi
}

# Opens the node, unless somebody else has closed it. Asked again: slurmctld, when it has just read
# its file, may refuse, or take it back.
is_open() {
    look || return 1
    ! is_managed || scontrol update nodename="$node" state=resume </dev/null
    is_found && ! is_managed
}

# Takes the node through all that it needs to be cut and offered as it should be.
change() {
    must_look
    if is_cut && is_offered nodes && ! is_invalid; then
        say "it is cut and offered as it should be"
    else
        close_it
        wait_until is_drained ||
            fail "its jobs have not ended; it goes on draining. Run this again to go on waiting," \
                "or: scontrol update nodename=$node state=resume"
        if ! is_cut; then
            say "offer only what stays as it is cut"
            offer shrunk
            cut
        fi
        say "offer what it has now"
        offer nodes
        wait_until is_found ||
            fail "Slurm finds fewer devices there than its line offers ($state, $why); it stays" \
                "drained: compare $conf/cms/$node.conf with what slurmd -G prints there"
    fi
    wait_until is_open ||
        fail "it is ready but could not be resumed ($state, $why):" \
            "scontrol update nodename=$node state=resume"
}
