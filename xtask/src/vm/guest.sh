# The machine's first program above the host's files: runs the tests, and turns the machine off.
# What it prints goes to the log; what the tests say goes to the second serial port.
. /run/settings
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
# Not /tmp: what the host has there may be the clone itself.
mkdir -p /run/tmp /run/netns /run/lock
export TMPDIR=/run/tmp NEIGHSTEER_VM="$KERNEL" CARGO_TARGET_DIR="$TARGET"

release=$(uname -r)
mkdir -p /lib/modules
ln -sfn "$TREE/lib/modules/$release" "/lib/modules/$release"
mount -t bpf bpf /sys/fs/bpf
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
for module in veth sch_ingress cls_bpf openvswitch; do modprobe "$module"; done

results=/dev/ttyS1
stty -F "$results" raw -echo
exec 3>"$results"
cd "$TESTS" || exit
while read -r name; do
    echo "[neighsteer] $name"
    echo "[start] $name" >&3
    # shellcheck disable=SC2086
    timeout --kill-after=10 "$LIMIT" "$SHARE/deps/$name" --show-output --format=pretty \
        --color=never --test-threads="$THREADS" $FILTER </dev/null >&3 2>&1
    echo "[end] $name $?" >&3
    times
done <"$SHARE/list"
echo '[done]' >&3
echo o >/proc/sysrq-trigger
sleep 60
