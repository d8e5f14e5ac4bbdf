#!/bin/bash
# Inside namespaces of their own, as root: makes the file system, network and cgroups of a test machine out of those of this
# one, then waits. Nothing outside of $1 (the folder of the machine) and of the cgroup $2 is written.
#   boot.sh FOLDER CGROUP ADDRESS [ADDRESS of a registry]...
set -euo pipefail
folder=$1 cgroup=$2 address=$3
shift 3

# /usr may be written while the machine is built, and holds units of its own; /etc is a copy.
mkdir -p "$folder"/{usr,usr-work,etc,kubelet,containers,crio,cni,log,units}
cp -a /etc/. "$folder/etc/"
rm -rf "$folder"/etc/{systemd/system,kubernetes,crio,cni,containers,default/kubelet}
mkdir -p "$folder"/etc/{systemd/system,kubernetes/manifests,crio/crio.conf.d,cni/net.d,containers/registries.conf.d}
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$folder/usr,workdir=$folder/usr-work" /usr
mkdir -p /usr/lib/systemd/system /var/lib/kubelet /var/lib/containers /var/lib/crio /var/lib/cni
mount --bind "$folder/units" /usr/lib/systemd/system
mount --bind "$folder/etc" /etc
if [ -n "${KUBELET_DISK:-}" ]; then mount -t tmpfs -o "size=$KUBELET_DISK" tmpfs "$folder/kubelet"; fi
mount --bind "$folder/kubelet" /var/lib/kubelet
mount --bind "$folder/containers" /var/lib/containers
mount --bind "$folder/crio" /var/lib/crio
mount --bind "$folder/cni" /var/lib/cni
mount --bind "$folder/log" /var/log
mount -t tmpfs tmpfs /run
mkdir -p /run/dbus /run/lock /run/crio /run/cgroups

# systemd mounts more below /sys/fs/cgroup, and makes it read-only: it gets a tmpfs of its own over the same controllers.
mount --rbind /sys/fs/cgroup /run/cgroups
mount -t tmpfs tmpfs /sys/fs/cgroup
for controller in /run/cgroups/*/; do
  name=$(basename "$controller")
  mkdir -p "/sys/fs/cgroup/$name"
  mount --bind "/run/cgroups/$name" "/sys/fs/cgroup/$name"
done
umount -R /run/cgroups
mount --make-rshared /

ip link set lo up
ip link add node0 type bridge
ip address add "$address/24" dev node0
for registry; do ip address add "$registry/32" dev node0; done
ip link set node0 up
ip route add 10.96.0.0/16 dev node0
echo 1 > /proc/sys/net/ipv4/ip_forward
hostname node1
: > /etc/resolv.conf
echo '{"default":[{"type":"insecureAcceptAnything"}]}' > /etc/containers/policy.json
echo 'unqualified-search-registries = ["docker.io"]' > /etc/containers/registries.conf
