package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
)

func sampleMachine() *Machine {
	return &Machine{Arch: runtime.GOARCH, Kernel: "6.12.0", Spaces: []Space{{
		ID: "net:[4026531840]", PID: 1,
		Links: []link.Saved{
			{Name: "lo", Index: 1, MTU: 65536, Up: true, ParentSpace: link.Here},
			{Name: "eth0", Index: 2, MTU: 1500, MAC: []byte{2, 0, 0, 0, 0, 1}, Kind: "veth",
				Parent: 7, ParentSpace: link.Elsewhere}},
		Addresses: []raw.Message{{Type: unix.RTM_NEWADDR, Data: []byte{2, 24, 0, 0, 2, 0, 0, 0}}},
		Routes:    []raw.Message{{Type: unix.RTM_NEWROUTE, Data: make([]byte, unix.SizeofRtMsg)}},
		Sysctls:   map[string]string{"net/ipv4/conf/eth0/rp_filter": "2"},
		Nft: nft.Saved{Messages: []raw.Message{{
			Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWTABLE, Data: []byte{2, 0, 0, 0}}}},
		Text: []RuleText{{Table: "ip filter", Chain: "INPUT", Number: 1, Text: "-A INPUT -j DROP"}},
		Unknown: []Unknown{{What: "IPVS service tcp/10.96.0.1:443",
			At: netip.MustParseAddrPort("10.96.0.1:443")}},
	}}}
}

func TestLoadIsWhatWriteWrote(t *testing.T) {
	m := sampleMachine()
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(m); err != nil {
		t.Fatal(err)
	}
	got, err := load(&b)
	if err != nil {
		t.Fatal(err)
	}
	opts := cmp.Options{cmpopts.IgnoreUnexported(Machine{}), cmpopts.EquateComparable(netip.AddrPort{})}
	if diff := cmp.Diff(m, got, opts); diff != "" {
		t.Errorf("-written +loaded:\n%s", diff)
	}
	if got.here {
		t.Error("a file's machine is this one")
	}
	var inside struct{ Machine *Machine }
	text, err := json.Marshal(map[string]any{"Machine": m})
	if err == nil {
		err = json.Unmarshal(text, &inside)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, inside.Machine, opts); diff != "" {
		t.Errorf("in another file (-written +loaded):\n%s", diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, change := range map[string]func(*Machine){
		"no namespace":         func(m *Machine) { m.Spaces = nil },
		"many namespaces":      func(m *Machine) { m.Spaces = make([]Space, maxNamespaces+1) },
		"another architecture": func(m *Machine) { m.Arch = "s390x" },
		"an id":                func(m *Machine) { m.Spaces[0].ID = "../1" },
		"a namespace.s name":   func(m *Machine) { m.Spaces[0].Names = []string{"../x"} },
		"a process":            func(m *Machine) { m.Spaces[0].PID = -1 },
		"a device's name":      func(m *Machine) { m.Spaces[0].Links[1].Name = "../x" },
		"a device's escapes":   func(m *Machine) { m.Spaces[0].Links[1].Name = "\x1b[2J" },
		"a long name":          func(m *Machine) { m.Spaces[0].Links[1].Name = "abcdefghijklmnop" },
		"a name twice":         func(m *Machine) { m.Spaces[0].Links[1].Name = "lo" },
		"an index twice":       func(m *Machine) { m.Spaces[0].Links[1].Index = 1 },
		"a negative index":     func(m *Machine) { m.Spaces[0].Links[1].Index = -1 },
		"a namespace":          func(m *Machine) { m.Spaces[0].Links[1].ParentSpace = 1 },
		"a kind":               func(m *Machine) { m.Spaces[0].Links[1].Kind = "a b" },
		"an MTU":               func(m *Machine) { m.Spaces[0].Links[1].MTU = 1 << 40 },
		"a type":               func(m *Machine) { m.Spaces[0].Routes[0].Type = unix.RTM_NEWLINK },
		"a subsystem":          func(m *Machine) { m.Spaces[0].Nft.Messages[0].Type = unix.RTM_NEWLINK },
		"a long message": func(m *Machine) {
			m.Spaces[0].Addresses[0].Data = make([]byte, maxData+1)
		},
		"a parameter": func(m *Machine) {
			m.Spaces[0].Sysctls["net/ipv4/conf/../../../kernel/hostname"] = "1"
		},
		"a value": func(m *Machine) {
			m.Spaces[0].Sysctls["net/ipv4/ip_forward"] = "1; reboot"
		},
	} {
		m := sampleMachine()
		change(m)
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(m); err != nil {
			t.Fatal(err)
		}
		if _, err := load(&b); !errors.Is(err, errInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "{}", "[]", `{"version":1}`, `{"version":2,"namespaces":[{}]}`,
		`{"version":1,"namespaces":[` + strings.Repeat("{},", maxCommas+1) + "{}]}",
		strings.Repeat("[", 1<<20)} {
		if _, err := load(strings.NewReader(text)); err == nil {
			t.Errorf("%.40q is no machine", text)
		}
	}
	other := strings.Replace(string(written(t)), runtime.GOARCH, "s390x", 1)
	if _, err := load(strings.NewReader(other)); err == nil ||
		err.Error() != "not a machine's network that "+runtime.GOARCH+" can copy: it comes from s390x" {
		t.Errorf("the error does not name the architecture: %v", err)
	}
}

func written(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(sampleMachine()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func load(r io.Reader) (*Machine, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	m := &Machine{}
	return m, m.UnmarshalJSON(b)
}

// grown returns machines with much of one thing: devices, routes, rules or namespaces.
func grown(t testing.TB) (out [][]byte) {
	t.Helper()
	for _, change := range []func(*Machine){
		func(m *Machine) {
			for i := range 1000 {
				l := m.Spaces[0].Links[1]
				l.Name, l.Index = fmt.Sprintf("v%d", i), 1000+i
				m.Spaces[0].Links = append(m.Spaces[0].Links, l)
			}
		},
		func(m *Machine) { m.Spaces[0].Routes = slices.Repeat(m.Spaces[0].Routes, 5000) },
		func(m *Machine) {
			m.Spaces[0].Nft.Messages = slices.Repeat(m.Spaces[0].Nft.Messages, 5000)
		},
		func(m *Machine) {
			for len(m.Spaces) < maxNamespaces {
				m.Spaces = append(m.Spaces, Space{ID: fmt.Sprintf("net:[%d]", len(m.Spaces))})
			}
		},
	} {
		m := sampleMachine()
		change(m)
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(m); err != nil {
			t.Fatal(err)
		}
		if _, err := load(bytes.NewReader(b.Bytes())); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Bytes())
	}
	return out
}

func FuzzLoad(f *testing.F) {
	f.Add(written(f))
	for _, b := range grown(f) {
		f.Add(b)
	}
	f.Add([]byte(`{"version":1,"architecture":"amd64","namespaces":[null]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := load(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, s := range m.Spaces {
			for _, a := range s.Addresses {
				if x, ok := link.ParseAddress(a); ok && !x.Prefix.IsValid() {
					t.Errorf("%v", x)
				}
			}
			for _, r := range append(s.Routes, s.Nexthops...) {
				_ = fmt.Sprint(link.ParseHops(r), link.IsDefault(r))
			}
		}
		if err := json.NewEncoder(&bytes.Buffer{}).Encode(m); err != nil {
			t.Error(err)
		}
	})
}
