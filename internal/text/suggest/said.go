package suggest

import "slices"

// Said maps, by kind of list, words that people type, such as Docker's own, to the words on the
// list that they stand for.
var Said = map[string]map[string]string{
	"mode": {
		"nat": "publish-nat", "proxy": "publish-proxy", "docker-proxy": "publish-proxy", "userland-proxy": "publish-proxy",
		"published": "publish", "publish-all": "publish",
		"docker0": "bridge-default", "default": "bridge-default", "network": "bridge", "veth": "bridge", "user-bridge": "bridge",
		"localhost": "host", "hostnet": "host", "hostnetwork": "host", "metal": "native", "bare-metal": "native", "baremetal": "native",
		"vxlan": "overlay", "swarm": "overlay", "encrypted": "overlay-encrypted",
		"ipsec": "overlay-encrypted", "ingress": "publish-ingress", "openvswitch": "ovs",
		"container": "shared", "service": "clusterip", "cluster-ip": "clusterip", "node-port": "nodeport", "host-port": "hostport",
	},
	"placement": {
		"localhost": "host", "local": "host", "here": "host", "docker": "container", "peer": "remote", "outside": "remote",
		"other": "remote", "lan": "remote", "client": "remote", "pod": "container",
	},
	"target": {
		"localhost": "loopback", "127.0.0.1": "loopback", "lo": "loopback", "::1": "loopback6", "localhost6": "loopback6",
		"ip": "address", "host": "address", "machine": "address", "eth0": "address", "0.0.0.0": "address", "published": "address",
		"direct": "container", "container-ip": "container", "bridge": "container",
	},
	"load": {
		"http": "crr", "https": "crr", "connect": "crr", "connections": "crr", "throughput": "bulk", "bandwidth": "bulk", "tcp": "bulk",
		"iperf": "bulk", "iperf3": "bulk", "tcp_stream": "bulk", "upload": "bulk", "download": "bulk-reverse", "reverse": "bulk-reverse",
		"tcp_maerts": "bulk-reverse", "latency": "rr", "ping": "rr", "tcp_rr": "rr", "rtt": "rr", "tcp_crr": "crr", "udp_rr": "udp-rr",
		"udp_stream": "udp", "dns": "udp-rr", "sql": "query", "database": "query", "db": "query", "postgres": "query",
		"llm": "stream", "sse": "stream", "tokens": "stream", "chat": "stream",
	},
	"backend": {
		"engine": "docker", "dockerd": "docker", "moby": "docker", "local": "lab", "host": "lab", "namespaces": "lab", "netns": "lab",
		"k8s": "kubernetes", "kube": "kubernetes", "kubectl": "kubernetes", "ssh": "peer", "remote": "peer",
	},
	"recipe": {
		"postgres": "pgbench", "postgresql": "pgbench", "psql": "pgbench", "pg": "pgbench", "redis-benchmark": "redis", "valkey": "redis",
		"iperf": "iperf3", "http": "wrk", "nginx": "wrk", "ab": "wrk", "hey": "wrk", "ping": "sockperf", "sock": "sockperf",
	},
	"tune": {
		"jumbo": "mtu", "rcvbuf": "rmem", "sndbuf": "wmem", "net.core.rmem_max": "rmem_max", "net.core.wmem_max": "wmem_max", "core.rmem_max": "rmem_max", "core.wmem_max": "wmem_max", "tcp_rmem": "rmem", "tcp_wmem": "wmem",
		"gso": "tso", "lro": "gro", "bbr": "congestion", "cubic": "congestion", "cc": "congestion", "tcp_nodelay": "nodelay",
		"big-tcp": "bigtcp", "big_tcp": "bigtcp",
	},
	"format": {"md": "markdown", "text": "table", "plain": "table", "txt": "table", "prometheus": "openmetrics", "benchstat": "benchfmt", "web": "html"},
}

// said returns "" if nothing is known, or if what the word stands for is not on this list.
func said(what, word string, known []string) string {
	if to := Said[what][word]; slices.Contains(known, to) {
		return to
	}
	return ""
}
