package truth

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// price is in µs.
func priceText(at, half float64) string {
	return fmt.Sprintf(`{"unit":"s","median":%ge-6,"low":%ge-6,"high":%ge-6,"n":5,"verdict":"costs"}`,
		at, at-half, at+half)
}

// A trace of host's control and one of bridge with the tune.
func traceText(control, device, bridge, wake, missing float64, tune string) string {
	rows := func(device, bridge float64) string {
		return fmt.Sprintf(`"rows":[
{"name":"devices","mine_s":1e-6,"its_s":1e-6,"added":%s},
{"name":"bridge","mine_s":4e-6,"its_s":null,"added":%s},
{"name":"wake-ups","mine_s":37e-6,"its_s":37e-6,"added":%s}],
"segments":[{"part":"qdisc","row":"devices"},{"part":"qdisc + driver","row":"devices"},
{"part":"bridge","hop":"bridge","row":"bridge"}],
"its_segments":[{"part":"wake-up","row":"wake-ups","reply":true},{"part":"copy","row":"wake-ups"}]`,
			priceText(device, 0.05), priceText(bridge, 0.05), priceText(wake, 3))
	}
	return fmt.Sprintf(`{"schema":"x","study":"trace","failed":[],"skipped":[],"traces":[
{"cell":{"mode":"host","from":"host","tune":""},"label":"host again","against":"host",
"untraced":%[1]s,"path":%[1]s,"wake_ups":%[1]s,"unattributed":%[1]s,"trips":1000,"followed":0.995,
"events":40,"cost":%[2]s,%[3]s},
{"cell":{"mode":"bridge","from":"host","tune":%[4]q},"label":"bridge","against":"host",
"untraced":%[1]s,"path":%[1]s,"wake_ups":%[1]s,"unattributed":%[5]s,"trips":1000,
"followed":0.991,"events":50,"cost":%[2]s,%[6]s}]}`, priceText(0.1, 0.5), priceText(5, 1),
		rows(control, control), tune, priceText(missing, 1), rows(device, bridge))
}

func TestTracedTables(t *testing.T) {
	for _, c := range []struct {
		name             string
		control, missing float64
		null, sums       bool
	}{
		{"right", 0.03, 0.4, true, true},
		{"control-differs", 0.16, 0.4, false, true},
		{"control-beyond-its-interval", 0.1, 0.4, false, true},
		{"parts-do-not-sum", 0.03, 1.4, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := newTraced()
			for range 6 {
				r, err := readTrace([]byte(traceText(c.control, 0.4, 4, 9, c.missing, "")))
				if err == nil {
					err = all.add(r)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			null, sums, cost := all.nullTable(), all.sumsTable(), all.costTable()
			if null.holds() != c.null || sums.holds() != c.sums || !cost.holds() {
				t.Errorf("%s\n%s\n%s", null.markdown(), sums.markdown(), cost.markdown())
			}
			if len(null.rows) != 3 { // bridge, devices and all, not wake-ups
				t.Error(null.markdown())
			}
		})
	}
}

func TestTracedRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"refused": {`"label":"bridge"`, `"label":"bridge","refused":"lost after net_dev_queue"`},
		"failed":  {`"failed":[]`, `"failed":[{"mode":"bridge"}]`},
		"none":    {`"traces":`, `"tracks":`},
		"no-cost": {`"cost":`, `"costs":`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(traceText(0, 0, 0, 0, 0, ""), change[0], change[1])
			r, err := readTrace([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if err := newTraced().add(r); err == nil {
				t.Error("no error")
			}
		})
	}
	if _, err := readTrace([]byte("toll: error")); err == nil {
		t.Error("no error")
	}
}

func TestLeastFollowed(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		want           verdict
		lowest         string
	}{
		{"all", "", "", yes, "bridge: 99.1 % of 1000"},
		{"too-few", `"followed":0.991`, `"followed":0.97`, no, "bridge: 97.0 % of 1000"},
		{"refused", `"label":"bridge"`, `"label":"bridge","refused":"after Rx"`, no,
			"bridge: 99.1 % of 1000: after Rx"},
		{"copied datagram", `"label":"bridge"`,
			`"label":"ovs","cell":{"load":"udp-rr","hops":["ovs"]},"refused":"after Rx"`, yes,
			"ovs: 99.1 % of 1000: after Rx"},
		{"copied", `"label":"bridge"`,
			`"label":"ovs","cell":{"load":"rr","hops":["ovs"]},"refused":"after Rx"`, no,
			"ovs: 99.1 % of 1000: after Rx"},
		{"failed", `"failed":[]`, `"failed":[{"mode":"bridge","reason":"died"}]`, no,
			"bridge: died"},
		{"none", `"traces":`, `"tracks":`, no, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := traceText(0, 0, 0, 0, 0, "")
			if c.from != "" {
				text = strings.ReplaceAll(text, c.from, c.to)
			}
			r, err := readTrace([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if v, lowest := leastFollowed(r); v != c.want || lowest != c.lowest {
				t.Errorf("%q, %q", v, lowest)
			}
		})
	}
}

func TestMoved(t *testing.T) {
	d := plantedPart{mode: mode.Bridge, tune: inert, may: []sample.Part{sample.PartBridge}}
	known := amount{4e-6, 0.2e-6}
	for _, c := range []struct {
		name           string
		device, bridge float64
		known          amount
		want           verdict
	}{
		{"right", 0.05, 4.2, known, yes},
		{"too-little", 0.05, 3, known, no},
		{"too-much", 0.05, 5, known, no},
		{"another-moves", -0.2, 4, known, no},
		{"another-hardly-moves", -0.05, 4, known, yes},
		{"another-may-move", -0.09, 4, known, unclear},
		{"amount-unknown", 0.05, 4, amount{4e-6, 1e-6}, unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := moved{others: map[string][]amount{}}
			for range 2 {
				r, err := readTrace([]byte(traceText(0, c.device, c.bridge, 9, 0, inert)))
				if err == nil {
					err = m.add(r, d)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := m.verdict(c.known, partLimits); got != c.want {
				t.Errorf("%q: %s, %s", got, mean(m.right), m.text(partLimits))
			}
		})
	}
	r, err := readTrace([]byte(traceText(0, 0, 0, 0, 0, "")))
	if err != nil {
		t.Fatal(err)
	}
	if err := (&moved{}).add(r, d); err == nil {
		t.Error("bridge was taken for its variant")
	}
}

func TestOfPrice(t *testing.T) {
	a, err := ofPrice(analysis.Price{Unit: "s", Low: 1e-6, Median: 2e-6, High: 5e-6})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "median", a.at, 2e-6, 1e-12)
	near(t, "half", a.half, 3e-6, 1e-12) // the farther end
	for name, p := range map[string]analysis.Price{
		"none":       {},
		"no-width":   {Unit: "s", Low: 1, Median: 1, High: 1},
		"inside-out": {Unit: "s", Low: 2, Median: 1, High: 3},
		"ratio":      {Unit: analysis.RatioUnit, Low: 1, Median: 2, High: 3},
	} {
		if a, err := ofPrice(p); err == nil {
			t.Errorf("%s: %s", name, a)
		}
	}
	if (amount{-1, 0.3}).near(0.6) != no || (amount{-1, 0.5}).near(0.6) != tooWide ||
		(amount{-1, 2}).near(0.6) != tooWide ||
		(amount{-1, 2}).near(1) != yes {
		t.Error("near does not look at the interval")
	}
	if a := (amount{1, 0.5}); a.atMost(2) != yes || a.atMost(1.2) != tooWide || a.atMost(0.4) != no {
		t.Error("atMost looks at a part of the interval")
	}
}

func TestAdded(t *testing.T) {
	c := analysis.Cell{Primary: "latency_p50", Metrics: map[string]analysis.Metric{
		"latency_p50": {Median: 55e-6, Ratio: ratio(1.08, 1.1, 1.11)}}}
	a, err := added(c)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "added", a.at, 5e-6, 1e-12)
	near(t, "half", a.half, 1e-6, 1e-12)
}

func TestRelaySpins(t *testing.T) {
	server, err := net.Listen("tcp4", testnet.TCP(t).String())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 1)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
			_, _ = c.Write(b)
		}
	}()
	at, to := testnet.TCP(t), server.Addr().(*net.TCPAddr).AddrPort()
	const spin = 20 * time.Millisecond
	cmd := exec.CommandContext(t.Context(), os.Args[0], relayArg, spin.String(), "-proto", "tcp",
		"-host-ip", at.Addr().String(), "-host-port", strconv.Itoa(int(at.Port())),
		"-container-ip", to.Addr().String(), "-container-port", strconv.Itoa(int(to.Port())))
	ready, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	w.Close()
	word := make([]byte, 2)
	if _, err := ready.Read(word); err != nil || string(word) != "0\n" {
		t.Fatalf("%q, %v", word, err)
	}
	c, err := net.Dial("tcp4", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		from := time.Now()
		b := []byte{7}
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(b); err != nil || b[0] != 7 {
			t.Fatalf("%v, %v", b, err)
		}
		if took := time.Since(from); took < 2*spin {
			t.Errorf("a trip took %s", took)
		}
	}
}

func TestPlantedParts(t *testing.T) {
	l := needs(t, "nft", "tc", "ip")
	for _, c := range []struct {
		name  string
		plant plant
		look  string
		says  string
	}{
		{"rules", forwarding(3), "nft list ruleset", "hook forward"},
		{"bridge", secondBridge, "ip link show type bridge", "planted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := bridgeSpec
			s.From, s.Tune = mode.FromContainer, inert
			p, err := planting{l, plants{inert: c.plant}}.Build(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := onMachine(t.Context(), p, "set -e\n"+c.look+" | grep -q "+
				strconv.Quote(c.says), "sh"); err != nil {
				t.Error(err)
			}
			dial := p.Clients[0].Dial
			text, err := within(t.Context(), p.Clients[0], "", "timeout", "10", "bash", "-c",
				fmt.Sprintf("(</dev/tcp/%s/%d) 2>&1 || true", dial.Addr(), dial.Port()))
			if err != nil || !strings.Contains(text, "refused") { // nothing listens, but all arrives
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}

func TestSelfConnection(t *testing.T) {
	c, err := dialSelf()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if took, err := c.trips(100); err != nil || !(took > 0) {
		t.Errorf("%v, %v", took, err)
	}
}

var _ path.Builder = byTune{}
