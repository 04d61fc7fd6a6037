set -e
dir=$1 rate=$2 engine=$3
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/sshd "$dir/home" "$dir/bin" "$dir/tmp" "$dir/there"
chmod 1777 "$dir/tmp"
if [ -n "$engine" ]; then mkdir "$dir/engine" && mount --bind "$engine" "$dir/engine"; fi # else it is behind $dir/home
ip link set lo up
for n in a b c; do
	ip netns add $n
	ip -n $n link set lo up
done
ip link add wa type veth peer name eth0 netns a
ip link add wb type veth peer name eth0 netns b
ip link add wc type veth peer name eth0 netns c
ip link add sw type bridge
ip link set sw up
for n in a b c; do ip link set w$n master sw up; done
ip -n a addr add 10.78.0.1/24 dev eth0
ip -n b addr add 10.78.0.2/24 dev eth0
ip -n c addr add 10.78.0.3/24 dev eth0
ip -n a addr add fd78::1/64 dev eth0 nodad
ip -n b addr add fd78::2/64 dev eth0 nodad
ip -n c addr add fd78::3/64 dev eth0 nodad
ip -n b addr add fe80::b/64 dev eth0 nodad
ip -n a addr add 169.254.78.1/16 dev eth0
ip -n b addr add 169.254.78.2/16 dev eth0
for n in a b c; do ip -n $n link set eth0 up; done
for n in a b c; do tc qdisc add dev w$n root tbf rate $rate burst 128k latency 20ms; done
ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
ssh-keygen -q -t ed25519 -N '' -f "$dir/other"
ssh-keygen -q -t ed25519 -N '' -f "$dir/user"
cp "$dir/user.pub" "$dir/authorized"
echo "10.78.0.2,fd78::2,fe80::b%eth0,169.254.78.2,10.78.0.3,fd78::3 $(cut -d' ' -f1,2 "$dir/host.pub")" >"$dir/known"
echo "10.78.0.2,fd78::2,10.78.0.3,fd78::3 $(cut -d' ' -f1,2 "$dir/other.pub")" >"$dir/wrong"
: >"$dir/empty"
cat >"$dir/sshd_config" <<X
Port 22
HostKey $dir/host
AuthorizedKeysFile $dir/authorized
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv TMPDIR=$dir/tmp PATH=$dir/there:/usr/bin:/bin DOCKER_HOST=unix://$dir/there.sock
X
for k in known wrong empty; do
	cat >"$dir/ssh_$k" <<X
Host *
	IdentityFile $dir/user
	IdentitiesOnly yes
	UserKnownHostsFile $dir/$k
	GlobalKnownHostsFile /dev/null
	StrictHostKeyChecking yes
	IdentityAgent none
X
done
cat >"$dir/bin/ssh" <<X
#!/bin/sh
exec /usr/bin/ssh -F "$dir/ssh_\${PEER_TEST_KNOWN:-known}" "\$@"
X
chmod 755 "$dir/bin/ssh"
# It becomes nobody, but takes and refuses commands as the real one does.
cat >"$dir/there/sudo" <<'X'
#!/bin/sh
[ "$1 $2" = "-n --" ] || exit 9
[ "$(id -un)" = plain ] || { echo "sudo: a password is required" >&2; exit 1; }
shift 2
exec "$@"
X
chmod 755 "$dir/there/sudo"
for n in a b c; do
	nsenter --net=/run/netns/$n unshare -m -u --propagation slave bash -c '
		set -e
		mkdir -p /run/s && mount -t sysfs sysfs /run/s && mount --rbind /sys/fs/cgroup /run/s/fs/cgroup && mount --rbind /run/s /sys
		mount --bind "'$dir/home'" /root
		cp /etc/passwd /run/passwd
		echo "plain:x:23456:23456::/root:/bin/sh" >>/run/passwd
		echo "asked:x:23457:23457::/root:/bin/sh" >>/run/passwd
		echo "shut:x:23458:23458::/root:/usr/sbin/nologin" >>/run/passwd
		mount --bind /run/passwd /etc/passwd
		cat /proc/sys/kernel/random/uuid >/run/boot_'$n'
		mount --bind /run/boot_'$n' /proc/sys/kernel/random/boot_id
		hostname machine-'$n'
		echo $$ >"'$dir'/'$n'.pid"
		if [ '$n' != a ]; then exec /usr/sbin/sshd -D -e -f "'$dir'/sshd_config" 2>"'$dir'/sshd-'$n'.log"; fi
		exec sleep infinity' &
done
up() { ip netns exec "$1" ss -Hltn 'sport = :22' | grep -q .; }
for k in $(seq 1500); do # a minute and more: a busy machine takes its time
	if up b && up c && [ -s "$dir/a.pid" ]; then
		echo ready
		exec sleep infinity
	fi
	sleep 0.05
done
echo "no sshd listens" >&2
exit 1
