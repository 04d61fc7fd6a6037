package collect

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/bpftest"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestAttached(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "network namespaces need root")
	}
	const links = `ip link set lo up
ip link add br0 type bridge
ip link set br0 up
ip link add v0 type veth peer name v1
ip link set v0 master br0
`
	varies := regexp.MustCompile(`(program|options) [0-9a-f]+`)
	attached := func(d ports.Device) string {
		return varies.ReplaceAllString(strings.Join(d.Attached, ", "), "$1 N")
	}
	for name, c := range map[string]struct {
		commands, device, want string
	}{
		"nothing": {
			"tc qdisc add dev lo clsact\nnft 'add table netdev t; add chain netdev t c { type filter hook ingress device lo priority 0; }'", "lo", ""},
		"queue": {"tc qdisc add dev lo root tbf rate 1mbit burst 10k latency 1ms", "lo",
			"queueing discipline: tbf of 1 Mbit/s with options N"},
		"netdev": {
			"nft 'add table netdev t; add chain netdev t c { type filter hook ingress device lo priority 0; }; add rule netdev t c drop'", "lo", "nftables: chain netdev t c"},
		"netdev-veth": {
			"nft 'add table netdev t; add chain netdev t c { type filter hook ingress device v0 priority 0; policy drop; }'", "v0", "nftables: chain netdev t c"},
		"inet-ingress": {
			"nft 'add table inet t; add chain inet t c { type filter hook ingress device lo priority 0; policy drop; }'", "lo", "nftables: chain inet t c"},
		"bridge": {
			"nft 'add table bridge t; add chain bridge t c { type filter hook input priority 0; policy drop; }'", "br0", "nftables: chain bridge t c"},
	} {
		t.Run(name, func(t *testing.T) {
			f := published(t, links+c.commands, nil)
			i := slices.IndexFunc(f.Devices, func(d ports.Device) bool {
				return d.Name == c.device
			})
			if i < 0 || !f.Known.Attached {
				t.Fatalf("%+v", f)
			}
			got := attached(f.Devices[i])
			if got != c.want {
				t.Errorf("%s: %q, want %q", c.device, got, c.want)
			}
		})
	}
	t.Run("xdp", func(t *testing.T) {
		p := bpftest.Program(t, "other", ebpf.XDP, ebpf.AttachXDP, 1)
		f := published(t, links, func() (link.Link, error) {
			return link.AttachXDP(link.XDPOptions{
				Program: p, Interface: 1, Flags: link.XDPGenericMode})
		})
		if got, want := attached(f.Devices[0]), "XDP: program N"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("tcx", func(t *testing.T) {
		p := bpftest.Program(t, "other", ebpf.SchedCLS, ebpf.AttachTCXEgress, 1)
		f := published(t, links, func() (link.Link, error) {
			return link.AttachTCX(link.TCXOptions{
				Program: p, Interface: 1, Attach: ebpf.AttachTCXEgress})
		})
		if got, want := attached(f.Devices[0]), "BPF program: tcx egress program N"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// A program for the control group of a server, as systemd's IPAddressDeny= attaches it.
func TestProgramsOfServers(t *testing.T) {
	pid, dir := bpftest.Grouped(t)
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupInetIngress,
		Program: bpftest.Program(t, "other", ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress, 0)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &collector{root: true, programs: map[string][]string{}}
	for range 2 { // the second one is remembered
		got := c.programsOf([]ports.Process{{PID: pid}})
		if !strings.HasPrefix(got, "BPF ingress program ") || !strings.HasSuffix(got, filepath.Base(dir)) {
			t.Errorf("%q", got)
		}
	}
	if got := c.programsOf([]ports.Process{{PID: os.Getpid()}}); strings.Contains(got, dir) {
		t.Errorf("this process has %q", got)
	}
}

func TestRoutedBySocket(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "network namespaces need root")
	}
	for name, c := range map[string]struct{ commands, want string }{
		"nothing":  {"", ""},
		"table":    {"ip rule add from 10.0.0.1 lookup 99", ""},
		"mark":     {"ip rule add fwmark 7 prohibit", ""},
		"prohibit": {"ip rule add from 127.0.0.1 prohibit", "ip rule 32765: prohibit"},
		"six":      {"ip -6 rule add to ::1 unreachable", "ip rule 32765: unreachable"},
		"user": {"ip rule add uidrange 1000-1000 lookup 99",
			"ip rule 32765: from all to all table 99 , for some sockets"},
		"elsewhere": {
			"ip rule add pref 100 lookup local\nip rule del pref 0\nip rule add pref 50 to 127.0.0.1 lookup 99\nip route add prohibit default table 99",
			"look up the route to 127.0.0.1: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			f := published(t, "ip link set lo up\n"+c.commands, nil)
			if got := f.Switches.RoutedBySocket; got != c.want ||
				c.want == "" && got != "" {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func published(t *testing.T, commands string, attach func() (link.Link, error)) *ports.Facts {
	t.Helper()
	ns := netnstest.New(t)
	c := &collector{f: &ports.Facts{}, root: true, brief: true}
	if err := ns.Do(func() (err error) {
		if out, err := exec.Command("sh", "-ec", commands).CombinedOutput(); err != nil {
			return errors.New(string(out))
		}
		if attach != nil {
			l, err := attach()
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
		}
		c.network()
		c.attached()
		return nil
	}); err != nil {
		if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) {
			pathtest.SkipOrFail(t, "this kernel has no such place for programs: %v", err)
		}
		t.Fatal(err)
	}
	return c.f
}
