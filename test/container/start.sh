#!/bin/sh
# Starts mailchute as a container would, with the tools of Debian only: run by `unshare --fork --pid --mount`, so this is process 1.
# start.sh ROOT INSTALLED NODE WORK MODE UID ARGUMENTS…
#   ROOT: an empty folder · INSTALLED: where the packed archive was installed · NODE: the program node
#   WORK: what is mounted as /work · MODE: rw or ro, how · UID: who runs it
set -e
root=$1 installed=$2 node=$3 work=$4 mode=$5 uid=$6
shift 6
mount --make-rprivate /
mount -t tmpfs -o mode=755,size=16m none "$root"
cd "$root"
mkdir usr etc proc dev tmp work opt opt/mailchute opt/node
for name in bin sbin lib lib32 lib64; do
  if [ -L "/$name" ]; then ln -s "usr/$name" "$name"; elif [ -d "/$name" ]; then mkdir "$name"; mount --bind "/$name" "$name"; fi
done
mount --bind /usr usr
mount -o remount,bind,ro usr
mount --bind "$installed" opt/mailchute
mount -o remount,bind,ro opt/mailchute
touch opt/node/node
mount --bind "$node" opt/node/node
mount --bind "$work" work
[ "$mode" = rw ] || mount -o remount,bind,ro work
mount -t proc none proc
mount -t tmpfs -o mode=1777,size=64m none tmp
for name in null zero full random urandom; do touch "dev/$name"; mount --bind "/dev/$name" "dev/$name"; done
ln -s /proc/self/fd dev/fd
printf 'root:x:0:0::/root:/bin/sh\n' >etc/passwd
if [ -e /etc/ld.so.cache ]; then cp /etc/ld.so.cache etc/; fi
mount -o remount,ro "$root"
exec chroot "$root" /usr/bin/setpriv "--reuid=$uid" "--regid=$uid" --clear-groups --no-new-privs \
  --inh-caps=-all --bounding-set=-all \
  /usr/bin/env -i -C /work PATH=/opt/mailchute/bin:/opt/node:/usr/bin:/bin HOME=/work MAILCHUTE_STATE=/work/state \
  mailchute "$@"
