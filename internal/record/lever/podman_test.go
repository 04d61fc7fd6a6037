package lever

import (
	"fmt"
	"strings"
	"testing"
)

func TestOfPodman(t *testing.T) {
	for name, line := range map[string]string{
		"bigtcp":           "    ls -d podman* veth*/brport 2>/dev/null | cut -d/ -f1); do",
		"bigtcp-container": "$(podman inspect -f",
		"mtu":              "podman network create -o mtu=9000 NAME",
		"mtu-65520":        "podman network create -o mtu=65520 NAME",
		"bridge-nf":        "net.bridge.bridge-nf-call-iptables = 0",
		"bridge-default":   "podman run --network podman IMAGE",
		"host":             "podman run --network host IMAGE",
		"congestion-bbr":   "podman run --sysctl net.ipv4.tcp_congestion_control=bbr IMAGE",
	} {
		l, ok := Find(name)
		if !ok {
			t.Fatal(name)
		}
		own := l.OfPodman()
		if name == "host" {
			own.Why = "" // of modes that Podman does not have
		}
		text := fmt.Sprint(own)
		if !strings.Contains(text, line) || strings.Contains(strings.ToLower(text), "docker") {
			t.Errorf("%s: %s", name, text)
		}
		if again, _ := Find(name); fmt.Sprint(again) != fmt.Sprint(l) {
			t.Errorf("%s: the catalogue changed", name)
		}
	}
}
