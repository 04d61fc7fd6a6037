package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/plan"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

type shapeFlags struct {
	clients, pairs, procs, shapes []string
}

var crowdLoads = names(func(w workload.Workload) bool { return w.Crowds })

func newScale(e env) *cobra.Command {
	var (
		f runFlags
		s shapeFlags
	)
	c := &cobra.Command{
		Use:   "scale [MODE…]",
		Short: "Measure modes with many servers, clients and processes",
		Long: `scale measures each mode (bridge unless others are named) with one client container,
then with more that work at once. A shape is servers × client containers × processes in
each; client i uses server i modulo the number of servers. It prints the total
throughput, each client's share, how fair the shares are, and the CPU time.`,
		Example: `  toll scale
  toll scale bridge pipework ovs --clients 1,2,4,8,16,20
  toll scale bridge ovs --pairs 1,2,4,20
  toll scale bridge --procs 1x1,1x4,4x1,4x4,16x16
  toll scale bridge publish-proxy --load rr --clients 1,8,64 --save run.jsonl`,
		RunE: f.command(e, func(r *plan.Request) (err error) {
			if err := only(*r, "scale", crowdLoads...); err != nil {
				return err
			}
			if err := f.loads.crowd(); err != nil {
				return err
			}
			r.Study = sample.StudyScale
			if len(r.Modes) == 0 {
				r.Modes = []mode.Name{mode.Bridge}
			}
			here := machine.Machine{}
			r.Turn = turn(here)
			if r.Shapes, err = s.parse(); err != nil {
				return err
			}
			return crowdHeadroom(here, r.Shapes, f.loads.mostThreads())
		}),
	}
	fl := c.Flags()
	addFrom(fl, &f.from, mode.OfModes, mode.FromContainer)
	f.addTo(fl)
	for _, x := range []flagDef{
		{name: "clients", value: list(&s.clients),
			help: "numbers of client containers, with one server (default 1,2,4,8,16)"},
		{name: "pairs", value: list(&s.pairs), help: "numbers of pairs of a server and a client"},
		{name: "procs", value: list(&s.procs), word: "CxP",
			help: "client containers x processes in each, with one server: 4x16"},
		{name: "shape", value: list(&s.shapes), word: "SHAPE",
			help: "servers x client containers x processes in each: 2x8x4"},
	} {
		x.group, x.main = toMeasure, "scale"
		add(fl, x)
	}
	f.addLoads(fl, crowdLoads, workload.Bulk)
	for _, name := range crowdless() {
		_ = fl.MarkHidden(name) // fails for flags that do not exist
	}
	f.addBaseline(fl)
	f.addTune(fl)
	f.addWindow(fl)
	f.addRun(fl)
	f.onlyLocal(fl)
	return c
}

// turn returns the seconds by which each additional client process may lengthen a thread's wait for
// a CPU, because the process and its server thread may each run for a scheduler slice first.
func turn(here machine.Machine) float64 {
	const slice = 0.003 // the longest base_slice_ns that the kernel chooses
	facts, _ := here.Read()
	cpus := float64(max(1, len(facts.CPUsAllowed)))
	if facts.CgroupCPUs > 0 {
		cpus = min(cpus, facts.CgroupCPUs)
	}
	return 2 * slice / cpus
}

func crowdHeadroom(here machine.Machine, shapes []sample.Shape, streams int) error {
	const (
		files      = 4 // toll's files for a process: two pipes and the process
		toll       = 1000
		threads    = 10
		bytes      = 3 << 20
		connection = 256 << 10
	)
	for _, s := range shapes {
		processes := s.Servers + s.Clients*s.Procs
		connections := s.Clients * s.Procs * streams
		err := here.Headroom(machine.Crowd{
			Threads: toll + threads*processes + 2*connections,
			Files:   toll/2 + files*processes,
			Memory:  uint64(bytes*processes + connection*connections),
		})
		if err != nil {
			return tooLittle(s.String(), err)
		}
	}
	return nil
}

func (s shapeFlags) parse() ([]sample.Shape, error) {
	if len(s.clients)+len(s.pairs)+len(s.procs)+len(s.shapes) == 0 {
		s.clients = []string{"1", "2", "4", "8", "16"}
	}
	var out []sample.Shape
	for _, f := range []struct {
		flag    string
		words   []string
		numbers int
		example string
		shape   func(n []int) sample.Shape
	}{
		{"clients", s.clients, 1, "--clients 1,2,4", func(n []int) sample.Shape {
			return sample.Shape{Servers: 1, Clients: n[0], Procs: 1}
		}},
		{"pairs", s.pairs, 1, "--pairs 1,2,4", func(n []int) sample.Shape {
			return sample.Shape{Servers: n[0], Clients: n[0], Procs: 1}
		}},
		{"procs", s.procs, 2, "--procs 1x1,4x16", func(n []int) sample.Shape {
			return sample.Shape{Servers: 1, Clients: n[0], Procs: n[1]}
		}},
		{"shape", s.shapes, 3, "--shape 2x8x4", func(n []int) sample.Shape {
			return sample.Shape{Servers: n[0], Clients: n[1], Procs: n[2]}
		}},
	} {
		for _, w := range f.words {
			n, err := product(w, f.numbers)
			if err != nil {
				return nil, usage(fmt.Errorf("--%s %q: %w", f.flag, w, err), f.example)
			}
			shape := f.shape(n)
			if err := fits(shape); err != nil {
				return nil, usage(fmt.Errorf("--%s %s: %w", f.flag, w, err), f.example)
			}
			if !slices.Contains(out, shape) {
				out = append(out, shape)
			}
		}
	}
	return out, nil
}

func product(word string, numbers int) ([]int, error) {
	parts := strings.FieldsFunc(word, func(r rune) bool { return r == 'x' || r == '×' })
	if len(parts) != numbers {
		if numbers == 1 {
			return nil, fmt.Errorf("must be a number")
		}
		return nil, fmt.Errorf("must be %d numbers with an x between them", numbers)
	}
	out := make([]int, numbers)
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > sample.MaxEnds {
			return nil, fmt.Errorf("numbers must be from 1 to %d", sample.MaxEnds)
		}
		out[i] = n
	}
	return out, nil
}

func fits(s sample.Shape) error {
	switch {
	case s.Clients*s.Procs > sample.MaxProcs:
		return fmt.Errorf("%d client processes, at most %d are possible", s.Clients*s.Procs,
			sample.MaxProcs)
	case s.Servers > s.Clients:
		return fmt.Errorf("%d servers need at least as many clients, not %d", s.Servers, s.Clients)
	}
	return nil
}
