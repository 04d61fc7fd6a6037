# What the scripts of the situations have in common. SELF is the test program.

at() { # PLACE COMMAND…
	nsenter -t $(</run/places/$1) -n "${@:2}"
}

nodad() { case $1 in *:*) echo nodad ;; esac; }

hush() { # devices that are added get no addresses by themselves
	[ -z "$QUIET" ] || echo 1 >/proc/sys/net/ipv6/conf/default/addr_gen_mode
}

wait_for() { # COMMAND…: until it succeeds
	local end=$((SECONDS + 60))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { "$@"; return; }
		sleep 0.1
	done
}

private_etc() { # programs may write their settings
	mkdir /run/etc
	mount -t tmpfs tmpfs /run/etc
	mkdir /run/etc/upper /run/etc/work
	mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work /etc
}

real_firewalld() { # BACKEND
	mkdir -p /run/dbus
	dbus-daemon --system --fork --nopidfile
	sed -i "s/^FirewallBackend=.*/FirewallBackend=$1/" /etc/firewalld/firewalld.conf
	firewalld --nofork --nopid >/run/firewalld.log 2>&1 &
	wait_for firewall-cmd --state || { tail /run/firewalld.log; return 1; }
}

cont() { # NAME [BRIDGE ADDRESS/BITS GATEWAY [DEVICE]]: a container; again: another of its devices
	local name=$1 bridge=$2 addr=$3 gateway=$4 device=${5:-eth0} commands=
	if [ ! -e /run/places/$name ]; then
		mkdir -p /run/idle
		ln -sf $(command -v sleep) /run/idle/$name
		setsid unshare -n /run/idle/$name infinity &
		until [ ! /proc/$!/ns/net -ef /proc/self/ns/net ]; do sleep 0.01; done
		echo $! >/run/places/$name
		[ -z "$QUIET" ] || at $name bash -c "$(declare -f hush); hush"
		commands="link set lo up"
	fi
	if [ -n "$bridge" ]; then
		local port=v$name${device#eth}
		ip -batch - <<<"link add $port type veth peer name $device netns $(</run/places/$name)
link set $port master $bridge up"
		commands="$commands
addr add $addr dev $device $(nodad $addr)
link set $device up
route replace default via $gateway"
	fi
	at $name ip -batch - <<<"$commands"
}

br() { # NAME ADDRESS/BITS…
	{
		echo "link add $1 type bridge ${QUIET:+mcast_snooping 0}"
		for a in "${@:2}"; do echo "addr add $a dev $1 $(nodad $a)"; done
		echo "link set $1 up"
	} | ip -batch -
	echo 1 >/proc/sys/net/ipv4/ip_forward
}

docker0() { # two containers at Docker's bridge
	br docker0 172.17.0.1/16
	cont web docker0 172.17.0.2/16 172.17.0.1
	cont app docker0 172.17.0.3/16 172.17.0.1
}

listening() { # PLACE NAME ARGUMENT…: starts SELF under a name, by AS, and waits until it listens
	local said=
	ln -sf self /run/bin/$2
	read -r said < <(BRIDGETOLL_TEST_READY=yes exec setsid nsenter -t $(</run/places/$1) -n $AS \
		/run/bin/$2 "${@:3}" 3>&1 </dev/null >&2) || true
	[ "$said" = 0 ] || { echo "$2 does not listen: $said"; return 1; }
}

server() { # PLACE NAME PROTO/ADDRESS…
	listening $1 $2 -serve "${@:2}"
}

proxy() { # FLAG…: a docker-proxy
	listening machine docker-proxy "$@"
}

engine() { # [BRIDGE…]: the rules of a Docker Engine 20.10; with NOPROXY those without docker-proxy
	local lo='! -d 127.0.0.0/8' b
	[ -z "$NOPROXY" ] || lo=
	{
		echo "*nat
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT $lo -m addrtype --dst-type LOCAL -j DOCKER"
		for b in "$@"; do
			echo "-A POSTROUTING -s $(ip -4 -o addr show $b | awk '{print $4}') ! -o $b -j MASQUERADE"
			[ -z "$NOPROXY" ] || echo "-A POSTROUTING -o $b -m addrtype --src-type LOCAL -j MASQUERADE"
			[ -n "$NOPROXY" ] || echo "-A DOCKER -i $b -j RETURN"
		done
		echo "COMMIT
*filter
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-USER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-ISOLATION-STAGE-2 - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A DOCKER-USER -j RETURN"
		for b in "$@"; do
			echo "-A FORWARD -o $b -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o $b -j DOCKER
-A FORWARD -i $b ! -o $b -j ACCEPT
-A FORWARD -i $b -o $b -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i $b ! -o $b -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-2 -o $b -j DROP"
			if [ -n "$NOPROXY" ]; then
				sysctl -qw net.ipv4.conf.$b.route_localnet=1
				for v in $(ls /sys/class/net/$b/brif); do bridge link set dev $v hairpin on; done
			fi
		done
		echo "-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-ISOLATION-STAGE-2 -j RETURN
COMMIT"
	} >/run/rules
	iptables-restore --noflush /run/rules
}

publish() { # BRIDGE HOST-ADDRESS PORT ADDRESS PORT [PROTO]: as docker run -p
	local b=$1 host=$2 port=$3 addr=$4 to=$5 proto=${6:-tcp} dst= in="! -i $1"
	[ $host = 0.0.0.0 ] || dst="-d $host/32"
	[ -z "$NOPROXY" ] || in=
	iptables-restore --noflush <<<"*nat
-A POSTROUTING -s $addr/32 -d $addr/32 -p $proto --dport $to -j MASQUERADE
-A DOCKER $dst $in -p $proto --dport $port -j DNAT --to-destination $addr:$to
COMMIT
*filter
-A DOCKER -d $addr/32 ! -i $b -o $b -p $proto --dport $to -j ACCEPT
COMMIT"
	[ -n "$NOPROXY" ] || proxy -proto $proto -host-ip $host -host-port $port -container-ip $addr -container-port $to
}

daemon() { # FLAGS…: a Docker Engine
	mkdir -p /run/d /run/empty
	if [ -n "$FILTER" ]; then # such an engine refuses to start without
		sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
		set -- --firewall-backend=$FILTER "$@"
	fi
	dockerd --data-root /run/d/data --exec-root /run/d/exec --pidfile /run/d/pid \
		-H unix:///run/d/sock "$@" >/run/d/log 2>&1 &
	wait_for [ -S /run/d/sock ]
	wait_for docker info || { tail /run/d/log; return 1; }
	tar -C /run/empty -c . | docker import - empty >/dev/null
}

drun() { # NAME SERVERS [DOCKER'S FLAGS…]: a container that serves, such as "tcp/[::]:80", or "-"
	local name=$1 servers=${2#-} program=${PROGRAM:-$1} pid
	ln -sf self /run/bin/$program
	touch /run/servers
	local had=$(wc -l </run/servers)
	docker run -d --name $name -v /run/bin:/bin:ro -v /run/servers:/run/servers "${@:3}" \
		empty /bin/$program -serve $name $servers >/dev/null
	pid=$(docker inspect -f '{{.State.Pid}}' $name)
	[ "$(readlink /proc/$pid/ns/net)" = "$(readlink /proc/self/ns/net)" ] || echo $pid >/run/places/$name
	for i in $(seq 600); do
		[ $(($(wc -l </run/servers) - had)) -lt $(wc -w <<<"$servers") ] || return 0
		sleep 0.1
	done
	docker logs $name
	return 1
}
