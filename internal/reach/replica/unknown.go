package replica

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xfrm"
)

// unknown returns the parts of s that affect packets and cannot be copied. s must be the calling
// thread's namespace.
func (s *Space) unknown(loaded modules) (out []Unknown) {
	everywhere := func(format string, a ...any) {
		out = append(out, Unknown{What: fmt.Sprintf(format, a...)})
	}
	attached, err := link.Attached()
	if err != nil {
		everywhere("BPF programs and filters that could not be listed: %v", err)
	}
	for _, l := range s.Links {
		for _, what := range attached[l.Name] {
			if text, ok := decisive(what); ok {
				out = append(out, Unknown{What: text + " at " + l.Name, Device: l.Name})
			}
		}
		what := l.Selects()
		if l.Kind == "openvswitch" {
			what = "Open vSwitch"
		}
		if what != "" {
			out = append(out, Unknown{What: what + " at " + l.Name, Device: l.Name})
		}
	}
	if text, err := bpf.OfNamespace(); err == nil && strings.Contains(text, "sk_lookup") {
		everywhere("BPF %s", text)
	}
	hooked, _, _ := bpf.Netfilter() // only root may list them
	for _, text := range hooked {
		everywhere("BPF %s", text)
	}
	for _, text := range programs(s.PID) {
		everywhere("BPF %s of the control group", text)
	}
	table, _ := os.ReadFile("/proc/thread-self/net/ip_vs") // missing without IPVS
	refuses, _ := os.ReadFile("/proc/sys/net/ipv4/vs/nat_icmp_send")
	out = append(out, ipvs(table, strings.TrimSpace(string(refuses)) == "1")...)
	arp, _ := os.ReadFile("/proc/thread-self/net/arp_tables_names")
	out = append(out, s.oldTables(loaded, "/sys/module", arp)...)
	if loaded.may("xfrm_user") {
		policies, _, err := xfrm.List()
		if err != nil {
			everywhere("IPsec policies that could not be listed: %v", err)
		}
		for _, p := range policies {
			everywhere("IPsec policy %s", strings.TrimPrefix(p, "dir "))
		}
	}
	return out
}

// decisive rewords a line of link.Attached. It also reports whether the program, filter or
// discipline in the line may drop or redirect packets.
func decisive(what string) (string, bool) {
	kind, rest, _ := strings.Cut(what, ": ")
	name, _, _ := strings.Cut(rest, " ")
	switch kind {
	case "queueing discipline":
		return kind + " " + name, slices.Contains([]string{"blackhole", "netem", "plug"}, name)
	case "XDP":
		return kind + " " + rest, true
	}
	return fmt.Sprintf("%s (%s)", kind, rest), true
}

// refusing lists the places where control groups' programs can refuse or redirect packets and
// connections.
var refusing = []string{"ingress", "egress", "bind4", "bind6", "connect4", "connect6", "sendmsg4",
	"sendmsg6", "recvmsg4", "recvmsg6"}

func programs(pid int) []string {
	if pid == 0 {
		return nil
	}
	dir, err := bpf.CgroupOf(pid)
	if err != nil {
		return nil
	}
	return ProgramsOf(dir)
}

// ProgramsOf describes the BPF programs of a control group, given its directory, that can refuse or
// redirect packets and connections. It returns nil if they cannot be read.
func ProgramsOf(dir string) []string {
	text, err := bpf.InCgroup(dir)
	if err != nil || text == bpf.None {
		return nil
	}
	return slices.DeleteFunc(strings.Split(text, ", "), func(p string) bool {
		place, _, _ := strings.Cut(p, " ")
		return !slices.Contains(refusing, place)
	})
}

// oldTables returns the tables of ebtables-legacy and arptables-legacy, whose rules toll does not
// read. Those of ebtables affect what crosses a bridge, in all namespaces once their module is
// there. dir is /sys/module, which has it, and arp lists the namespace's tables for ARP.
func (s *Space) oldTables(loaded modules, dir string, arp []byte) (out []Unknown) {
	for name := range strings.FieldsSeq(string(arp)) {
		out = append(out, Unknown{What: "rules of arptables-legacy " + name})
	}
	bridges := map[int]bool{}
	for _, l := range s.Links {
		bridges[l.Index] = l.Kind == "bridge"
	}
	for _, table := range []string{"broute", "filter", "nat"} {
		_, err := os.Stat(filepath.Join(dir, "ebtable_"+table))
		if err != nil && !loaded.has["ebtable_"+table] {
			continue
		}
		for _, l := range s.Links {
			if bridges[l.Index] || bridges[l.Master] {
				out = append(out, Unknown{What: "rules of ebtables-legacy " + table, Device: l.Name})
			}
		}
	}
	return out
}
