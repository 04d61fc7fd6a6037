package lab

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

var golden = testgolden.Check

func TestMain(m *testing.M) {
	pathtest.Main()
	if len(os.Args) > 1 && os.Args[1] == hostsEnd {
		text, err := os.ReadFile(hostsFile)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(string(text))
		os.Exit(0)
	}
	if ours, err := Inner(os.Args[1:]); ours {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if vm() {
		pathtest.ExchangeLess(10) // every byte is emulated
	}
	os.Exit(m.Run())
}

func mayBuild() bool {
	l := &Lab{}
	defer l.Close()
	return l.MayBuild()
}

func started(t *testing.T, l *Lab) *Lab {
	t.Helper()
	needLab(t)
	l.MayBuild()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func needLab(t *testing.T) {
	t.Helper()
	if !mayBuild() {
		pathtest.SkipOrFail(t, "network namespaces need root here")
	}
}

// TestConformanceOfEngines covers the modes whose hops or guards are an engine's rules, but for
// bothWays, whose rules publish-nat and publish-proxy have.
func TestConformanceOfEngines(t *testing.T) {
	for _, engine := range mode.Engines {
		if engine == mode.DefaultEngine {
			continue // TestConformance
		}
		for _, m := range []mode.Name{mode.PublishNAT, mode.PublishProxy, mode.Bridge, mode.Routed,
			mode.Link, mode.NATAlias, mode.Fast} {
			t.Run(engine+"/"+string(m), func(t *testing.T) {
				l := started(t, &Lab{Engine: engine, Ports: 2})
				pathtest.Run(t, l, pathtest.Options{Models: true, Only: m, Around: around,
					Lacks: kernelLacks, Leave: asLonger, Short: true})
			})
		}
	}
}

// make test-kernels has each route alone, over UDP and with crowds.
func TestConformance(t *testing.T) {
	l := started(t, &Lab{})
	pathtest.Run(t, l, pathtest.Options{Models: true, Truth: truthOf(l), Around: around,
		Lacks: kernelLacks, Brief: bothWays, Leave: asLonger, Usual: !vm()})
}

// Longer routes cover these on emulated CPUs. make test-kernels has all.
func asLonger(m mode.Name, r mode.Route) bool {
	if !pathtest.Emulated() || r.From == mode.FromRemoteContainer {
		return false
	}
	known, _ := mode.Find(m)
	return r.From == mode.FromRemote && pathtest.Longest(known).From == mode.FromRemoteContainer ||
		m == mode.IPvlanL3 || m == mode.IPvlanL3S
}

// bothWays consist of publish-nat and publish-proxy.
var bothWays = []mode.Name{mode.Publish, mode.PublishDefault}

func TestConformanceWithoutProxy(t *testing.T) {
	l := started(t, &Lab{ProxyPath: noProxy})
	m, _ := mode.Find(mode.PublishDefault)
	for _, r := range m.Otherwise {
		if r.To.Six() { // publish-nat measures those of networks with IPv6
			continue
		}
		spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
		if err := l.Check(t.Context(), spec); err != nil {
			pathtest.SkipOrFail(t, "%s: %v", spec, err)
		}
		p := build(t, l, spec)
		if got := p.Route(0); got.String() != r.String() {
			t.Errorf("%s by %s, the catalogue says %s", spec, got, r)
		}
		pathtest.CarriesTwice(t, p)
	}
	for spec, want := range map[path.Spec]string{
		{Mode: mode.Publish, From: mode.FromHost, To: mode.ToLoopback6}:     "with --proxy off the lab's Docker starts no docker-proxy",
		{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback}: "with --proxy off the lab's Docker starts no docker-proxy",
	} {
		var u *machine.UnsupportedError
		if err := l.Check(t.Context(), spec); !errors.As(err, &u) || u.Missing != want {
			t.Errorf("%s: %q, want %q", spec, err, want)
		}
	}
}

func vm() bool { return os.Getenv("BRIDGETOLL_VM") != "" }

var (
	kernelOption  = regexp.MustCompile(`CONFIG_[A-Z0-9_]+`)
	kernelVersion = regexp.MustCompile(`Linux (\d+)\.(\d+)`)
)

func olderThan(missing string) bool {
	need := kernelVersion.FindStringSubmatch(missing)
	if need == nil {
		return false
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	var major, minor int
	if _, scanErr := fmt.Sscanf(string(release), "%d.%d", &major, &minor); err != nil ||
		scanErr != nil {
		return false
	}
	wantMajor, _ := strconv.Atoi(need[1])
	wantMinor, _ := strconv.Atoi(need[2])
	return major < wantMajor || major == wantMajor && minor < wantMinor
}

// kernelLacks looks for the refusal's release, or its option in the kernel's configuration.
func kernelLacks(u *machine.UnsupportedError) bool {
	if olderThan(u.Missing) {
		return true
	}
	if vm() && slices.ContainsFunc(strings.Fields(os.Getenv("BRIDGETOLL_VM_LACKS")),
		func(o string) bool {
			return slices.Contains(kernelOption.FindAllString(u.Missing, -1), o)
		}) {
		return true
	}
	if strings.HasPrefix(u.Missing, rootless.Tun) {
		f, err := os.OpenFile(rootless.Tun, os.O_RDWR, 0)
		if err == nil {
			f.Close()
		}
		return err != nil
	}
	if u == rootless.ErrHostLoopback || strings.Contains(u.Missing, rootless.Passt2023) { // TestLostAnswers
		return true
	}
	if strings.HasPrefix(u.Missing, rootless.RootlessPort) {
		_, err := exec.LookPath("podman")
		return err != nil
	}
	if strings.HasPrefix(u.Missing, rootless.RootlessKit) { // older than 3
		said, err := exec.Command(rootless.RootlessKit, "--help").Output()
		return err == nil && !strings.Contains(string(said), rootless.Gvisor)
	}
	if strings.HasPrefix(u.Missing, "docker-proxy") { // older than 28
		said, _ := exec.Command("docker-proxy", "--help").CombinedOutput()
		return !strings.Contains(string(said), "use-listen-fd")
	}
	f, err := os.Open("/proc/config.gz")
	if err != nil {
		return false
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return false
	}
	config, err := io.ReadAll(z)
	if err != nil {
		return false
	}
	for _, o := range kernelOption.FindAllString(u.Missing, -1) {
		if !regexp.MustCompile(`(?m)^` + o + `=[ym]$`).Match(config) {
			return true
		}
	}
	return false
}

func TestConformanceOwnProxy(t *testing.T) {
	l := started(t, &Lab{ProxyPath: ownProxy})
	p, err := l.Build(context.Background(),
		path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback6})
	if err != nil {
		t.Fatal(err)
	}
	if name := p.Proxies[0].Name; !strings.HasPrefix(name, "toll's own") {
		t.Errorf("proxy %q", name)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	pathtest.Run(t, l, pathtest.Options{Only: mode.PublishProxy, Truth: truthOf(l), Around: around,
		Short: true})
}

// around bypasses a published port by the container's own address, or loopback by the machine's.
func around(t *testing.T, p *path.Path) (pathtest.Traffic, bool) {
	t.Helper()
	home := tollNet
	if p.Spec.Mode == mode.PublishDefault {
		home = docker0
	}
	container := netip.AddrPortFrom(home.nth(firstDocker).Addr(), serverPort)
	published := netip.AddrPortFrom(outer.nth(machineA).Addr(), publishedPort)
	if recipe.Dual(p.Spec) {
		container = netip.AddrPortFrom(home.nth6(firstDocker).Addr(), serverPort)
	}
	switch {
	case slices.Contains(bothWays, p.Spec.Mode) && p.Spec.From == mode.FromHost &&
		p.Spec.To != mode.ToAddress:
		return pathtest.ExchangeAt(t, p, published), true
	case slices.Contains(bothWays, p.Spec.Mode) && p.Spec.From == mode.FromHost && !p.Spec.UDP:
		return pathtest.ExchangeAt(t, p, netip.AddrPortFrom(loopback, publishedPort)), true
	case p.Spec.UDP && strings.Contains(p.Facts["proxy"], rootless.Passt2023): // does not answer elsewhere
	case p.Spec.Mode == mode.Pasta && p.Spec.From == mode.FromHost:
		// pasta splices from a loopback address only
		other := loopback
		if p.Spec.To == mode.ToLoopback || p.Spec.To == mode.ToLoopback6 {
			other = published.Addr()
		}
		return pathtest.ExchangeAt(t, p,
			netip.AddrPortFrom(other, p.Clients[0].Dial.Port())), true
	case p.Spec.Mode == mode.RootlessPublish && !p.Spec.To.Outside(),
		p.Spec.Mode == mode.RootlessPublishNAT && !p.Spec.To.Outside():
		return pathtest.ExchangeAt(t, p, publishPast(t, p, container)), true
	case p.Spec.Mode == mode.NATAlias:
		return pathtest.ExchangeAt(t, p, netip.AddrPortFrom(
			docker0.nth(firstDocker).Addr(), serverPort)), true
	case slices.Contains(bothWays, p.Spec.Mode) && p.Spec.From == mode.FromContainer:
		return pathtest.ExchangeAt(t, p, container), true
	case p.Spec.Mode == mode.PublishProxy && p.Spec.From == mode.FromHost:
		return pathtest.ExchangeAt(t, p, published), true
	case p.Spec.Mode == mode.PublishNAT && (p.Spec.From == mode.FromHost ||
		p.Spec.From == mode.FromContainer),
		p.Spec.Mode == mode.PublishProxy && p.Spec.From == mode.FromContainer:
		return pathtest.ExchangeAt(t, p, container), true
	}
	// In other modes all addresses are behind the same hops.
	return pathtest.Traffic{}, false
}

// The golden files are `nft list ruleset` of real Docker Engines, with bridges renamed. IPv6
// masquerading and DNAT are from `ip6tables-save`, where Docker wrote them by iptables.
func TestRulesAreDockers(t *testing.T) {
	needLab(t)
	if _, err := exec.LookPath("nft"); err != nil {
		pathtest.SkipOrFail(t, "nft is not installed: apt-get install nftables")
	}
	for _, c := range []struct {
		file string
		spec path.Spec
	}{
		{"docker-28.5.2-default.rules", path.Spec{
			Mode: mode.PublishProxy, From: mode.FromContainer, To: mode.ToAddress}},
		{"docker-28.5.2-default.rules", path.Spec{
			Mode: mode.Publish, From: mode.FromContainer, To: mode.ToAddress}},
		{"docker-28.5.2-noproxy.rules", path.Spec{
			Mode: mode.PublishNAT, From: mode.FromContainer, To: mode.ToAddress}},
		{"docker-28.5.2-routed.rules", path.Spec{
			Mode: mode.Routed, From: mode.FromHost, To: mode.ToContainer}},
		{"docker-28.5.2-routed-two.rules", path.Spec{
			Mode: mode.Routed, From: mode.FromContainer, To: mode.ToContainer}},
		{"docker-28.5.2-link.rules", path.Spec{
			Mode: mode.Link, From: mode.FromContainer, To: mode.ToContainer}},
		{"docker-28.5.2-default-crowd.rules",
			path.Spec{Mode: mode.PublishProxy, From: mode.FromContainer, To: mode.ToAddress,
				Servers: 3, Clients: 2}},
		{"docker-28.5.2-noproxy-crowd.rules",
			path.Spec{Mode: mode.PublishNAT, From: mode.FromContainer, To: mode.ToAddress,
				Servers: 3, Clients: 2}},
		{"docker-28.5.2-routed-crowd.rules", path.Spec{
			Mode: mode.Routed, From: mode.FromHost, To: mode.ToContainer, Servers: 3}},
		{"docker-28.5.2-link-crowd.rules", path.Spec{
			Mode: mode.Link, From: mode.FromContainer, To: mode.ToContainer, Servers: 2,
			Clients: 3}},
		{"docker-28.5.2-default-udp.rules", path.Spec{
			Mode: mode.PublishProxy, From: mode.FromContainer, To: mode.ToAddress, UDP: true}},
		{"docker-28.5.2-noproxy-udp.rules", path.Spec{
			Mode: mode.PublishNAT, From: mode.FromContainer, To: mode.ToAddress, UDP: true}},
		{"docker-28.5.2-routed-udp.rules", path.Spec{
			Mode: mode.Routed, From: mode.FromHost, To: mode.ToContainer, UDP: true}},
		{"docker-28.5.2-default-ipv6.rules", path.Spec{
			Mode: mode.PublishProxy, From: mode.FromContainer, To: mode.ToAddress6}},
		{"docker-28.5.2-noproxy-ipv6.rules", path.Spec{
			Mode: mode.PublishNAT, From: mode.FromContainer, To: mode.ToAddress6}},
		{"docker-28.5.2-routed-two-ipv6.rules",
			path.Spec{Mode: mode.Routed, From: mode.FromContainer, To: mode.ToContainer6}},
		{"docker-28.5.2-link-udp.rules", path.Spec{
			Mode: mode.Link, From: mode.FromContainer, To: mode.ToContainer, UDP: true}},
	} {
		t.Run(c.file, func(t *testing.T) { isDockers(t, c.file, &Lab{Engine: mode.Engine28}, c.spec) })
	}
	for _, c := range []struct {
		rules string // of the file's name
		spec  path.Spec
		ports int
	}{
		{"default", path.Spec{Mode: mode.PublishProxy, From: mode.FromContainer,
			To: mode.ToAddress}, 0},
		{"noproxy", path.Spec{Mode: mode.PublishNAT, From: mode.FromContainer,
			To: mode.ToAddress}, 0},
		{"noproxy-ports", path.Spec{Mode: mode.PublishNAT, From: mode.FromContainer,
			To: mode.ToAddress}, 3},
		{"routed", path.Spec{Mode: mode.Routed, From: mode.FromHost, To: mode.ToContainer}, 0},
		{"link", path.Spec{Mode: mode.Link, From: mode.FromContainer, To: mode.ToContainer}, 0},
		{"default-ipv6", path.Spec{Mode: mode.PublishProxy, From: mode.FromContainer,
			To: mode.ToAddress6}, 0},
		{"noproxy-ipv6", path.Spec{Mode: mode.PublishNAT, From: mode.FromContainer,
			To: mode.ToAddress6}, 0},
	} {
		for engine, file := range map[string]string{mode.Engine29: "docker-29.8-",
			mode.NFTables: "docker-29.8-nftables-"} {
			file += c.rules + ".rules"
			t.Run(file, func(t *testing.T) {
				isDockers(t, file, &Lab{Engine: engine, Ports: c.ports}, c.spec)
			})
		}
	}
}

func isDockers(t *testing.T, file string, l *Lab, spec path.Spec) {
	t.Helper()
	var a *space
	l.ProxyPath, l.test.built = ownProxy, func(s *site) { a = s.a.ns }
	build(t, l, spec)
	golden(t, file, normalRules(output(t, a, "nft", "list", "ruleset")))
}

var (
	tableStart = regexp.MustCompile(`(?m)^table (ip6? (?:nat|filter|raw|docker-bridges)) \{\n`)
	chainBody  = regexp.MustCompile(`(?ms)^\t(chain|map) (\S+) \{\n(.*?)^\t\}`)
	element    = regexp.MustCompile(`"\S+" : jump [^ ,\n]+`)
	counterOf  = regexp.MustCompile(`packets \d+ bytes \d+ `)
	commentOf  = regexp.MustCompile(` comment ".*"`)
)

// nft lists states of iptables' conntrack match in the order given, and its own in numeric order.
func normalRules(ruleset string) string {
	var out []string
	starts := tableStart.FindAllStringSubmatchIndex(ruleset, -1)
	for i, at := range starts {
		end := len(ruleset)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		for _, c := range chainBody.FindAllStringSubmatch(ruleset[at[0]:end], -1) {
			body := commentOf.ReplaceAllString(counterOf.ReplaceAllString(c[3], ""), "")
			if c[1] == "map" { // in no order
				body, _, _ = strings.Cut(body, "\t\telements")
				for _, e := range slices.Sorted(slices.Values(element.FindAllString(c[3], -1))) {
					body += "\t\t" + e + "\n"
				}
			}
			out = append(out, fmt.Sprintf("table %s %s %s\n%s", ruleset[at[2]:at[3]], c[1], c[2],
				body))
		}
	}
	slices.Sort(out)
	return strings.ReplaceAll(strings.Join(out, "\n"), "ct state established,related",
		"ct state related,established")
}

func TestBuildFailureUndoes(t *testing.T) {
	needLab(t)
	l := &Lab{ProxyPath: "/bin/false"}
	before := openFiles(t)
	_, err := l.Build(context.Background(),
		path.Spec{Mode: mode.PublishProxy, From: mode.FromHost, To: mode.ToLoopback})
	if want := "build publish-proxy from host to loopback: start proxy /bin/false: wait for it to " +
		"listen: EOF"; err == nil || err.Error() != want {
		t.Errorf("Build = %q, want %q", err, want)
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files were open before, %d after", before, after)
	}
	if _, err := l.Build(context.Background(), path.Spec{Mode: "teleport"}); !errors.Is(err,
		machine.ErrUnsupported) {
		t.Errorf("an unknown mode: %v", err)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

func TestNamespacesHaveAllDevices(t *testing.T) {
	l := started(t, &Lab{})
	for _, s := range []path.Spec{
		{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer},
		{Mode: mode.Overlay, From: mode.FromRemoteContainer, To: mode.ToContainer},
	} {
		t.Run(string(s.Mode), func(t *testing.T) {
			p, err := l.Build(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			all, err := p.Namespaces()
			if err != nil {
				t.Fatal(err)
			}
			type device struct{ namespace, index uint32 }
			seen, at := map[device]bool{}, map[[2]string]bool{}
			for _, n := range all {
				defer n.Close()
				for _, d := range n.Links {
					id := device{d.NetNS, d.Index}
					if d.NetNS == 0 || d.Index == 0 || d.NetNS != n.Links[0].NetNS || seen[id] {
						t.Errorf("device %+v is unknown or listed twice", d)
					}
					seen[id], at[[2]string{d.Where, d.Name}] = true, true
				}
			}
			for _, d := range p.Links {
				if !at[[2]string{d.Where, d.Name}] {
					t.Errorf("%s in %s is on the path, and in none of its namespaces", d.Name,
						d.Where)
				}
			}
		})
	}
}
