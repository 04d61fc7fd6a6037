package trace

import (
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/lever"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Finding is a cause, its size and what would remove it.
type Finding struct {
	Text string `json:"text"` // made of the others
	analysis.Finding
	Command string `json:"command,omitempty"` // removes the cause
	Lever   string `json:"lever,omitempty"`   // toll advise's lever
	// Over is the label of the other cell if only its trips have the cause: Rows are indexes of Its.
	Over string `json:"over,omitempty"`
}

// The codes of causes. Took is in a trip, Rows are indexes of the trace's segments.
const (
	Frames         = "trace-frames"            // iptables sees the frames of a bridge, at most Took
	FramesInHooks  = "trace-frames-in-hooks"   // of Whole
	FramesOf       = "trace-frames-of-variant" // of Whole, as variant What shows
	LongChains     = "trace-long-chains"       // in hook What, of row Why
	WaitsSoftirq   = "trace-waits-for-softirq"
	WaitsQueue     = "trace-waits-in-queue"
	ReadersSlept   = "trace-readers-slept" // Share of them; Whole is of the other cell
	OddStep        = "trace-odd-step"      // What, in Share of the trips
	OddLookUp      = "trace-odd-look-up"   // the same; it is a look-up of a route
	RepliesWait    = "trace-replies-wait"  // N of them in the server's TCP, for cause What, Took together
	NoReply        = "trace-no-reply"      // to N requests over route What
	ErrorReplies   = "trace-error-replies" // over route What; Values are numbers by code
	OtherReplies   = "trace-other-replies" // so, of HTTP
	StampedOnce    = "trace-stamped"       // packets at a bridge's port and the bridge, over route What
	NotAllKept     = "trace-not-all-kept"  // of the packets of N of Of requests over route What
	StoppedByLimit = "trace-stopped"       // What is short of CPU, and a limit stopped it for Stopped of Window
	OthersHaveCPU  = "trace-others-have-cpu"
	Sleep          = "trace-sleep" // until Names are woken, Took of Whole passes
	// iptables sees frames of bridge What because of Names, which take at most Took of a request. Why says what a copy of
	// the network said of the Command: Tried (who reaches N ports would change), Untried or "" (it has
	// none).
	BridgedFrames = "trace-bridged-frames"
	// RPS moves a Share of the packets behind device What to another CPU, for which they wait for Took
	// and the others for Whole. Why: Untried or "".
	Steered = "trace-steered"
	// N times a connection to What found its queue of Values[Backlog] full, as Why says.
	QueueFull = "trace-accept-queue-full"
)

// Whether commands were tried in a copy of the network.
const (
	Tried   = "tried"
	Untried = "untried"
)

// Why a queue of connections is not longer.
const (
	ByProgram     = "program"         // What asked for that
	ByKernel      = "somaxconn"       // which is Values[Somaxconn]
	ByKernelApart = "somaxconn-apart" // so, in another network namespace than toll's
)

// Keys of QueueFull's Values, the first two in connections.
const (
	Backlog   = "backlog"
	Somaxconn = "somaxconn"
	Port      = "port"
)

// Keys of StoppedByLimit's Values, in s.
const (
	Stopped = "stopped_s"
	Window  = "window_s"
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

// causes returns what makes trips of cell i slow, and what makes only those of cell b slow. all has
// the run's traces.
func (s *study) causes(t *Trace, i, b int, all []Trace) []Finding {
	if s.Series[i].Cell.Control || t.Refused != "" && !t.Route() {
		return nil
	}
	out := s.causesOf(t, i, all)
	for _, f := range s.causesOf(s.other(t, b), b, all) {
		if tells(out, f) {
			continue
		}
		if !ofMachine[f.Code] && !namesRoute[f.Code] {
			f.Over = t.Against
		}
		out = append(out, f)
	}
	return out
}

// causesOf returns what makes trips of cell i slow, of which t is the trace.
func (s *study) causesOf(t *Trace, i int, all []Trace) []Finding {
	if t.Route() { // of which these need no parts
		return slices.Concat(s.replies(i), s.short(t, i), s.unanswered(i), s.undivided(i),
			s.network(t, i))
	}
	return slices.Concat(s.frames(t, i, all), chains(t), waits(t), slept(t), odd(t))
}

// other returns the trace of cell b alone, with which t compares its cell.
func (s *study) other(t *Trace, b int) *Trace {
	o := s.about(b)
	o.Segments, o.Rows = t.Its, turned(t.Rows)
	return &o
}

// turned returns rows as the other cell has them.
func turned(rows []Row) []Row {
	out := slices.Clone(rows)
	for k, r := range out {
		out[k] = Row{Name: r.Name, Mine: r.Its, Hooks: turned(r.Hooks), Parts: turned(r.Parts)}
	}
	return out
}

// ofMachine has the codes of findings that are about what any cell may cross, and namesRoute those of
// which What is a route's label.
var (
	ofMachine  = map[string]bool{BridgedFrames: true, Steered: true, QueueFull: true}
	namesRoute = map[string]bool{NoReply: true, ErrorReplies: true, OtherReplies: true,
		StampedOnce: true, NotAllKept: true}
)

// tells reports whether one of some findings is of the same cause as another one.
func tells(some []Finding, f Finding) bool {
	return slices.ContainsFunc(some, func(o Finding) bool {
		return o.Code == f.Code && o.What == f.What && o.Command == f.Command &&
			o.Values[Port] == f.Values[Port] &&
			!slices.ContainsFunc(f.Names, func(name string) bool { return !slices.Contains(o.Names, name) })
	})
}

// tellOnce leaves out causes that an earlier trace tells of the same cell, or of the machine. cells
// has the cell of each trace and the one with which it is compared.
func tellOnce(all []Trace, cells [][2]int) {
	const machine = -1
	told := map[int][]Finding{}
	for k := range all {
		of := func(f Finding) int {
			switch {
			case ofMachine[f.Code], namesRoute[f.Code]:
				return machine
			case f.Over != "":
				return cells[k][1]
			}
			return cells[k][0]
		}
		all[k].Findings = slices.DeleteFunc(all[k].Findings, func(f Finding) bool {
			return tells(told[of(f)], f)
		})
		for _, f := range all[k].Findings {
			told[of(f)] = append(told[of(f)], f)
		}
	}
}

// frames finds a bridge that passes the frames between its ports to iptables although the path does
// not need that.
func (s *study) frames(t *Trace, i int, all []Trace) []Finding {
	c := s.Series[i].Cell
	path, _ := s.File.Header.PathOf(c)
	row := t.Row(rowBridge)
	if path.Sysctls[bridgeNF] != "1" || strings.Contains(path.Dial, "]") ||
		c.From != mode.FromContainer || !applies("bridge-nf", c.Mode) ||
		row == nil || row.Mine == nil || *row.Mine < leastFrames {
		return nil
	}
	f := analysis.Finding{Code: Frames, Values: map[string]float64{Took: *row.Mine, Whole: *row.Mine}}
	in := 0.0
	for _, h := range row.Hooks {
		if h.Mine != nil {
			in += *h.Mine
		}
	}
	if in > 0 {
		f.Code, f.Values[Took] = FramesInHooks, in
	}
	for k, p := range s.pairs[:len(all)] {
		off := s.Series[p[0]].Cell
		path, _ := s.File.Header.PathOf(off)
		other := all[k].Row(rowBridge)
		if off.Tune = c.Tune; off == c && path.Sysctls[bridgeNF] == "0" && other != nil &&
			other.Mine != nil {
			f.Code, f.What, f.Values[Took] = FramesOf, all[k].Label, *row.Mine-*other.Mine
		}
	}
	return []Finding{{Finding: f, Command: t.here("sysctl -w " + bridgeNF + "=0"), Lever: "bridge-nf"}}
}

func applies(name string, m mode.Name) bool {
	l, ok := lever.Find(name)
	if ok {
		_, ok = l.With(m, lever.Host{})
	}
	return ok
}

// Row returns the row with a name, or nil.
func (t *Trace) Row(name string) *Row {
	k := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == name })
	if k < 0 {
		return nil
	}
	return &t.Rows[k]
}

// here returns the command for the machine's rules, or "" if those of the trace are the lab's.
func (t *Trace) here(command string) string {
	if t.Cell.On == sample.Lab {
		return ""
	}
	return command
}

func chains(t *Trace) []Finding {
	for _, r := range t.Rows {
		for _, h := range r.Hooks {
			if h.Mine != nil && *h.Mine >= longHook {
				return []Finding{{Finding: analysis.Finding{Code: LongChains, What: h.Name, Why: r.Name,
					Values: map[string]float64{Took: *h.Mine}}, Command: t.here("iptables -S " + h.Name)}}
			}
		}
	}
	return nil
}

// ThisMachine is the Where of devices that are the machine's own.
const ThisMachine = "this machine"

// waits finds packets that wait for the softirq or in a queue.
func waits(t *Trace) (out []Finding) {
	for k, g := range t.Segments {
		f := Finding{Finding: analysis.Finding{Code: WaitsSoftirq, Rows: []int{k}, What: g.Device,
			Values: map[string]float64{Took: g.MidMean}},
			Command: withoutRPS(g.Device)}
		if g.Part == sample.PartQdisc {
			f.Code, f.Command = WaitsQueue, "tc qdisc del dev "+g.Device+" root"
		} else if g.Part != sample.PartHandover {
			continue
		}
		if g.Where != ThisMachine { // it would change another device of that name
			f.Command = ""
		}
		if g.MidMean >= longWait {
			out = append(out, f)
		}
	}
	return out
}

func slept(t *Trace) []Finding {
	share := 0.0
	for kind, x := range t.Readers {
		if strings.HasPrefix(kind, "slept") {
			share += x
		}
	}
	row := t.Row(rowWakes)
	if share < mostSlept || row == nil || row.Mine == nil {
		return nil
	}
	f := analysis.Finding{Code: ReadersSlept, Values: map[string]float64{Share: share, Took: *row.Mine}}
	if row.Its != nil {
		f.Values[Whole] = *row.Its
	}
	return []Finding{{Finding: f}}
}

// odd finds steps that the path's hops do not explain, once each.
func odd(t *Trace) (out []Finding) {
	at := map[string]int{} // in out, by step
	for _, g := range t.Groups {
		seen := map[string]bool{}
		for _, k := range g.Odd {
			step := g.Steps[k]
			if seen[step] {
				continue
			}
			seen[step] = true
			if _, ok := at[step]; !ok {
				at[step] = len(out)
				f := Finding{Finding: analysis.Finding{Code: OddStep, What: step,
					Values: map[string]float64{}}}
				if strings.HasPrefix(step, "fib_table_lookup") {
					f.Code, f.Command = OddLookUp, t.here("iptables -t nat -S POSTROUTING")
				}
				out = append(out, f)
			}
			values := out[at[step]].Values
			values[Share] = min(1, values[Share]+g.Share)
		}
	}
	return out
}
