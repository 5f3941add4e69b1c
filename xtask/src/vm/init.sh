#!/bin/busybox sh
# The machine's first program, in the initramfs: makes a root file system of the host's files,
# read-only, and a layer in memory above them, and goes on in there.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module"; done </order

mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose host /lower || exec sh
mount -t tmpfs -o mode=755 tmpfs /upper
mkdir /upper/above /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/above,workdir=/upper/work overlay /new
for place in proc sys dev; do mount --move "/$place" "/new/$place"; done
# Of the host's own run-time files none is seen.
mount -t tmpfs -o mode=755 tmpfs /new/run
cp /guest.sh /settings /new/run/
exec switch_root /new /bin/sh /run/guest.sh
