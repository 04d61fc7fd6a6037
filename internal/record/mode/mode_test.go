package mode

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

var (
	kinds = []HopKind{HopLoopback, HopWire, HopVeth, HopBridge, HopDNAT, HopSNAT, HopProxy, HopIPVS,
		HopAccept,
		HopMacvlan, HopIPvlan, HopOVS, HopVXLAN, HopESP, HopNetkit, HopTunnel, HopTap,
		HopRootlessKit, HopRootlessPort, HopPasta,
		HopSlirp, HopGvisor}
	// devices gives a container a network of its own.
	devices = []HopKind{HopVeth, HopMacvlan, HopIPvlan, HopNetkit, HopTap}
)

// widestLabel is the tables' width for a row's name.
const widestLabel = 26

func TestCatalogueIsComplete(t *testing.T) {
	safe := regexp.MustCompile(`^[a-z][a-z0-9-]*(\+links)?$`)
	seen := map[Name]bool{}
	for _, m := range catalogue {
		t.Run(string(m.Name), func(t *testing.T) {
			if seen[m.Name] {
				t.Errorf("%s is there twice", m.Name)
			}
			seen[m.Name] = true
			if !safe.MatchString(string(m.Name)) {
				t.Errorf("name %q does not match %s", m.Name, safe)
			}
			for what, s := range map[string]string{"summary": m.Summary, "Docker's words": m.Docker,
				"what it gives up": m.GivesUp()} {
				if s == "" || s != strings.Join(strings.Fields(s), " ") {
					t.Errorf("%s: %q", what, s)
				}
			}
			if len(m.Routes) == 0 {
				t.Error("it has no route")
			}
			if six := slices.ContainsFunc(m.Routes, func(r Route) bool {
				return r.To.Six()
			}); six != (m.No6 == "") {
				t.Errorf("a route over IPv6: %t, but %q", six, m.No6)
			}
			for _, a := range m.Apart {
				if a.Why == "" || a.Around == "" || !slices.Contains(Placements(), a.From) {
					t.Errorf("apart: %+v", a)
				}
				if slices.ContainsFunc(m.RoutesFrom(a.From), func(r Route) bool {
					return !r.To.Outside()
				}) {
					t.Errorf("it is reached from %s, and it is not", a.From)
				}
				if why, around := m.WhyNot(a.From); why != a.Why || around != a.Around {
					t.Errorf("WhyNot(%s) = %q, %q", a.From, why, around)
				}
			}
		})
	}
}

func TestRoutesAreConsistent(t *testing.T) {
	for _, m := range catalogue {
		type route struct {
			from Placement
			to   Target
		}
		seen := map[route]bool{}
		for _, r := range m.Routes {
			t.Run(string(m.Name)+"-"+string(r.From)+"-"+string(r.To), func(t *testing.T) {
				if w := (route{r.From, r.To}); seen[w] {
					t.Error("the route is there twice")
				} else {
					seen[w] = true
				}
				if !slices.Contains(Placements(), r.From) || !slices.Contains(targets, r.To) {
					t.Errorf("unknown placement or target: %s, %s", r.From, r.To)
				}
				if len(r.Hops) == 0 {
					t.Fatal("it has no hop, so nothing can prove it")
				}
				for _, h := range r.Hops {
					if !slices.Contains(kinds, h) {
						t.Errorf("unknown hop %q", h)
					}
				}
				checkHops(t, m, r)
				phrase := m.Phrase(r.From, r.To, "")
				if r.To.Outside() && strings.HasPrefix(phrase, "-p") {
					t.Errorf("no port is published on the way out: %q", phrase)
				}
				if l := m.Label(r.From, r.To, ""); utf8.RuneCountInString(l) > widestLabel {
					t.Errorf("%s is wider than the %d columns that tables have", l, widestLabel)
				}
			})
		}
	}
}

func checkHops(t *testing.T, m Mode, r Route) {
	t.Helper()
	first, last := r.Hops[0], r.Hops[len(r.Hops)-1]
	// The client's machine rewrites a ClusterIP before the wire.
	if r.From == FromRemote && first != HopWire && m.Name != ClusterIP {
		t.Errorf("from %s, but the first hop is %s", r.From, first)
	}
	remote := r.From == FromRemote || r.From == FromRemoteContainer || r.To.Outside()
	// A VEPA switch is beyond the wire.
	if slices.Contains(r.Hops, HopWire) != remote && m.Name != MacvlanVEPA {
		t.Errorf("from %s by %s", r.From, r)
	}
	if r.To.Outside() { // the container is the client
		if last != HopWire {
			t.Errorf("%s ends before the wire", r)
		}
		first, last = last, first
	}
	relayed := m.Rootless && last == HopLoopback // into a namespace of its own
	rootless := m.Name == Host && last == HopTap // whose host network is its own
	if m.PortIsolation() != (slices.Contains(devices, last) || relayed) && !rootless {
		t.Errorf("port isolation %t, but the server's hop is %s", m.PortIsolation(), last)
	}
	if m.PortIsolation() && !r.To.Outside() && (r.From == FromContainer || r.From == FromRemoteContainer) &&
		first != last {
		t.Errorf("the client's container sends through %s first, the server's has %s", first, last)
	}
	if slices.Index(r.Hops, HopLoopback) > 0 && !m.Rootless {
		t.Errorf("%s: loopback only comes first", r)
	}
	if m.Name == Publish || m.Name == PublishDefault { // the route decides
		if slices.Contains(r.Hops, HopProxy) == slices.Contains(r.Hops, HopDNAT) {
			t.Errorf("%s has the hops %s", m.Name, r)
		}
		return
	}
	if r.To.Outside() {
		return
	}
	for hop, of := range map[HopKind][]Name{HopProxy: {PublishProxy, RootlessPublish},
		HopDNAT: {PublishNAT, RootlessPublishNAT, RootlessPublishTap, PublishIngress, NATAlias,
			ClusterIP,
			HostPort, NodePort, NodePortLocal}, HopIPVS: {PublishIngress}} {
		if slices.Contains(r.Hops, hop) != slices.Contains(of, m.Name) {
			t.Errorf("%s has the hops %s", m.Name, r)
		}
	}
}

func TestWays(t *testing.T) {
	for _, m := range catalogue {
		for _, r := range m.Otherwise {
			checkHops(t, m, r)
			ways := m.RoutesTo(r.From, r.To)
			same := func(o Route) bool { return o.String() == r.String() }
			if usual, ok := m.Route(r.From, r.To); !ok || ways[0].String() != usual.String() ||
				!slices.ContainsFunc(ways[1:], same) || same(usual) {
				t.Errorf("%s from %s to %s: %v", m.Name, r.From, r.To, ways)
			}
		}
		inward := func(r Route) bool { return !r.To.Outside() }
		if has := slices.ContainsFunc(slices.Concat(m.Otherwise, m.Podman), inward); has !=
			(m.Decides != "") {
			t.Errorf("%s: alternatives to an inward route: %t, decided by %q", m.Name, has,
				m.Decides)
		}
		if w := m.RoutesTo("nowhere", ToLoopback); w != nil {
			t.Errorf("%s: %v", m.Name, w)
		}
	}
}

func TestRouteString(t *testing.T) {
	for _, tt := range []struct {
		name string
		hops []HopKind
		want string
	}{
		{"none", nil, ""},
		{"one", []HopKind{HopLoopback}, "lo"},
		{"many", []HopKind{HopWire, HopDNAT, HopSNAT, HopBridge, HopVeth},
			"wire·DNAT·MASQ·bridge·veth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (Route{Hops: tt.hops}).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	for _, tt := range []struct {
		mode       Name
		placements []Placement
		from       Placement
		targets    []Target
	}{
		{Native, []Placement{FromHost, FromRemote}, FromContainer, nil},
		{Native, []Placement{FromHost, FromRemote}, FromHost,
			[]Target{ToLoopback, ToOutside, ToLoopback6, ToOutside6}},
		{MacvlanPrivate, []Placement{FromRemote, FromRemoteContainer, FromContainer},
			FromContainer, []Target{ToOutside, ToOutside6}},
		{Shared, []Placement{FromContainer}, FromContainer, []Target{ToLoopback, ToLoopback6}},
		{Bridge, []Placement{FromHost, FromContainer}, FromHost,
			[]Target{ToContainer, ToContainer6}},
		{PublishNAT, []Placement{FromHost, FromContainer, FromRemote, FromRemoteContainer},
			FromHost, []Target{ToLoopback, ToAddress, ToAddress6}},
		{PublishProxy, []Placement{FromHost, FromContainer, FromRemote}, FromHost,
			[]Target{ToLoopback, ToLoopback6, ToAddress6}},
	} {
		t.Run(string(tt.mode), func(t *testing.T) {
			m, ok := Find(tt.mode)
			if !ok || m.Name != tt.mode {
				t.Fatalf("found %q, %t", m.Name, ok)
			}
			if got := m.Placements(); !slices.Equal(got, tt.placements) {
				t.Errorf("placements %v, want %v", got, tt.placements)
			}
			var got []Target
			for _, r := range m.RoutesFrom(tt.from) {
				got = append(got, r.To)
				if one, ok := m.Route(r.From, r.To); !ok || one.String() != r.String() {
					t.Errorf("Route(%s, %s) = %s, %t", r.From, r.To, one, ok)
				}
			}
			if !slices.Equal(got, tt.targets) {
				t.Errorf("targets from %s: %v, want %v", tt.from, got, tt.targets)
			}
			if r, ok := m.Route("nowhere", ToLoopback); ok {
				t.Errorf("a route from nowhere: %s", r)
			}
		})
	}
	if m, ok := Find("no-such-mode"); ok {
		t.Errorf("found %q", m.Name)
	}
}

func TestLabel(t *testing.T) {
	for _, tt := range []struct {
		name string
		mode Name
		from Placement
		to   Target
		tune Tunes
		want string
	}{
		{"one-target", Bridge, FromHost, ToContainer, "", "bridge"},
		{"not-reached", Shared, FromRemote, ToAddress, "", "shared"},
		{"loopback", PublishNAT, FromHost, ToLoopback, "", "publish-nat :lo"},
		{"loopback6", PublishProxy, FromHost, ToLoopback6, "", "publish-proxy :lo6"},
		{"address", PublishNAT, FromHost, ToAddress, "", "publish-nat :addr"},
		{"over-ipv6", Bridge, FromHost, ToContainer6, "", "bridge :ctr6"},
		{"loopback-over-ipv6", Host, FromHost, ToLoopback6, "", "host :lo6"},
		{"host-is-unnamed-still", Host, FromHost, ToLoopback, "", "host"},
		{"one-target-from-there", PublishNAT, FromContainer, ToAddress, "", "publish-nat"},
		{"outward", Bridge, FromContainer, ToOutside, "", "bridge :out"},
		{"tuned", Bridge, FromHost, ToContainer, "mtu=9000", "bridge+mtu=9000"},
		{"tuned-target", PublishNAT, FromHost, ToLoopback, "gro=on+rps=on",
			"publish-nat :lo+gro=on+rps=on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := Find(tt.mode)
			if got := m.Label(tt.from, tt.to, tt.tune); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestLabelsAreUnique(t *testing.T) {
	for _, from := range Placements() {
		seen := map[string]bool{}
		for _, m := range catalogue {
			for _, r := range m.RoutesFrom(from) {
				l := m.Label(r.From, r.To, "")
				if seen[l] {
					t.Errorf("from %s, %s is there twice", from, l)
				}
				seen[l] = true
			}
		}
	}
}

func TestShort(t *testing.T) {
	seen := map[string]Target{}
	for _, to := range targets {
		s := to.Short()
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s are both %q", to, other, s)
		}
		seen[s] = to
		if !strings.HasPrefix(s, ":") {
			t.Errorf("%s is %q", to, s)
		}
	}
}

func TestParse(t *testing.T) {
	const modesHint = "toll modes lists all modes"
	name := func(s string) (string, error) { v, err := ParseName(s); return string(v), err }
	placement := func(s string) (string, error) {
		v, err := ParsePlacement(s)
		return string(v), err
	}
	server := func(s string) (string, error) { v, err := OfServers.Parse(s); return string(v), err }
	target := func(s string) (string, error) { v, err := ParseTarget(s); return string(v), err }
	for _, tt := range []struct {
		name  string
		parse func(string) (string, error)
		word  string
		fails string // "": parsed
		hint  string
	}{
		{"mode", name, "publish-nat", "", ""},
		{"mode-unknown", name, "brigde", `unknown mode "brigde"`, "did you mean bridge?"},
		{"mode-empty", name, "", `unknown mode ""`, modesHint},
		{"mode-case", name, "Bridge", `unknown mode "Bridge"`, "did you mean bridge?"},
		{"placement", placement, "remote", "", ""},
		{"placement-misspelt", placement, "remote-contaner", `unknown placement "remote-contaner"`,
			"did you mean remote-container?"},
		{"placement-unknown", placement, "moon", `unknown placement "moon"`,
			"placements are: host, container, remote, remote-container"},
		{"server", server, "host", "", ""},
		{"server-container", server, "container:shop", "", ""},
		{"server-network", server, "network:my_net", "", ""},
		{"server-no-name", server, "container:", `unknown placement "container:"`,
			"did you mean container:NAME?"},
		{"server-moon", server, "moon", `unknown placement "moon"`,
			"placements are: host, container:NAME, network:NAME, remote"},
		{"server-no-mode", server, "container", `unknown placement "container"`,
			"did you mean container:NAME?"},
		{"placement-no-server", placement, "network:n", `unknown placement "network:n"`,
			"placements are: host, container, remote, remote-container"},
		{"target", target, "loopback6", "", ""},
		{"target-localhost", target, "localhost", `unknown target "localhost"`,
			"did you mean loopback?"},
		{"target-moon", target, "moon", `unknown target "moon"`,
			"targets are: loopback, loopback6, address, address6, container, container6, " +
				"outside, outside6"},
		{"target-container", target, "container6", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.parse(tt.word)
			if tt.fails == "" {
				if err != nil || got != tt.word {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			var u *suggest.UnknownError
			if !errors.As(err, &u) {
				t.Fatalf("got %q, error %v: want a *suggest.UnknownError", got, err)
			}
			if got != "" || err.Error() != tt.fails || u.Hint() != tt.hint {
				t.Errorf("got %q, error %q, hint %q; want error %q, hint %q", got, err, u.Hint(),
					tt.fails, tt.hint)
			}
		})
	}
}

func TestNamesFollowTheCatalogue(t *testing.T) {
	names := Names()
	if len(names) != len(catalogue) {
		t.Fatalf("%d names, %d modes", len(names), len(catalogue))
	}
	for i, n := range names {
		if n != catalogue[i].Name {
			t.Errorf("name %d is %s, want %s", i, n, catalogue[i].Name)
		}
		if got, err := ParseName(string(n)); got != n || err != nil {
			t.Errorf("ParseName(%q) = %q, %v", n, got, err)
		}
	}
}

func TestFamilies(t *testing.T) {
	for _, to := range targets {
		if to.Six() == to.Four() || to.Over6().Over4() != to.Over4() || !to.Over6().Six() ||
			!to.Over4().Four() {
			t.Errorf("%s: %s, %s", to, to.Over4(), to.Over6())
		}
	}
}

// docker-proxy at ::1, a default, is measured without a request for IPv6.
func TestRoutesOverIPv6(t *testing.T) {
	for _, m := range catalogue {
		for i, r := range m.Routes {
			four, ok := m.Route(r.From, r.To.Over4())
			if r.To.Four() || !ok {
				continue
			}
			if four.String() != r.String() && !slices.Contains([]Name{PublishProxy, Publish,
				PublishDefault}, m.Name) {
				t.Errorf("%s from %s: %s, and %s over IPv6", m.Name, r.From, four, r)
			}
			if at := slices.IndexFunc(m.Routes, func(o Route) bool {
				return o.From == r.From && o.To == four.To
			}); at > i {
				t.Errorf("%s from %s: IPv6 comes first", m.Name, r.From)
			}
			if usual := r.To == ToLoopback6 && slices.Contains([]Name{Publish, PublishDefault, PublishProxy, Fast, FastLinks}, m.Name); r.OnRequest() == usual {
				t.Errorf("%s from %s to %s: on request: %t", m.Name, r.From, r.To, r.OnRequest())
			}
		}
	}
}

// A placement with only an outward route does not reach the mode.
func TestWhyNotInward(t *testing.T) {
	m, _ := Find(Pasta)
	if got, around := m.WhyNot(FromContainer); got != "there is no such path: it can be reached "+
		"from host, remote" || around != "--from host" {
		t.Errorf("%s, %s", got, around)
	}
}

func TestPhrase(t *testing.T) {
	for _, tt := range []struct {
		mode Name
		to   Target
		want string
	}{
		{Bridge, ToContainer, "--network NAME"},
		{Bridge, ToContainer6, "--network NAME IPv6"},
		{Host, ToLoopback6, "--network host ::1"},
		{PublishNAT, ToAddress6, "-p own IPv6 (NAT)"},
		{PublishProxy, ToLoopback, "-p 127.0.0.1 (proxy)"},
		{Host, ToOutside, "--network host outward"},
		{Pasta, ToOutside6, "--network pasta outward IPv6"},
		{RootlessPublish, ToOutside, "--network NAME outward (rootless)"},
	} {
		m, _ := Find(tt.mode)
		if got := m.Phrase(FromHost, tt.to, ""); got != tt.want {
			t.Errorf("%s to %s: %q, want %q", tt.mode, tt.to, got, tt.want)
		}
	}
}

func TestFits(t *testing.T) {
	for _, tt := range []struct {
		mode Name
		from Placement
		to   Target
		hops []HopKind
		want bool
	}{
		{Bridge, FromContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopVeth}, true},
		{Bridge, FromContainer, ToContainer, []HopKind{HopVeth, HopVeth}, false},
		{Publish, FromHost, ToAddress, []HopKind{HopDNAT, HopSNAT, HopBridge, HopVeth}, true},
		{Pod, FromRemoteContainer, ToContainer,
			[]HopKind{HopVeth, HopBridge, HopWire, HopBridge, HopVeth}, true},
		{Pod, FromRemoteContainer, ToContainer,
			[]HopKind{HopVeth, HopVXLAN, HopWire, HopVXLAN, HopVeth}, true},
		{Pod, FromRemoteContainer, ToContainer,
			[]HopKind{HopVeth, HopTunnel, HopWire, HopTunnel, HopVeth}, true},
		{Pod, FromRemoteContainer, ToContainer, []HopKind{HopNetkit, HopWire, HopNetkit}, true},
		{Pod, FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopVeth}, true},
		{Pod, FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopBridge, HopWire}, false},
		{Pod, FromRemoteContainer, ToContainer, []HopKind{HopVeth, HopProxy, HopVeth}, false},
		{Pod, FromRemoteContainer, ToContainer, nil, false},
		{ClusterIP, FromRemote, ToContainer, []HopKind{HopWire, HopVeth}, true},
		{ClusterIP, FromRemote, ToAddress, []HopKind{HopWire, HopVeth}, false},
	} {
		m, _ := Find(tt.mode)
		if got := m.Fits(tt.from, tt.to, tt.hops); got != tt.want {
			t.Errorf("%s from %s to %s by %v: %t", tt.mode, tt.from, tt.to, tt.hops, got)
		}
	}
}
