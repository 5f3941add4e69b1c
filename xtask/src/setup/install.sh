# Installs the packages named as arguments. Open vSwitch's and OVN's packages would start their
# daemons and enable them at boot: a developer who wants to run tests did not ask for that.
set -eu

policy=/usr/sbin/policy-rc.d
mark='Set by "cargo xtask setup" while it installs packages'
ours=

enabled() {
    find /etc/systemd/system /etc/rc[2-5].d -type l 2>/dev/null | sort
}
before=$(enabled)

# What this installation has enabled, and nothing else.
disable_new() {
    for link in $(enabled); do
        case "
$before
" in *"
$link
"*) continue ;; esac
        case $link in
        /etc/systemd/system/*)
            systemctl --quiet disable "${link##*/}" 2>/dev/null || rm -f "$link"
            ;;
        /etc/rc*.d/S*)
            if [ -e "$link" ]; then update-rc.d "${link##*/S??}" disable; fi
            ;;
        esac
    done
}

# An interrupted installation is cleaned up after too.
finish() {
    if [ -n "$ours" ]; then rm -f "$policy"; fi
    disable_new
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# One that a killed run left behind.
if grep -qsF "$mark" "$policy"; then rm -f "$policy"; fi
# Somebody else's policy stands.
if [ ! -e "$policy" ]; then
    ours=yes
    printf '#!/bin/sh\n# %s.\nexit 101\n' "$mark" >"$policy"
    chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
# apt refuses to work after an installation that was killed; after any other there is nothing to do.
dpkg --configure -a
apt-get install --yes --no-install-recommends --no-remove \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -- "$@"
