package fast

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bigtcp"
	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestDecideLinks(t *testing.T) {
	prefix := netip.MustParsePrefix
	device := func(index int, name, kind, master string, addrs ...netip.Prefix) ports.Device {
		return ports.Device{Name: name, Index: index, Kind: kind, Master: master, Up: true,
			Addrs: addrs, Docker: kind == "bridge" && name != "virbr0"}
	}
	container := func(name, addr string, port uint16,
		change func(*ports.Container)) ports.Container {
		c := ports.Container{Name: name, ID: name, PID: 7, State: "running",
			Addrs: []netip.Addr{netip.MustParseAddr(addr)},
			Published: []ports.Published{{Proto: "tcp", Port: 80,
				Host: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}}}
		if change != nil {
			change(&c)
		}
		return c
	}
	f := &ports.Facts{
		Devices: []ports.Device{
			device(1, "lo", "loopback", "", prefix("127.0.0.1/8")),
			device(2, "eth0", "device", "", prefix("10.0.0.5/24")),
			device(9, "vethb", "veth", "br-one"),
			device(3, "br-one", "bridge", "", prefix("172.18.0.1/16")),
			device(4, "vetha", "veth", "br-one"),
			device(5, "docker0", "bridge", "", prefix("172.17.0.1/16")),
			device(6, "vethc", "veth", "docker0"),
			device(7, "br-card", "bridge", "", prefix("172.19.0.1/16")),
			device(8, "eth1", "device", "br-card"),
			device(10, "virbr0", "bridge", "", prefix("192.168.122.1/24")),
			device(11, "vethv", "veth", "virbr0"),
		},
		Containers: []ports.Container{
			container("web", "172.18.0.2", 8080, nil), container("api", "172.18.0.3", 8081, nil),
			container("default", "172.17.0.2", 8082, nil),
			container("carded", "172.19.0.2", 8083, nil),
			container("measured", "172.17.0.3", 8084, func(c *ports.Container) {
				c.Measuring = true
			}),
			container("dns", "172.17.0.4", 8085, func(c *ports.Container) {
				c.Published[0].Proto = "udp"
			}),
			container("machine", "192.168.122.2", 8086, nil),
			container("paused", "172.17.0.5", 8087, func(c *ports.Container) {
				c.State = "paused"
			}),
			container("host", "172.17.0.6", 8088, func(c *ports.Container) { c.Host = true }),
			container("rootless", "172.17.0.7", 8089, func(c *ports.Container) {
				c.Rootless = true
			}),
		},
	}
	for ask, want := range map[string]string{
		"8080": "br-one of br-one [web], vetha of br-one [web], vethb of br-one [web]; ",
		"8080,8081": "br-one of br-one [api web], vetha of br-one [api web], vethb of " +
			"br-one [api web]; ",
		"8082": "docker0 of docker0 [default], vethc of docker0 [default]; ",
		"8083": "; br-card: its port eth1 is not a container's veth, so the kernel would split " +
			"large packets in software",
		"8084": "; port 8084: no running container publishes it over TCP",
		"8085": "; port 8085: no running container publishes it over TCP",
		"8086": "; machine: no Docker bridge leads to it",
		"8087": "; paused: it is paused",
		"8088": "; host: it has no network of its own",
		"8089": "; rootless: its engine is rootless: its containers are in another network",
	} {
		var c Choice
		for p := range strings.SplitSeq(ask, ",") {
			c.Ports = append(c.Ports, netip.MustParseAddrPort("0.0.0.0:"+p).Port())
		}
		links, left := decideLinks(f, c)
		var got, not []string
		for _, l := range links {
			got = append(got, fmt.Sprintf("%s of %s %v", l.Name, l.Bridge, l.Containers))
		}
		for _, l := range left {
			not = append(not, l.What+": "+l.Why)
		}
		if text := strings.Join(got, ", ") + "; " + strings.Join(not, ", "); text != want {
			t.Errorf("%s: %s\nwant %s", ask, text, want)
		}
	}
	if links, left := decideLinks(f, Choice{All: true}); len(links) != 5 || len(left) != 5 {
		t.Errorf("all: %+v, %+v", links, left)
	}
}

// sizes leaves out containers' links.
func sizes(t *testing.T) map[string]link.Sizes {
	t.Helper()
	all, err := link.AllSizes()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]link.Sizes{}
	for _, l := range all {
		out[l.Name] = l.Sizes
	}
	return out
}

func raised(t *testing.T) (out []string) {
	t.Helper()
	for name, s := range sizes(t) {
		if slices.Max(s[:]) > 65536 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Other links keep their sizes, and afterwards every link has its earlier ones.
func TestBesideLinks(t *testing.T) {
	if err := bigtcp.Supported(); err != nil {
		t.Skip(err)
	}
	withEngine(t)
	run(
		t,
		"docker network create -o com.docker.network.bridge.name=br-one one && docker network "+
			"create -o com.docker.network.bridge.name=br-two two")
	container(t, "web", "--network one -p 8080:80")
	launch(t, "mate", "--network one")
	launch(t, "other", "--network two -p 8081:80")
	before := sizes(t)
	endsWithLease(t, before)
	want := Choice{Ports: []uint16{8080}, Parts: []Part{Connect, Links}}
	f, err := TurnOn(want)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := raised(t); len(got) != 0 {
		t.Errorf("before the first update %v are raised", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan error, 1)
	w := Watcher{Lease: time.Hour} // so long that only events make the watcher act
	go func() { watched <- w.Run(ctx, f) }()
	on := func(bridge string) (out []string) {
		for name := range strings.FieldsSeq(run(t, "ls /sys/class/net/"+bridge+"/brif")) {
			out = append(out, name)
		}
		out = append(out, bridge)
		slices.Sort(out)
		return out
	}
	follows := func(what string, n int) {
		t.Helper()
		testwait.Until(t, patience, what, func() bool {
			return len(on("br-one")) == n && slices.Equal(raised(t), on("br-one"))
		})
	}
	follows("the network's links are raised, and no others", 3)
	launch(t, "late", "--network one")
	follows("a container that came", 4)
	run(t, "docker rm -f late")
	follows("a container that went", 3)
	data := make([]byte, 8<<20)
	_, _ = rand.Read(data)
	if got, err := echoed("127.0.0.1:8080", data); err != nil || got != sha256.Sum256(data) {
		t.Errorf("a transfer: %v", err)
	}
	// Somebody else's later change stays.
	own := on("br-one")[1]
	index := 0
	all, _ := link.AllSizes()
	for _, l := range all {
		if l.Name == own {
			index = l.Index
		}
	}
	theirs := link.Sizes{100000, bigtcp.Size, bigtcp.Size, bigtcp.Size}
	if err := link.SetSizes(index, theirs); err != nil {
		t.Fatal(err)
	}
	s, err := Look(context.Background())
	if err != nil || s.State != On || len(s.Links) != 3 || s.Links[0].State != Raised ||
		s.Links[0].Before.GSO4 != 65536 || s.Links[0].Now.GRO != bigtcp.Size ||
		!slices.ContainsFunc(s.Links, func(l Link) bool {
			return l.Name == own && l.State == ChangedBy
		}) || fmt.Sprint(s.Parts) != "[connect links]" {
		t.Errorf("%+v, %v", s, err)
	}
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
	kept, err := TurnOff()
	if err != nil || !slices.Equal(kept, []string{own}) {
		t.Errorf("%v, %v", kept, err)
	}
	before[own] = link.Sizes{100000, 65536, 65536, 65536}
	if now := sizes(t); !reflect.DeepEqual(now, before) {
		t.Errorf("it left %v, and there was %v", now, before)
	}
}

// endsWithLease also checks that another update raises the links again.
func endsWithLease(t *testing.T, before map[string]link.Sizes) {
	t.Helper()
	f, err := TurnOn(Choice{Ports: []uint16{8080}, Parts: []Part{Links}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := f.Update(context.Background(), time.Second); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, patience, "the lease runs out", func() bool {
			return reflect.DeepEqual(sizes(t), before)
		})
		if s, err := Look(context.Background()); err != nil || s.State != Expired || !Abandoned() {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if _, err := f.Update(context.Background(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := raised(t); len(got) != 3 {
		t.Errorf("raised: %v", got)
	}
	keepers := func() int {
		out, _ := exec.Command("pgrep", "-fx", "toll fast expire").Output()
		return len(strings.Fields(string(out)))
	}
	if n := keepers(); n != 1 {
		t.Errorf("%d processes wait for the end of the lease", n)
	}
	unkept := func() bool {
		s, err := Look(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(s.Notes, unkeptNote)
	}
	if unkept() {
		t.Error("the status says that no process restores the links")
	}
	kill := exec.Command("pkill", "-KILL", "-fx", "toll fast expire")
	if out, err := kill.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testwait.Until(t, patience, "the status says that no process restores the links", unkept)
	if err := turnOff(); err != nil {
		t.Fatal(err)
	}
	if now := sizes(t); !reflect.DeepEqual(now, before) || IsOn() {
		t.Errorf("it left %v, and there was %v", now, before)
	}
	if _, err := Open(); !errors.Is(err, ErrOff) {
		t.Error(err)
	}
	testwait.Until(t, patience, "nobody waits for the lease any more", func() bool {
		return keepers() == 0
	})
}

// Fast may be turned off after Look has opened it.
func TestLookOff(t *testing.T) {
	f, s := &Fast{store: bigtcp.Store(t.TempDir())}, &Status{State: Off}
	if err := f.look(t.Context(), s); err != nil || s.State != Off || len(s.Notes) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
}
