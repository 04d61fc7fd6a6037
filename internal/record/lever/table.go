package lever

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// containers lists modes with a veth pair on a bridge.
var containers = []mode.Name{mode.Bridge, mode.BridgeDefault, mode.PublishNAT, mode.PublishProxy,
	mode.Routed, mode.Link}

var (
	rootlessDocker = []mode.Name{mode.RootlessPublish, mode.RootlessPublishNAT,
		mode.RootlessPublishTap}
	notPodman      = append(slices.Clone(rootlessDocker), mode.GvisorTapVsock)
	rootlessPodman = []mode.Name{mode.Pasta, mode.RootlessPort, mode.Slirp4netns}
	rootless       = slices.Concat(notPodman, rootlessPodman)
)

// bigTCPNow changes existing devices only.
var bigTCPNow = Snippet{
	"now, for existing networks and containers (iproute2 6.3 or later)", []string{
		"for d in $(cd /sys/class/net &&",
		"    ls -d docker0 br-* veth*/brport 2>/dev/null | cut -d/ -f1); do",
		"  sudo ip link set dev $d \\",
		"    gso_max_size 180000 gro_max_size 180000 \\",
		"    gso_ipv4_max_size 180000 gro_ipv4_max_size 180000",
		"done",
	}}

// bigTCPLater watches for devices that become ports. A udev rule would also match the containers'
// ends, before they are moved.
var bigTCPLater = []Snippet{
	{"/usr/local/sbin/bigtcp-bridges, for those that are started later", []string{
		"#!/bin/sh",
		"set -- gso_max_size 180000 gro_max_size 180000 \\",
		"  gso_ipv4_max_size 180000 gro_ipv4_max_size 180000",
		"ip -o monitor link | while read -r _ d rest; do",
		"  d=${d%%[@:]*}",
		"  case \"$d $rest\" in",
		"    docker0\\ *|br-*|veth*\" master \"*) ;;",
		"    *) continue ;;",
		"  esac",
		"  ip -d link show dev \"$d\" | grep -q 'gso_ipv4_max_size 180000' ||",
		"    ip link set dev \"$d\" \"$@\"",
		"done",
	}},
	{"/etc/systemd/system/bigtcp-bridges.service", []string{
		"[Service]",
		"ExecStart=/bin/sh /usr/local/sbin/bigtcp-bridges",
		"Restart=always",
		"[Install]",
		"WantedBy=multi-user.target",
	}},
}

func linkFile(settings ...string) []Snippet {
	return []Snippet{{"/etc/systemd/network/10-veth.link, for pairs that are made later",
		append([]string{"[Match]", "Driver=veth", "[Link]"}, settings...)}}
}

// sysctlFile returns the snippet that sets what containers get when they start.
func sysctlFile(lines ...string) []Snippet {
	return []Snippet{{"/etc/sysctl.d/90-network.conf, for containers that are started later",
		lines}}
}

// inSysfs returns the snippets that write a value to files of both ends of bridged veth pairs. offload
// is what must be turned on before, or "". An engine makes a container's sysfs read-only.
func inSysfs(offload, files, value string) []Snippet {
	host := []string{"for d in /sys/class/net/veth*; do", "  [ -e $d/brport ] || continue"}
	own := []string{"sudo nsenter -n -t $(docker inspect -f '{{.State.Pid}}' NAME) \\",
		"  unshare -m sh -c 'mount -t sysfs s /sys; mount -o remount,rw /sys; \\"}
	where := ""
	if offload != "" {
		where = " (package ethtool)"
		host = append(host, "  sudo ethtool -K ${d##*/} "+offload+" on")
		own = append(own, "  ethtool -K eth0 "+offload+" on; \\")
	}
	return []Snippet{
		{"after each start of a container" + where, append(host,
			"  echo "+value+" | sudo tee $d/"+files, "done")},
		{"and for its own end", append(own,
			"  echo "+value+" | tee /sys/class/net/eth0/"+files+"'")},
	}
}

func compose(lines ...string) Snippet { return Snippet{"compose.yaml, in the service", lines} }

var all = []Lever{
	{
		Name:      "bigtcp",
		Gist:      "BIG TCP on the bridge and the host's ends of containers' links",
		Tunes:     "bigtcp=180000",
		For:       append([]mode.Name{mode.Netkit}, containers...),
		Harms:     "what leaves the machine over a card that cannot split such packets",
		Permanent: append([]Snippet{bigTCPNow}, bigTCPLater...),
	},
	{
		Name:  "bigtcp-container",
		Gist:  "BIG TCP on the containers' own ends",
		Tunes: "bigtcp-container=180000",
		For:   append([]mode.Name{mode.Netkit}, containers...),
		Harms: "what containers send elsewhere: the way out is the same device",
		Permanent: []Snippet{{"after each start of a container (iproute2 6.3 or later)", []string{
			"sudo nsenter -n -t $(docker inspect -f '{{.State.Pid}}' NAME) \\",
			"  ip link set dev eth0 gso_max_size 180000 gro_max_size 180000 \\",
			"  gso_ipv4_max_size 180000 gro_ipv4_max_size 180000",
		}}},
	},
	{
		Name:  "bigtcp-lo",
		Gist:  "BIG TCP on the loopback device",
		Tunes: "bigtcp-lo=180000",
		Harms: "latency over 127.0.0.1",
		For:   []mode.Name{mode.Native, mode.Host, mode.Shared, mode.PublishProxy},
		Permanent: []Snippet{{"/etc/systemd/system/bigtcp-lo.service (iproute2 6.3 or later)",
			[]string{
				"[Service]", "Type=oneshot", "ExecStart=/sbin/ip link set dev lo \\",
				"  gso_max_size 180000 gro_max_size 180000 \\",
				"  gso_ipv4_max_size 180000 gro_ipv4_max_size 180000", "[Install]",
				"WantedBy=multi-user.target"}}},
	},
	{
		Name:      "gro",
		Gist:      "generic receive offload of containers' links",
		Tunes:     "gro=on",
		For:       containers,
		Harms:     "latency: packets wait for others, and pass through NAPI",
		Permanent: linkFile("GenericReceiveOffload=yes"),
	},
	{
		Name:      "threaded-napi",
		Gist:      "receive offload with NAPI in threads of its own",
		Tunes:     "gro=on+threaded=on",
		For:       containers,
		Harms:     "latency and CPU time: a thread has to be woken",
		Permanent: append(linkFile("GenericReceiveOffload=yes"), inSysfs("gro", "threaded", "1")...),
	},
	{
		Name:      "tso-off",
		Gist:      "no TCP segmentation offload on containers' links",
		Tunes:     "tso=off",
		For:       containers,
		Harms:     "throughput and CPU time: each segment passes the path alone",
		Permanent: linkFile("TCPSegmentationOffload=no"),
	},
	{
		Name:      "queues",
		Gist:      "a queue for each CPU on containers' links",
		Tunes:     "queues={cpus}",
		For:       containers,
		Harms:     "order and caches: a flow may move between CPUs",
		Permanent: linkFile("RxChannels={cpus}", "TxChannels={cpus}"),
	},
	{
		Name:  "xps",
		Gist:  "a queue for each CPU, with transmit packet steering",
		Tunes: "queues={cpus}+xps=on",
		For:   containers,
		Harms: "order and caches: a flow may move between CPUs",
		Permanent: append(linkFile("RxChannels={cpus}", "TxChannels={cpus}"),
			inSysfs("", "queues/tx-*/xps_cpus", "{mask}")...),
	},
	{
		Name: "rps", Gist: "receive packet steering to all CPUs", Tunes: "rps=on",
		Harms: "latency and CPU time: another CPU has to be interrupted",
		Loopback: []Snippet{{"for 127.0.0.1 and the machine's own addresses, at each start",
			[]string{"echo {mask} | sudo tee /sys/class/net/lo/queues/rx-*/rps_cpus"}}},
		Permanent: inSysfs("", "queues/rx-*/rps_cpus", "{mask}"),
	},
	{
		Name:      "rmem",
		Gist:      "larger receive buffers of TCP",
		Tunes:     "rmem=16M",
		Harms:     "memory, and latency behind a full buffer",
		Permanent: sysctlFile("net.ipv4.tcp_rmem = 4096 131072 16777216"),
		GivesUp:   "up to 16 MiB of memory for each connection",
	},
	{
		Name:      "wmem",
		Gist:      "larger send buffers of TCP",
		Tunes:     "wmem=16M",
		Harms:     "memory, and latency behind a full buffer",
		Permanent: sysctlFile("net.ipv4.tcp_wmem = 4096 16384 16777216"),
		GivesUp:   "up to 16 MiB of memory for each connection",
	},
	{
		Name: "mtu", Gist: "an MTU of 9000 inside the bridge", Tunes: "mtu=9000", For: containers,
		Harms: "what crosses a wire with an MTU of 1500, and datagrams that must then be fragmented",
		Permanent: []Snippet{
			{"a network's",
				[]string{"docker network create -o com.docker.network.driver.mtu=9000 NAME"}},
			{"compose.yaml, in the network", []string{
				"driver_opts:", "  com.docker.network.driver.mtu: \"9000\""}},
			{"/etc/docker/daemon.json, for the default bridge", []string{`{ "mtu": 9000 }`}},
		},
		GivesUp: "paths out of the bridge rely on ICMP messages about the packet size",
	},
	{
		Name:  "bridge-nf",
		Gist:  "bridge-nf-call-iptables=0: iptables does not see what a bridge forwards",
		Tunes: "bridge-nf=off",
		For:   []mode.Name{mode.Bridge, mode.BridgeDefault, mode.Pipework},
		Harms: "nothing known",
		Permanent: []Snippet{
			{"/etc/modules-load.d/br_netfilter.conf: loaded later, it would set 1 again",
				[]string{"br_netfilter"}},
			// See moby's pull requests 48511 and 48685.
			{"/etc/sysctl.d/90-bridge.conf, with userland-proxy and icc as they are by default",
				[]string{"net.bridge.bridge-nf-call-iptables = 0",
					"net.bridge.bridge-nf-call-ip6tables = 0",
					"# Docker sets 1 for a network with icc=false; Docker Engine 27.4 and later",
					`# also for all networks with "userland-proxy": false`}},
			{"for each network with rules between its containers, when it is made",
				[]string{"sudo ip link set dev br-ID type bridge \\",
					"  nf_call_iptables 1 nf_call_ip6tables 1"}},
		},
		Reaches: "sysctl -w net.bridge.bridge-nf-call-iptables=0",
		GivesUp: "rules between containers of one network (icc=false, DOCKER-USER), " +
			"and their way to each other's published ports without docker-proxy",
	},
	{
		Name:  "idle-poll",
		Gist:  "CPUs that poll while they are idle, instead of sleeping",
		Tunes: "idle=poll",
		Harms: "what shares a core with an idle CPU",
		Permanent: []Snippet{{"/etc/systemd/system/idle-poll.service, " +
			"then sudo systemctl enable --now idle-poll", []string{
			"[Service]",
			"ExecStart=/bin/sh -c 'exec 3>/dev/cpu_dma_latency; echo 0 >&3; \\",
			"  exec sleep infinity'",
			"[Install]",
			"WantedBy=multi-user.target",
		}}},
		GivesUp: "power: idle CPUs do not rest, nor does a virtual machine leave them to others",
	},
	congestion("reno"), congestion("cubic"), congestion("bbr"),
	{
		Name:  "bridge-default",
		Gist:  "Docker's default bridge instead of a network of your own",
		Mode:  mode.BridgeDefault,
		For:   []mode.Name{mode.Bridge},
		Harms: "nothing known",
		Permanent: []Snippet{{"instead of --network NAME",
			[]string{"docker run --network bridge IMAGE"}}, compose("network_mode: bridge")},
		GivesUp: "names of containers, and separate networks",
	},
	{
		Name:  "nat",
		Gist:  "NAT instead of docker-proxy",
		Mode:  mode.PublishNAT,
		For:   []mode.Name{mode.PublishProxy},
		Harms: "nothing known",
		Permanent: []Snippet{{"/etc/docker/daemon.json, then restart dockerd",
			[]string{`{ "userland-proxy": false }`}}},
		GivesUp: "published ports on ::1, and over IPv6 to containers without it; route_localnet is on",
	},
	{
		Name:  "fast",
		Gist:  "toll fast, which redirects local clients past docker-proxy and NAT",
		Mode:  mode.Fast,
		Local: true,
		For:   []mode.Name{mode.PublishProxy, mode.PublishNAT}, Harms: "nothing known",
		Not: rootless, Why: "toll fast works only on an engine with root",
		Permanent: []Snippet{{"where a Docker Engine runs, while it is kept on (docs/commands/fast.md)",
			[]string{"sudo toll fast on all"}}},
		GivesUp: "eBPF programs on the machine's root cgroup",
	},
	{
		Name:  "rootless-nat",
		Gist:  "NAT instead of docker-proxy behind rootlesskit",
		Mode:  mode.RootlessPublishNAT,
		For:   []mode.Name{mode.RootlessPublish},
		Harms: "nothing known",
		Permanent: []Snippet{
			{"~/.config/docker/daemon.json, then systemctl --user restart docker",
				[]string{`{ "userland-proxy": false }`}}},
		GivesUp: "published ports on ::1 and over IPv6",
	},
	{
		Name:  "mtu-65520",
		Gist:  "an MTU of 65520 inside the networks of a rootless engine",
		Tunes: "mtu=65520",
		For:   append(slices.Clone(rootlessDocker), mode.RootlessPort),
		Harms: "large datagrams on their way out, which the relay fragments",
		// See moby's issue 44750.
		Permanent: []Snippet{
			{"~/.config/docker/daemon.json: for the default bridge, and for networks made later",
				[]string{`{ "mtu": 65520, "default-network-opts": { "bridge":`,
					`  { "com.docker.network.driver.mtu": "65520" } } }`}},
			{"a network's",
				[]string{"docker network create -o com.docker.network.driver.mtu=65520 NAME",
					"podman network create -o mtu=65520 NAME"}},
		},
		GivesUp: "nothing; but where the engine's own tap device has an MTU of 1500 " +
			"(gvisor-tap-vsock), containers depend on path MTU discovery",
	},
	{
		Name:  "pasta",
		Gist:  "pasta, which is Podman's default, instead of another --network",
		Mode:  mode.Pasta,
		For:   []mode.Name{mode.RootlessPort, mode.Slirp4netns},
		Harms: "nothing known",
		Permanent: []Snippet{{"instead of --network NAME",
			[]string{"podman run --network pasta -p 8080:80 IMAGE"}}},
		GivesUp: "names of containers; containers cannot reach the machine by its own address",
	},
	{
		Name:  "rootlessport",
		Gist:  "a network of your own instead of pasta or slirp4netns",
		Mode:  mode.RootlessPort,
		For:   []mode.Name{mode.Pasta, mode.Slirp4netns},
		Harms: "nothing known",
		Permanent: []Snippet{{"with a network of your own",
			[]string{"podman network create NAME",
				"podman run --network NAME -p 8080:80 IMAGE"}}},
		GivesUp: "the client's address: the server sees one of the container's",
	},
	{
		Name:  "slirp4netns",
		Gist:  "slirp4netns with its own port handler",
		Mode:  mode.Slirp4netns,
		For:   []mode.Name{mode.Pasta, mode.RootlessPort},
		Harms: "nothing known",
		Permanent: []Snippet{{"instead of another --network",
			[]string{"podman run --network slirp4netns:port_handler=slirp4netns \\",
				"  -p 8080:80 IMAGE"}}},
		GivesUp: "published ports over IPv6; Podman plans to remove it (containers/podman#27828)",
	},
	{
		Name:      "socket-activation",
		Gist:      "a listening socket that the program takes from systemd",
		Mode:      mode.Host,
		Local:     true,
		Isolation: true,
		For:       rootlessPodman,
		Not:       notPodman,
		Why:       "Docker passes no sockets from systemd to containers",
		Harms:     "nothing known",
		Permanent: []Snippet{
			{"~/.config/systemd/user/NAME.socket, for a container that is NAME.service", []string{
				"[Socket]", "ListenStream=8080", "[Install]", "WantedBy=sockets.target"}}},
		GivesUp: "programs that open their port themselves instead of taking a socket (LISTEN_FDS)",
	},
	{
		Name:      "rootful",
		Gist:      "an engine with root",
		Mode:      mode.Publish,
		Local:     true,
		Isolation: true,
		For:       rootlessDocker,
		Harms:     "nothing known",
		Permanent: []Snippet{{"after dockerd-rootless-setuptool.sh uninstall",
			[]string{"sudo systemctl enable --now docker"}}},
		GivesUp: "an engine without root",
	},
	{
		Name:  "netkit",
		Gist:  "netkit instead of veth",
		Mode:  mode.Netkit,
		For:   []mode.Name{mode.Bridge},
		Harms: "nothing known",
		Permanent: []Snippet{{"Docker has no network driver for it",
			[]string{"# Cilium has: bpf.datapathMode=netkit"}}},
		GivesUp: "Docker's own network driver",
	},
	{
		Name:      "host",
		Gist:      "no network of its own: --network host",
		Mode:      mode.Host,
		Isolation: true,
		Not:       notPodman,
		Why:       "before Docker Engine 29.5 --network host is the engine's own network namespace",
		Harms:     "nothing known",
		Permanent: []Snippet{{"instead of --network NAME and -p",
			[]string{"docker run --network host IMAGE"}}, compose("network_mode: host")},
		GivesUp: "port isolation: the container has the machine's ports and devices",
	},
}

func congestion(name string) Lever {
	return Lever{
		Name:  "congestion-" + name,
		Gist:  name + " as TCP's congestion control",
		Tunes: "congestion=" + name,
		Stays: true,
		Harms: "paths with losses and long delays, which only a real network has",
		Permanent: []Snippet{
			{"compose.yaml, in a service that talks to this machine only",
				[]string{"sysctls:", "  net.ipv4.tcp_congestion_control: " + name}},
			{"docker run, for such a container",
				[]string{"docker run --sysctl net.ipv4.tcp_congestion_control=" + name + " IMAGE"}}},
		GivesUp: "the other algorithm over lossy and long paths, which are not measured here",
	}
}

var podmanWords = strings.NewReplacer(
	"Docker's default bridge", "Podman's default network",
	"docker0 br-*", "podman*",
	`docker0\ *|br-*|`, `podman*\ *|`,
	"br-ID", "podmanN",
	"docker inspect", "podman inspect",
	"docker run --network bridge", "podman run --network podman",
	"docker run", "podman run",
	"docker network create -o com.docker.network.driver.mtu", "podman network create -o mtu",
	"com.docker.network.driver.mtu", "mtu",
	"network_mode: bridge", "network_mode: podman",
	", with userland-proxy and icc as they are by default", "",
	" (icc=false, DOCKER-USER)", "",
	" without docker-proxy", "",
)

// OfPodman returns the lever in Podman's words, without snippets for Docker's daemon.json.
func (l Lever) OfPodman() Lever {
	l.Gist, l.GivesUp = podmanWords.Replace(l.Gist), podmanWords.Replace(l.GivesUp)
	var own []Snippet
	for _, s := range l.Permanent {
		if strings.Contains(s.Where, "daemon.json") {
			continue
		}
		lines := make([]string, 0, len(s.Lines))
		for _, line := range s.Lines {
			line = podmanWords.Replace(line)
			if !strings.HasPrefix(line, "# ") {
				lines = append(lines, line)
			}
		}
		own = append(own, Snippet{podmanWords.Replace(s.Where), lines})
	}
	l.Permanent = own
	return l
}
