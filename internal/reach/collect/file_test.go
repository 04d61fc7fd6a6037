package collect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/reach/replica"
)

func TestSaveLoad(t *testing.T) {
	m := &replica.Machine{Arch: runtime.GOARCH, Kernel: "6.18.44", Spaces: []replica.Space{{
		ID: "net:[4026531840]", Text: []replica.RuleText{{Table: "filter", Chain: "INPUT",
			Number: 1, Text: "-A INPUT -j DROP"}}}}}
	f := &ports.Facts{Docker: "28.5.2", Copy: &ports.Copy{Machine: m},
		Proxies:    []ports.Proxy{{PID: 7, Command: []string{"rootlesskit", "--secret"}}},
		Containers: []ports.Container{{Name: "web\x1b[2J", LastLog: "the password is secret"}}}
	var b bytes.Buffer
	if err := Save(t.Context(), &b, f); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "secret") {
		t.Errorf("logs or command lines are in %s", &b)
	}
	got, back, err := Load(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got.Docker != "28.5.2" || got.Proxies[0].PID != 7 || !reflect.DeepEqual(m, back) {
		t.Errorf("%+v %+v", got, back)
	}
	if got, want := got.Containers[0].Name, `web\x1b[2J`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if f.Containers[0].LastLog == "" || f.Proxies[0].Command == nil {
		t.Error("saving changed the facts")
	}
}

// A machine that would be judged for minutes is refused at once, with the number.
func TestLoadLarge(t *testing.T) {
	m := func() *replica.Machine {
		return &replica.Machine{Arch: runtime.GOARCH, Spaces: []replica.Space{{ID: "net:[1]"}}}
	}
	for says, change := range map[string]func(*ports.Facts, *replica.Machine){
		"it has 10001 listening sockets, and at most 10000 can be judged": func(f *ports.Facts, _ *replica.Machine) {
			f.Listeners = make([]ports.Listener, maxListeners)
			f.Containers = []ports.Container{{Listeners: make([]ports.Listener, 1)}}
		},
		"it has 5001 proxies, and at most 5000 can be judged": func(f *ports.Facts, _ *replica.Machine) {
			f.Proxies = make([]ports.Proxy, maxProxies+1)
		},
		"it has 1201 devices, and at most 1200 can be judged": func(_ *ports.Facts, m *replica.Machine) {
			for i := range maxDevices + 1 {
				m.Spaces[0].Links = append(m.Spaces[0].Links,
					link.Saved{Name: fmt.Sprintf("v%d", i), Index: i + 1, Kind: "veth"})
			}
		},
		"it has 10001 routes, and at most 10000 can be judged": func(_ *ports.Facts, m *replica.Machine) {
			m.Spaces[0].Routes = slices.Repeat([]raw.Message{{Type: unix.RTM_NEWROUTE}}, maxRoutes+1)
		},
		"a text has 8388609 bytes, and at most 8388608 can be judged": func(f *ports.Facts, _ *replica.Machine) {
			f.Docker = strings.Repeat("x", maxText+1)
		},
	} {
		in := saved{Schema: savedSchema, Facts: &ports.Facts{}, Machine: m()}
		change(in.Facts, in.Machine)
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var large tooLarge
		if _, _, err = Load(bytes.NewReader(b)); !errors.As(err, &large) ||
			err.Error() != says {
			t.Errorf("%s: %.200v", says, err)
		}
	}
}

func TestLongestText(t *testing.T) {
	for text, want := range map[string]int{``: 0, `{"a":"bcd"}`: 3, `"a\"bc" "\\"`: 5, `"open`: 0} {
		if n := longestText([]byte(text)); n != want {
			t.Errorf("%s: %d", text, n)
		}
	}
}

func TestLoadOthers(t *testing.T) {
	for text, says := range map[string]string{
		"":   "unexpected end of JSON input",
		"[]": "a JSON array cannot be read as a machine",
		"{}": `its schema is "", not "bridgetoll.machine/1"`,
		`{"schema":"bridgetoll.machine/2"}`: "another version of toll wrote it, as " +
			"bridgetoll.machine/2, and this one reads bridgetoll.machine/1",
		`{"schema":"bridgetoll.machine/1"}`:            "the file holds no machine",
		`{"schema":"bridgetoll.machine/1","facts":{}}`: "the file holds no machine",
	} {
		if _, _, err := Load(strings.NewReader(text)); err == nil ||
			err.Error() != says {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// grown returns saved machines that have much of one thing, but not too much.
func grown(t testing.TB) (out [][]byte) {
	t.Helper()
	for _, change := range []func(*ports.Facts, *replica.Space){
		func(f *ports.Facts, s *replica.Space) {
			for i := range 1000 {
				name := fmt.Sprintf("v%d", i)
				s.Links = append(s.Links, link.Saved{Name: name, Index: i + 2, Kind: "veth",
					ParentSpace: link.Here})
				f.Devices = append(f.Devices, ports.Device{Name: name, Index: i + 2, Kind: "veth"})
			}
		},
		func(f *ports.Facts, _ *replica.Space) {
			for i := range uint16(9000) {
				f.Listeners = append(f.Listeners, ports.Listener{Proto: "tcp", Inode: uint32(i),
					Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), i+1)})
			}
		},
		func(f *ports.Facts, _ *replica.Space) {
			for i := range uint16(4000) {
				at := netip.AddrPortFrom(netip.IPv4Unspecified(), i+1)
				f.Listeners = append(f.Listeners, ports.Listener{Proto: "tcp", Addr: at,
					Owners: []ports.Process{{PID: int(i) + 2, Name: "docker-proxy"}}})
				f.Proxies = append(f.Proxies, ports.Proxy{PID: int(i) + 2, Proto: "tcp", Host: at,
					Container: netip.MustParseAddrPort("172.17.0.2:80")})
			}
		},
		func(f *ports.Facts, _ *replica.Space) {
			for i := range 1000 {
				at := netip.AddrFrom4([4]byte{172, 17, byte(i >> 8), byte(i)})
				f.Containers = append(f.Containers, ports.Container{ID: fmt.Sprint(i), PID: i + 2,
					Name: fmt.Sprint("c", i), Space: fmt.Sprintf("net:[%d]", i+2), State: "running",
					Addrs: []netip.Addr{at}, Published: []ports.Published{{Proto: "tcp", Port: 80,
						Host: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(i)+1)}}})
			}
		},
		func(_ *ports.Facts, s *replica.Space) {
			s.Routes = slices.Repeat([]raw.Message{{Type: unix.RTM_NEWROUTE}}, 9000)
			s.Nft.Messages = slices.Repeat([]raw.Message{{
				Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWRULE}}, 9000)
		},
	} {
		in := saved{Schema: savedSchema, Facts: &ports.Facts{Space: "net:[1]"},
			Machine: &replica.Machine{Arch: runtime.GOARCH, Spaces: []replica.Space{{ID: "net:[1]"}}}}
		change(in.Facts, &in.Machine.Spaces[0])
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// Each grown machine is one that toll judges.
func TestLoadGrown(t *testing.T) {
	for _, b := range grown(t) {
		if _, _, err := Load(bytes.NewReader(b)); err != nil {
			t.Errorf("%.200s: %v", b, err)
		}
	}
}

// A file may come from anyone. Whatever its facts say, judging them ends, and without a panic.
func FuzzLoadMachine(f *testing.F) {
	for _, b := range grown(f) {
		f.Add(b, uint16(80))
	}
	f.Add([]byte(`{"schema":"bridgetoll.machine/1","facts":{},"machine":{"version":1,`+
		`"namespaces":[{}]}}`), uint16(0))
	f.Fuzz(func(t *testing.T, b []byte, port uint16) {
		facts, m, err := Load(bytes.NewReader(b))
		if err != nil {
			return
		}
		if n := len(ports.Judge(facts, port).Ports); n > 2*maxListeners {
			t.Errorf("%d ports", n)
		}
		c := ports.NewCopy(facts, m, port)
		_ = c.Scans()
		dials := c.Dials()
		c.Take(make([]replica.Answer, len(dials)))
		_ = ports.Judge(facts, port)
	})
}
