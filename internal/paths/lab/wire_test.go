package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
)

func TestParseWire(t *testing.T) {
	for _, tt := range []struct {
		text  string
		want  sample.Wire
		shown string
		fails string
	}{
		{"", sample.Wire{}, "", ""},
		{"rate=10gbit", sample.Wire{Rate: 10e9}, "rate=10gbit", ""},
		{"rate=2.5gbit", sample.Wire{Rate: 25e8}, "rate=2.5gbit", ""},
		{"rate=4.1gbit", sample.Wire{Rate: 4_100_000_000}, "rate=4.1gbit", ""},
		{"delay=65us", sample.Wire{Delay: 65e-6}, "delay=65us", ""},
		{"rate=100Mbit,delay=50us", sample.Wire{Rate: 1e8, Delay: 50e-6}, "rate=100mbit,delay=50us",
			""},
		{"delay=1ms,mtu=9000,rate=40gbit", sample.Wire{Rate: 40e9, MTU: 9000, Delay: 1e-3},
			"rate=40gbit,mtu=9000,delay=1ms", ""},
		{"rate=10", sample.Wire{}, "", "rate must be from 10mbit to 400gbit"},
		{"rate=0gbit", sample.Wire{}, "", "rate must be from 10mbit to 400gbit"},
		{"rate=NaNgbit", sample.Wire{}, "", "rate must be from 10mbit to 400gbit"},
		{"rate=401gbit", sample.Wire{}, "", "rate must be from 10mbit to 400gbit"},
		{"rate=999kbit", sample.Wire{}, "", "rate must be from 10mbit to 400gbit"},
		{"mtu=575", sample.Wire{}, "", "mtu must be from 576 to 65535"},
		{"mtu=1e3", sample.Wire{}, "", "mtu must be from 576 to 65535"},
		{"delay=101ms", sample.Wire{}, "", "delay must be from 1us to 100ms, in whole microseconds"},
		{"delay=1.5us", sample.Wire{}, "", "delay must be from 1us to 100ms, in whole microseconds"},
		{"delay=5", sample.Wire{}, "", "delay must be from 1us to 100ms, in whole microseconds"},
		{"delay=-1ms", sample.Wire{}, "", "delay must be from 1us to 100ms, in whole microseconds"},
		{"loss=1%", sample.Wire{}, "", `"loss" is not one of rate, mtu, delay`},
		{"rate=1gbit,,mtu=1500", sample.Wire{}, "", `"" is not one of rate, mtu, delay`},
		{"mtu=1500,mtu=1500", sample.Wire{}, "", "mtu is given twice"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseWire(tt.text)
			var w *wireError
			if known := errors.As(err, &w); known != (tt.fails != "") ||
				known && (err.Error() != fmt.Sprintf("wire %q: %s", tt.text, tt.fails) || w.Hint() == "") {
				t.Fatalf("error %q, want %q", err, tt.fails)
			}
			if got != tt.want || got.String() != tt.shown {
				t.Errorf("got %+v, %q", got, got)
			}
		})
	}
}

func FuzzParseWire(f *testing.F) {
	for _, s := range []string{"rate=10gbit,mtu=1500,delay=50us", "rate=1e3mbit", "delay=1h",
		"=,="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := ParseWire(s)
		if err != nil {
			return
		}
		if w.Rate > maxRate || w.MTU > mode.MaxMTU || w.Delay > maxDelay.Seconds() {
			t.Errorf("%q is %+v", s, w)
		}
		if _, err := ParseWire(w.String()); err != nil {
			t.Errorf("%q is %q, which does not read back: %v", s, w, err)
		}
	})
}

func TestDelayKeepsItsMicroseconds(t *testing.T) {
	for us := time.Microsecond; us <= maxDelay; us += time.Microsecond {
		if got := (sample.Wire{Delay: us.Seconds()}).OneWay(); got != us {
			t.Fatalf("%s became %s", us, got)
		}
	}
}

func TestWireIsShaped(t *testing.T) {
	for _, m := range mode.OfLab() {
		for _, r := range m.Routes {
			if r.OnRequest() || !slices.Contains(r.Hops, mode.HopWire) {
				continue
			}
			t.Run(string(m.Name)+"-"+string(r.From), func(t *testing.T) {
				wireIsShaped(t, path.Spec{Mode: m.Name, From: r.From, To: r.To})
			})
		}
	}
}

func wireIsShaped(t *testing.T, spec path.Spec) {
	t.Helper()
	t.Parallel()
	var s *site
	l := started(t, &Lab{Wire: sample.Wire{Rate: 200e6, MTU: 1600},
		test: hooks{built: func(b *site) {
			s = b
		}}})
	skipMissing(t, l, spec)
	p := build(t, l, spec)
	if got := p.Facts["wire"]; got != "rate=200mbit,mtu=1600" {
		t.Errorf("the path says of its wire %q", got)
	}
	for _, at := range []string{"A", "B"} {
		claim{where: at, command: "tc qdisc show dev eth0",
			says: []string{"tbf rate 200Mbit burst lat"}}.check(t, s)
		claim{where: at, command: "ip link show eth0", says: []string{"mtu 1600"}}.check(t, s)
	}
	began := time.Now()
	tr := pathtest.Exchange(t, p)
	tr.Stop()
	const slack = 0.7 // what fits into the buckets and the queues at once
	least := time.Duration(slack * float64(tr.Moved[0].Forward) * 8 / 200e6 * float64(time.Second))
	if took := time.Since(began); took < least {
		t.Errorf("%d bytes took %s at 200 Mbit/s, at least %s was to be expected",
			tr.Moved[0].Forward, took, least)
	}
}

func TestWireMTUOnEveryMode(t *testing.T) {
	for _, mtu := range []int{1300, 9000} {
		l := started(t, &Lab{Wire: sample.Wire{MTU: mtu}})
		for _, m := range mode.OfLab() {
			for _, r := range slices.DeleteFunc(m.RoutesFrom(mode.FromRemoteContainer),
				mode.Route.OnRequest) {
				spec := path.Spec{Mode: m.Name, From: r.From, To: r.To}
				t.Run(fmt.Sprintf("%s-%d", m.Name, mtu), func(t *testing.T) {
					t.Parallel()
					skipMissing(t, l, spec)
					pathtest.Carries(t, build(t, l, spec))
				})
			}
		}
	}
}

func TestWireIsDelayed(t *testing.T) {
	const delay = 20 * time.Millisecond
	var s *site
	l := started(t, &Lab{Wire: sample.Wire{Rate: 1e9, Delay: delay.Seconds()},
		test: hooks{built: func(b *site) {
			s = b
		}}})
	spec := path.Spec{Mode: mode.Native, From: mode.FromRemote, To: mode.ToAddress}
	if err := l.Check(context.Background(), spec); err != nil {
		var u *machine.UnsupportedError
		if !errors.As(err, &u) {
			t.Fatal(err)
		}
		if got, want := u.Missing+"; "+u.Remedy,
			"the kernel cannot give the wire a delay (CONFIG_NET_SCH_NETEM); "+
				remedy.Modprobe("sch_netem")+", or leave delay out of --wire"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if !kernelLacks(u) {
			pathtest.SkipOrFail(t, "%v", err)
		}
		return
	}
	p := build(t, l, spec)
	for _, at := range []string{"A", "B"} {
		claim{where: at, command: "tc qdisc show dev eth0",
			says: []string{"netem root delay 20ms", "tbf parent rate 1Gbit"}}.check(t, s)
	}
	began := time.Now()
	pathtest.Exchange(t, p).Stop()
	// The handshake is one round trip, the bytes and their checksum another.
	if took := time.Since(began); took < 4*delay {
		t.Errorf("an exchange took %s over a wire with a delay of %s each way", took, delay)
	}
}

func TestWireOfOtherPathsIsNotShaped(t *testing.T) {
	var s *site
	l := started(t, &Lab{Wire: sample.Wire{Rate: 200e6, Delay: 0.02, MTU: 1600},
		test: hooks{built: func(b *site) {
			s = b
		}}})
	l.mu.Lock()
	if l.tried == nil {
		l.tried = map[need]error{}
	}
	l.tried[needWire] = &machine.UnsupportedError{
		Missing: "the kernel cannot give the wire a delay (CONFIG_NET_SCH_NETEM)"}
	l.mu.Unlock()
	for _, tt := range []struct {
		spec path.Spec
		ok   bool
	}{
		{path.Spec{Mode: mode.Bridge, From: mode.FromHost, To: mode.ToContainer}, true},
		{path.Spec{Mode: mode.Bridge, From: mode.FromContainer, To: mode.ToContainer}, true},
		{path.Spec{Mode: mode.Host, From: mode.FromRemote, To: mode.ToAddress}, false},
	} {
		err := l.Check(context.Background(), tt.spec)
		var u *machine.UnsupportedError
		if tt.ok != (err == nil) || !tt.ok && !errors.As(err, &u) {
			t.Errorf("%v: %v", tt.spec, err)
			continue
		}
		if !tt.ok {
			continue
		}
		p := build(t, l, tt.spec)
		if w, ok := p.Facts["wire"]; ok {
			t.Errorf("%v says of a wire that it does not cross: %s", tt.spec, w)
		}
		for _, m := range []*hostMachine{s.a, s.b} {
			err := m.ns.Do(func() error {
				info, err := link.Describe(wireName)
				if err == nil && (info.Qdisc == "netem" || info.Qdisc == "tbf" ||
					info.MTU != 1600) {
					err = fmt.Errorf("its wire has the queueing discipline %q and an MTU of %d",
						info.Qdisc, info.MTU)
				}
				return err
			})
			if err != nil {
				t.Errorf("%v, %s: %v", tt.spec, m.name, err)
			}
		}
	}
}

func TestWireApplies(t *testing.T) {
	fast, large := sample.Wire{Rate: 1e9}, sample.Wire{MTU: 9000}
	for _, tt := range []struct {
		w    sample.Wire
		m    mode.Name
		from mode.Placement
		to   mode.Target
		want bool
	}{
		{fast, mode.Bridge, mode.FromHost, mode.ToContainer, false},
		{large, mode.Bridge, mode.FromHost, mode.ToContainer, false},
		{fast, mode.Host, mode.FromRemote, mode.ToAddress, true},
		{large, mode.Host, mode.FromRemote, mode.ToAddress, true},
		{fast, mode.MacvlanBridge, mode.FromContainer, mode.ToContainer, false},
		{large, mode.MacvlanBridge, mode.FromContainer, mode.ToContainer, true},
		{fast, mode.MacvlanVEPA, mode.FromContainer, mode.ToContainer, true},
		{large, mode.Pipework, mode.FromContainer, mode.ToContainer, true},
		{fast, mode.Pipework, mode.FromContainer, mode.ToContainer, false},
	} {
		if got := Applies(tt.w, tt.m, tt.from, tt.to); got != tt.want {
			t.Errorf("%+v to %s from %s: %t", tt.w, tt.m, tt.from, got)
		}
	}
}
