package trace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const bridgeNF = "net.bridge.bridge-nf-call-iptables"

// The least times in a trip, in s, that are a finding.
const (
	leastFrames = 0.3e-6 // iptables' share of a bridge
	longHook    = 2e-6   // a hook with Docker's usual rules takes half of that
	longWait    = 3e-6   // for a softirq or in a queue; usually 1 µs
)

// mostSlept is the least share of sleeping readers that is a finding.
const mostSlept = 0.5

// causes returns the causes of what cell i adds. all has the run's traces.
func (s *study) causes(t *Trace, i int, all []Trace) (out []Finding) {
	if t.Refused != "" || s.Series[i].Cell.Control {
		return nil
	}
	if t.Route() {
		b, _ := s.BaselineOf(i)
		return slices.Concat(s.replies(i), s.short(t, i), s.unanswered(i), s.unanswered(b))
	}
	for _, f := range []Finding{s.frames(t, i, all), chains(t)} {
		if f.Text != "" {
			out = append(out, f)
		}
	}
	out = append(out, waits(t)...)
	if f := slept(t); f.Text != "" {
		out = append(out, f)
	}
	return append(out, odd(t)...)
}

// frames finds a bridge that passes the frames between its ports to iptables although the path does
// not need that.
func (s *study) frames(t *Trace, i int, all []Trace) Finding {
	c := s.Series[i].Cell
	path, _ := s.File.Header.PathOf(c)
	row := t.row(rowBridge)
	if path.Sysctls[bridgeNF] != "1" || strings.Contains(path.Dial, "]") ||
		c.From != mode.FromContainer || !applies("bridge-nf", c.Mode) ||
		row == nil || row.Mine == nil || *row.Mine < leastFrames {
		return Finding{}
	}
	size := "up to " + micros(*row.Mine)
	in := 0.0
	for _, h := range row.Hooks {
		if h.Mine != nil {
			in += *h.Mine
		}
	}
	if in > 0 {
		size = fmt.Sprintf("%s of the bridge's %s are in its hooks", micros(in), micros(*row.Mine))
	}
	for k, p := range s.pairs[:len(all)] {
		off := s.Series[p[0]].Cell
		path, _ := s.File.Header.PathOf(off)
		other := all[k].row(rowBridge)
		if off.Tune = c.Tune; off == c && path.Sysctls[bridgeNF] == "0" && other != nil &&
			other.Mine != nil {
			size = fmt.Sprintf("%s of the bridge's %s, as %s shows", micros(*row.Mine-*other.Mine),
				micros(*row.Mine), all[k].Label)
		}
	}
	return Finding{Text: fmt.Sprintf("iptables sees what the bridge forwards "+
		"(bridge-nf-call-iptables=1): %s.", size),
		Command: "sysctl -w " + bridgeNF + "=0", Lever: "bridge-nf"}
}

func applies(name string, m mode.Name) bool {
	l, ok := lever.Find(name)
	if ok {
		_, ok = l.With(m, lever.Host{})
	}
	return ok
}

func (t *Trace) row(name string) *Row {
	k := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name })
	if k < 0 {
		return nil
	}
	return &t.Rows[k]
}

func chains(t *Trace) Finding {
	for _, r := range t.Rows {
		for _, h := range r.Hooks {
			if h.Mine != nil && *h.Mine >= longHook {
				return Finding{Text: fmt.Sprintf("The rules in %s take %s of a trip (%s): "+
					"long chains.", h.Name, micros(*h.Mine), r.Name),
					Command: "iptables -S " + h.Name}
			}
		}
	}
	return Finding{}
}

// waits finds packets that wait for the softirq or in a queue.
func waits(t *Trace) (out []Finding) {
	for _, g := range t.Segments {
		if g.MidMean < longWait {
			continue
		}
		f := Finding{Text: fmt.Sprintf("The %s waits %s ", g.Direction(), micros(g.MidMean))}
		switch at := deviceName(g.SegmentKey); g.Part {
		case sample.PartHandover:
			f.Text += "behind " + at + " for the softirq: on another CPU (RPS), or on one that is busy."
			f.Command = fmt.Sprintf("echo 0 > /sys/class/net/%s/queues/rx-0/rps_cpus", g.Device)
		case sample.PartQdisc:
			f.Text += "in the queueing discipline of " + at + "."
			f.Command = "tc qdisc del dev " + g.Device + " root"
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

func deviceName(k sample.SegmentKey) string {
	if k.Where == "" {
		return k.Device
	}
	return k.Device + " (" + k.Where + ")"
}

func slept(t *Trace) Finding {
	share := 0.0
	for kind, x := range t.Readers {
		if strings.HasPrefix(kind, "slept") {
			share += x
		}
	}
	row := t.row(rowWakes)
	if share < mostSlept || row == nil || row.Mine == nil {
		return Finding{}
	}
	text := fmt.Sprintf("%.0f %% of the readers slept; waking them takes %s of a trip", percent*share,
		micros(*row.Mine))
	if row.Its != nil {
		text += fmt.Sprintf(", with %s %s", t.Against, micros(*row.Its))
	}
	return Finding{Text: text + ". A program that polls its socket avoids it."}
}

// odd finds steps that the path's hops do not explain, once each.
func odd(t *Trace) (out []Finding) {
	shares := map[string]float64{}
	var steps []string
	for _, g := range t.Groups {
		seen := map[string]bool{}
		for _, k := range g.Odd {
			if step := g.Steps[k]; !seen[step] {
				seen[step] = true
				if shares[step] == 0 {
					steps = append(steps, step)
				}
				shares[step] += g.Share
			}
		}
	}
	for _, step := range steps {
		text := fmt.Sprintf("%.0f %% of the trips pass %s, which no hop of %s explains.",
			percent*min(1, shares[step]), step, t.Label)
		f := Finding{Text: text}
		if strings.HasPrefix(step, "fib_table_lookup") {
			f.Text = strings.TrimSuffix(text, ".") + ": a NAT rule may be too wide."
			f.Command = "iptables -t nat -S POSTROUTING"
		}
		out = append(out, f)
	}
	return out
}

func micros(s float64) string {
	const micro = 1e6
	return fmt.Sprintf("%.1f µs", micro*s)
}
