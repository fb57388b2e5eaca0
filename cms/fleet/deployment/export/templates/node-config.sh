
config=$(awk -F, -v node="$node" '$1 "" == node "" { print $2 }' "$here/nodes.csv")
[ -n "$config" ] || fail "it is not in nodes.csv"
uuids | while read -r where gpu uuid; do
    [ "$where" = "$node" ] || continue
    told=$(ask -i "$gpu" --query-gpu=uuid --format=csv,noheader 2>&1 </dev/null)
    printf '%s\n' "$told" | grep -Fqx -e "$uuid" ||
        fail "GPU $gpu is not $uuid, nvidia-smi says: $told. The numbers have changed; observe" \
            "the node again. Nothing was done"
done || exit 1
