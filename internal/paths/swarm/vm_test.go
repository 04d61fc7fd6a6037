package swarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

// vmEnv is set under Debian's kernel, which has all that a swarm can use, in a machine without Go.
const vmEnv = "BRIDGETOLL_VM"

// TestSwarm's kernel may lack IPVS and ESP.
func TestFullKernel(t *testing.T) {
	if os.Getenv(vmEnv) == "" || os.Getenv(besideEnv) != "" {
		t.Skip("make test-vm-swarm runs it, under a kernel with IPVS and ESP")
	}
	tester, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// dockerd in a namespace does not set it for the mesh's namespace, which inherits it from the
	// machine's first one.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, pathtest.Engine{Name: "installed"}, 2, 1)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the engines' last words:\n%s\n%s", c.log(1), c.log(2))
		}
	})
	before := c.run(t, 1, "sh", "-c", left)
	for _, program := range []string{tester, "toll"} {
		c.run(t, 2, "sh", "-c", program+" image | docker load")
	}

	t.Run("conformance", func(t *testing.T) {
		c.test(t, tester, "^TestMeshAndEncryption$")
		c.isAs(t, before, "the conformance suite")
	})

	t.Run("compare", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "results")
		code, out, errOut := c.toll(t, 1, "toll", "compare", "host", "publish-ingress",
			"overlay-encrypted", "--on", "swarm",
			"--rounds", "1", "--window", "500ms", "--load", "bulk,rr", "--save", file)
		if code != 0 {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		r := read(t, file)
		counted := map[string]map[string]bool{}
		for _, v := range r.Visits {
			cell := r.Header.Plan.Cells[v.Cell]
			if !r.Header.Plan.Counts(v) {
				t.Errorf("%+v: %s%s", cell, v.Failure, v.Witness.Evidence)
			}
			for _, h := range v.Hops {
				if counted[h.Kind] == nil {
					counted[h.Kind] = map[string]bool{}
				}
				if c := h.After.Sub(h.Before); c.Hits > 0 ||
					c.ForwardBytes > 0 && c.BackwardBytes > 0 {
					counted[h.Kind][fmt.Sprint(cell.Mode, " ", cell.From, " ", cell.Load)] = true
				}
			}
		}
		for hop, cells := range map[mode.HopKind][]string{
			mode.HopIPVS: {"publish-ingress remote bulk", "publish-ingress remote rr",
				"publish-ingress remote-container bulk", "publish-ingress remote-container rr"},
			mode.HopESP: {"overlay-encrypted remote-container bulk",
				"overlay-encrypted remote-container rr"},
		} {
			if got := slices.Sorted(maps.Keys(counted[string(hop)])); !slices.Equal(got, cells) {
				t.Errorf("%s counted in %q, want %q", hop, got, cells)
			}
		}
		if t.Failed() {
			t.Logf("%s%s", out, errOut)
		}
		c.isAs(t, before, "a comparison")
	})

	t.Run("mesh", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "results")
		code, out, errOut := c.toll(t, 1, "toll", "mesh", "--mode", "overlay-encrypted", "--rounds",
			"1", "--window", "200ms", "--save", file)
		if code != 0 {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		visits := read(t, file).Pairs
		for _, v := range visits {
			if v.Failure != "" || v.Value == 0 {
				t.Errorf("%+v", v)
			}
		}
		if len(visits) != 3 || t.Failed() { // rr, and bulk in both directions
			t.Errorf("%d visits\n%s%s", len(visits), out, errOut)
		}
		c.isAs(t, before, "a mesh")
	})
}

func read(t *testing.T, file string) *sample.File {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := sample.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMeshAndEncryption(t *testing.T) {
	if os.Getenv(besideEnv) == "" || os.Getenv(vmEnv) == "" {
		t.Skip("TestFullKernel runs it on a node")
	}
	pathtest.ExchangeLess(10) // every byte is emulated
	s := &Swarm{Version: testVersion}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	truth := map[mode.Name]func(*testing.T, *path.Path){
		mode.PublishIngress: balanced, mode.OverlayEncrypted: veiled}
	for name := range truth { // the services and their agents stay for the whole run
		m, _ := mode.Find(name)
		for _, r := range m.Routes {
			var u *machine.UnsupportedError
			if err := s.Check(t.Context(), path.Spec{Mode: name, From: r.From, To: r.To}); err != nil && (!errors.As(err, &u) || !onOneMachine(u)) {
				t.Fatal(err)
			}
		}
	}
	o := promises(s)
	for o.Only, o.Truth = range truth {
		pathtest.Run(t, s, o)
	}
}

// This is the server's node.
func balanced(t *testing.T, p *path.Path) {
	const ofMesh = dockerNetns + "/ingress_sbox"
	stats := func() (connections, in, out int64) {
		// Single CPUs' values are exact; the sums are updated every two seconds.
		b, err := exec.Command("nsenter", "--net="+ofMesh, "cat",
			"/proc/net/ip_vs_stats_percpu").Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			// In hexadecimal: the CPU, connections, packets each way, bytes each way.
			var cpu, n, packets, i, o int64
			if _, err := fmt.Sscanf(line, "%x %x %x %x %x %x", &cpu, &n, &packets, &packets, &i, &o); err == nil {
				connections, in, out = connections+n, in+i, out+o
			}
		}
		return connections, in, out
	}
	connections, in, out := stats()
	tr := pathtest.Exchange(t, p)
	defer tr.Stop()
	c, i, o := stats()
	if m := tr.Moved[0]; c-connections != 1 || i-in < m.Forward || o-out < m.Backward {
		t.Errorf("IPVS counted %d connections, %d bytes in, %d out; moved %+v", c-connections, i-in,
			o-out, m)
	}
}

// This is the server's node: only ESP may be on its wire.
func veiled(t *testing.T, p *path.Path) {
	nft := func(args ...string) []byte {
		out, err := exec.Command("nft", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("nft %v: %v\n%s", args, err, out)
		}
		return out
	}
	nft(`table netdev seen {
		counter clear {}
		counter in {}
		counter out {}
		chain in { type filter hook ingress device "eth0" priority 0; ip protocol esp counter name "in"; udp dport 4789 counter name "clear"; }
		chain out { type filter hook egress device "eth0" priority 0; ip protocol esp counter name "out"; udp dport 4789 counter name "clear"; }
	}`)
	defer nft("delete", "table", "netdev", "seen")
	tr := pathtest.Exchange(t, p)
	defer tr.Stop()
	var listed struct {
		Nftables []struct {
			Counter struct {
				Name           string
				Packets, Bytes int64
			}
		}
	}
	if err := json.Unmarshal(nft("-j", "list", "counters", "table", "netdev", "seen"), &listed); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int64{}
	for _, n := range listed.Nftables {
		seen[n.Counter.Name] = n.Counter.Bytes
	}
	if m := tr.Moved[0]; seen["in"] < m.Forward || seen["out"] < m.Backward || seen["clear"] != 0 {
		t.Errorf("bytes in ESP: %d in, %d out; in clear tunnels: %d; moved %+v", seen["in"],
			seen["out"], seen["clear"], m)
	}
}
