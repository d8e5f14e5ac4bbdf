#!/bin/bash
# Inside further namespaces of a test machine whose first node is there: file system, network and cgroups of a second one.
#   second-node.sh FOLDER CGROUP ADDRESS NAME GATEWAY
# FOLDER/files is laid over what the first one has in /usr and /etc; the network card comes from outside.
set -euo pipefail
folder=$1 cgroup=$2 address=$3 name=$4 gateway=$5

mkdir -p "$folder"/{usr,usr-work,etc,kubelet,containers,crio,cni,log,units}
cp -a /etc/. "$folder/etc/"
rm -rf "$folder"/etc/{systemd/system,kubernetes,crio,cni,default/kubelet}
mkdir -p "$folder"/etc/{systemd/system,kubernetes/manifests,crio/crio.conf.d,cni/net.d}
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$folder/usr,workdir=$folder/usr-work" /usr
mount --bind "$folder/units" /usr/lib/systemd/system
mount --bind "$folder/etc" /etc
for part in kubelet containers crio cni; do mount --bind "$folder/$part" "/var/lib/$part"; done
mount --bind "$folder/log" /var/log
mount -t tmpfs tmpfs /run
mkdir -p /run/dbus /run/lock /run/crio /run/cgroups
cp -a "$folder"/files/. /

mount --rbind /sys/fs/cgroup /run/cgroups
mount -t tmpfs tmpfs /sys/fs/cgroup
for controller in /run/cgroups/*/; do
  controller=$(basename "$controller")
  mkdir -p "/sys/fs/cgroup/$controller"
  mount --bind "/run/cgroups/$controller" "/sys/fs/cgroup/$controller"
done
umount -R -l /run/cgroups
# systemd takes the cgroup that it starts in for its root: the first one's must not be it.
for hierarchy in unified systemd; do
  mkdir -p "/sys/fs/cgroup/$hierarchy/$cgroup"
  echo $$ > "/sys/fs/cgroup/$hierarchy/$cgroup/cgroup.procs"
done
mount --make-rshared /

hostname "$name"
ip link set lo up
until ip link show eth0 > /dev/null 2>&1; do sleep 0.1; done
ip address add "$address/24" dev eth0
ip link set eth0 up
ip route add default via "$gateway"
echo 1 > /proc/sys/net/ipv4/ip_forward
