
smi=${NVIDIA_SMI:-nvidia-smi}
tries=${CMS_TRIES:-10} # looks at a listing that may lag behind
pause=${CMS_PAUSE:-1}  # seconds between them

set -f # what is split into words is no pattern of file names
say() { printf '%s\n' "$node: $*"; }
fail() {
    say "$*" >&2
    exit 1
}

# Runs nvidia-smi; what it prints is in $told.
tell() {
    teller=nvidia-smi
    told=$("$smi" "$@" 2>&1 </dev/null)
}

# Fails with what $teller said, and what that may mean.
fail_as_told() {
    case $told in
    *[Ii]"n use by another client"*)
        fail "$*. $teller says: $told" "
Something still holds it. If none of your processes shows in nvidia-smi, it may be the telemetry
agent (DCGM: nvidia-dcgm, dcgm-exporter): stop or restart it, then run this again. Nothing is
forced."
        ;;
    *) fail "$*. $teller says: $told" ;;
    esac
}

# MIG mode of GPU $1: on or off.
mode_of() {
    tell -i "$1" --query-gpu=mig.mode.current --format=csv,noheader ||
        fail_as_told "GPU $1 cannot be read"
    case $told in
    *Enabled*) echo on ;;
    *Disabled*) echo off ;;
    *) fail_as_told "GPU $1 has no MIG mode" ;;
    esac
}

# Whether MIG of GPU $1 is $2, which may be - for either; sets mode.
has_mode() {
    mode=-
    [ "$2" != - ] || return 0
    mode=$(mode_of "$1") || exit 1
    [ "$mode" = "$2" ]
}

# The GPU instances of GPU $1: profile, start, memory slices, id a line.
instances() {
    tell mig -i "$1" -lgi
    ended=$?
    case $told in
    *[Nn]"o GPU instances found"* | *[Nn]"o MIG-enabled devices found"*) return 0 ;;
    esac
    [ "$ended" -eq 0 ] || fail_as_told "the instances of GPU $1 cannot be listed"
    printf '%s\n' "$told" | awk -v gpu="$1" '
        { gsub(/[|]/, " ") }
        NF == 6 && $1 $4 $5 ~ /^[0-9]+$/ && $2 == "MIG" && $6 ~ /^[0-9]+:[0-9]+$/ {
            split($6, place, ":")
            if ($1 == gpu) print $3, place[1], place[2], $5
            next
        }
        $1 ~ /^[0-9]+$/ || /[0-9]:[0-9]/ { strange = $0; exit }
        END { if (strange != "") { print "not understood:" strange > "/dev/stderr"; exit 1 } }
    ' || fail "nvidia-smi lists the instances of GPU $1 in a way that this script does not know"
}

# Whether GPU instance $2 of GPU $1 has a compute instance.
has_compute() {
    tell mig -i "$1" -lci
    ended=$?
    case $told in
    *[Nn]"o compute instances found"* | *[Nn]"o GPU instances found"*) return 1 ;;
    esac
    [ "$ended" -eq 0 ] || fail_as_told "the compute instances of GPU $1 cannot be listed"
    printf '%s\n' "$told" | awk -v gpu="$1" -v id="$2" '
        { gsub(/[|]/, " ") }
        $1 == gpu && $2 == id && $3 == "MIG" { found = 1 }
        END { exit !found }
    '
}

# Whether GPU instance $2 of GPU $1 has the compute instance that is all of it, and no other.
is_whole() {
    has_compute "$1" "$2" || return 1
    echo "$told" | awk -v gpu="$1" -v id="$2" '
        { gsub(/[|]/, " ") }
        $1 == gpu && $2 == id && $3 == "MIG" && $4 ~ /^[0-9]+c[.]/ { found = 1 }
        END { exit found }
    '
}

# The id of the instance of GPU $1 that has one of the names $2 (a|b) and starts at $3, or nothing.
id_of() {
    listed=$(instances "$1") || exit 1
    echo "$listed" | awk -v names="|$2|" -v start="$3" \
        'NF == 4 && index(names, "|" $1 "|") && $2 == start { print $4; exit }'
}

# What is to be done on GPU $1, where $2 is the table of what is to stand and $3 of what may go:
#   stay NAME START ID, destroy NAME START ID, other NAME START ID, stranger NAME START ID,
#   create NAMES START PROFILE, blocked PROFILE START BY
plan_of() {
    listed=$(instances "$1") || exit 1
    {
        "$2" | sed 's/^/W /'
        "$3" | sed 's/^/G /'
        others | sed 's/^/O /'
        echo "$listed" | sed 's/^/L /'
    } | awk -v gpu="$1" '
        function is(names, start, size) {
            return start == $3 && size == $4 && index("|" names "|", "|" $2 "|")
        }
        $1 == "W" && $2 == gpu { w++; wp[w] = $3; ws[w] = $4; wn[w] = $5; wa[w] = $6 }
        $1 == "G" && $2 == gpu { g++; gs[g] = $4; gn[g] = $5; ga[g] = $6 }
        $1 == "O" && $2 == gpu { o++; os[o] = $4; on[o] = $5; oa[o] = $6 }
        $1 == "L" && NF == 5 {
            what = "stranger"
            for (i = 1; i <= g; i++) if (is(ga[i], gs[i], gn[i])) what = "destroy"
            for (i = 1; i <= o; i++) if (is(oa[i], os[i], on[i])) what = "other"
            for (i = 1; i <= w; i++) if (is(wa[i], ws[i], wn[i])) { what = "stay"; there[i] = 1 }
            print what, $2, $3, $5
            if (what == "other" || what == "stranger") { s++; sp[s] = $2; ss[s] = $3; sn[s] = $4 }
        }
        END {
            for (i = 1; i <= w; i++) if (!there[i]) {
                for (j = 1; j <= s; j++)
                    if (ws[i] + 0 < ss[j] + sn[j] && ss[j] + 0 < ws[i] + wn[i])
                        print "blocked", wp[i], ws[i], sp[j] "@" ss[j]
                print "create", wa[i], ws[i], wp[i]
            }
        }
    '
}

# Fails if GPU $1 is not the one with the UUID $2, or - if that is not known.
recognise() {
    tell -i "$1" --query-gpu=uuid --format=csv,noheader || fail_as_told "there is no GPU $1"
    [ "$2" = - ] || printf '%s\n' "$told" | grep -Fqx -e "$2" ||
        fail "GPU $1 is $told, not $2: the numbers have changed; observe the node again"
}

# Fails if a GPU is another.
recognise_all() { gpus | while read -r gpu uuid more; do recognise "$gpu" "$uuid"; done; }

# Says what would be done, and fails if something is in the way. $1 and $2 as in change.
examine() {
    gpus | while read -r gpu uuid on before reset; do
        recognise "$gpu" "$uuid"
        [ "$1" = wanted ] || on=$before
        steps=$(plan_of "$gpu" "$1" "$2") || exit 1
        if ! has_mode "$gpu" "$on"; then
            say "GPU $gpu: MIG would be switched $on$([ "$reset" = no ] || echo ', with a reset')"
            others_there=$(echo "$steps" | awk '/^(other|stranger) / { print $2 "@" $3 }')
            # shellcheck disable=SC2086 # several words on purpose
            [ -z "$others_there" ] ||
                fail "GPU $gpu: MIG cannot be switched $on beside what is not ours:" $others_there
        fi
        echo "$steps" | while read -r step name start more; do
            case $step in
            destroy) say "GPU $gpu: would destroy $name@$start" ;;
            create) say "GPU $gpu: would create $more@$start" ;;
            stranger) say "GPU $gpu: $name@$start is not in the tables and is left alone" ;;
            blocked) fail "GPU $gpu: $name@$start cannot be created over $more, which may not go" ;;
            esac
        done || exit 1
    done
}

# Waits until MIG of GPU $1 is $2; $3 is how the command that was to make it so ended.
is_switched() {
    tried=0
    while :; do
        mode=$(mode_of "$1") || exit 1
        [ "$mode" != "$2" ] || return 0
        tried=$((tried + 1))
        if [ "$3" -ne 0 ] || [ "$tried" -ge "$tries" ]; then return 1; fi
        sleep "$pause"
    done
}

# Switches MIG of GPU $1 to $2; $3 says whether that takes a reset.
switch() {
    mode=$(mode_of "$1") || exit 1
    [ "$mode" != "$2" ] || return 0
    say "GPU $1: switch MIG $2"
    if [ "$2" = on ]; then tell -i "$1" -mig 1; else tell -i "$1" -mig 0; fi
    ended=$?
    first=$told
    if [ "$3" != no ]; then
        mode=$(mode_of "$1") || exit 1
        [ "$mode" != "$2" ] || return 0
        say "GPU $1: reset it, which the change waits for"
        tell -i "$1" --gpu-reset
        ended=$?
        first="$first $told"
    fi
    is_switched "$1" "$2" "$ended" && return 0
    told=$first
    fail_as_told "GPU $1: MIG is still $mode. Stop what uses the GPU, or reboot the node"
}

# Destroys GPU instance $4 of GPU $1, which is a $2 at $3: its compute instances first.
destroy() {
    say "GPU $1: destroy $2@$3"
    if has_compute "$1" "$4"; then
        tell mig -i "$1" -gi "$4" -dci
        ended=$?
        first=$told
        tried=0
        while has_compute "$1" "$4"; do
            tried=$((tried + 1))
            if [ "$ended" -ne 0 ] || [ "$tried" -ge "$tries" ]; then
                told=$first
                fail_as_told "GPU $1: $2@$3 keeps its compute instance and stays"
            fi
            sleep "$pause"
        done
    fi
    tell mig -i "$1" -gi "$4" -dgi
    ended=$?
    first=$told
    tried=0
    while :; do
        id=$(id_of "$1" "$2" "$3") || exit 1
        [ -n "$id" ] || return 0
        tried=$((tried + 1))
        if [ "$ended" -ne 0 ] || [ "$tried" -ge "$tries" ]; then break; fi
        sleep "$pause"
    done
    told=$first
    fail_as_told "GPU $1: $2@$3 is still there"
}

# Waits until an instance of GPU $1 with one of the names $2 stands whole at $3; sets id.
stands() {
    tried=0
    while :; do
        id=$(id_of "$1" "$2" "$3") || exit 1
        if [ -n "$id" ] && is_whole "$1" "$id"; then return 0; fi
        tried=$((tried + 1))
        if [ "$4" -ne 0 ] || [ "$tried" -ge "$tries" ]; then return 1; fi
        sleep "$pause"
    done
}

# Creates a $4 (or what else the names $2 call it) at start $3 of GPU $1.
create() {
    say "GPU $1: create $4@$3"
    tell mig -i "$1" -cgi "$4:$3" -C
    ended=$?
    first=$told
    stands "$1" "$2" "$3" "$ended" && return 0
    # Drivers have called one profile by several names, and each takes its own alone.
    for name in $(echo "$2" | tr '|' ' '); do
        if [ "$name" = "$4" ] || [ -n "$id" ] || [ "$ended" -eq 0 ]; then continue; fi
        tell mig -i "$1" -cgi "$name:$3" -C
        ended=$?
        stands "$1" "$2" "$3" "$ended" && return 0
    done
    [ -z "$id" ] || finish "$1" "$2" "$3" "$id"
    id=$(id_of "$1" "$2" "$3") || exit 1
    [ -z "$id" ] || return 0
    told=$first
    fail_as_told "GPU $1: $4@$3 was not created"
}

# Gives GPU instance $4 of GPU $1, one of $2 at $3, the compute instance that it lacks.
finish() {
    ! has_compute "$1" "$4" ||
        fail "GPU $1: ${2%%|*}@$3 has other compute instances than the one that is all of it;" \
            "stop what uses them, and destroy them: $smi mig -i $1 -gi $4 -dci"
    say "GPU $1: give ${2%%|*}@$3 its compute instance"
    tell mig -i "$1" -gi "$4" -cci
    ended=$?
    first=$told
    stands "$1" "$2" "$3" "$ended" && return 0
    told=$first
    fail_as_told "GPU $1: ${2%%|*}@$3 has no compute instance and serves nothing"
}

# Makes everything as table $1 has it; what table $2 has and $1 has not is destroyed.
change() {
    examine "$1" "$2" >/dev/null || exit 1
    gpus | while read -r gpu uuid on before reset; do
        [ "$1" = wanted ] || on=$before
        [ "$on" != on ] || switch "$gpu" on "$reset"
        steps=$(plan_of "$gpu" "$1" "$2") || exit 1
        echo "$steps" | while read -r step name start more; do
            if [ "$step" = destroy ]; then destroy "$gpu" "$name" "$start" "$more"; fi
        done || exit 1
        echo "$steps" | while read -r step name start more; do
            case $step in
            create) create "$gpu" "$name" "$start" "$more" ;;
            stay) is_whole "$gpu" "$more" || finish "$gpu" "$name" "$start" "$more" ;;
            esac
        done || exit 1
        [ "$on" != off ] || switch "$gpu" off "$reset"
    done
}

# Whether everything is as table $1 has it, and nothing is left of table $2.
stand_as() {
    gpus | while read -r gpu uuid on before reset; do
        recognise "$gpu" "$uuid"
        [ "$1" = wanted ] || on=$before
        has_mode "$gpu" "$on" || fail "GPU $gpu: MIG is $mode, not $on"
        steps=$(plan_of "$gpu" "$1" "$2") || exit 1
        echo "$steps" | while read -r step name start more; do
            case $step in
            create) fail "GPU $gpu: $more@$start is not there" ;;
            destroy) fail "GPU $gpu: $name@$start is still there" ;;
            stay) is_whole "$gpu" "$more" ||
                fail "GPU $gpu: $name@$start lacks the compute instance that is all of it" ;;
            esac
        done || exit 1
    done || exit 1
    say "every instance is where it should be"
}
