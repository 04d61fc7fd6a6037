package observe

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/kernel/sysctl"
	limits "github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/machine/gpu"
	"github.com/bridgetoll/bridgetoll/internal/measure/tokens"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// server reads what slows a route's server down, for a client on another machine.
type server struct {
	read   func() map[string]int64 // nil: its process is not known
	ports  func() (used, all int64)
	gpu    *gpu.Meter
	before map[string]int64
	begun  bool
}

// serverOf returns the reader of a route whose hops are described. meters are those of GPUs, by
// process, to which it may add one; the caller closes them.
func (w *Watch) serverOf(ctx context.Context, r *route, meters map[int]*gpu.Meter) *server {
	s := &server{ports: w.proxyPorts(r)}
	if pid := r.hops[0].about.PID; pid != 0 {
		if _, known := meters[pid]; !known {
			meters[pid] = gpu.Open(ctx, pid)
		}
		s.read, s.gpu = limits.Machine{}.StrainOf(pid).Read, meters[pid]
	}
	return s
}

func (s *server) begin() {
	s.stop(nil, nil)
	if s.begun = true; s.read != nil {
		s.before = s.read()
	}
	s.gpu.Begin()
}

// counts returns what slowed the server down since begin, by the names that visits use; nil: it is
// not known.
func (s *server) counts() (out map[string]int64) {
	if s.read != nil {
		out = limits.Since(s.before, s.read())
	}
	if s.ports == nil {
		return out
	}
	if used, all := s.ports(); all > 0 {
		if out == nil {
			out = map[string]int64{}
		}
		out[workload.CountPortsUsed], out[workload.CountPortRange] = used, all
	}
	return out
}

// stop ends a visit's readings of the GPU. Spans are as in gpu.Meter.End.
func (s *server) stop(whole, slow []gpu.Span) *sample.GPU {
	if s == nil || !s.begun {
		return nil
	}
	s.begun = false
	return s.gpu.End(whole, slow)
}

// proxyPorts returns a function that returns how many local ports a docker-proxy's connections to the
// hop behind it use, and how many there are; nil: no hop is one.
func (w *Watch) proxyPorts(r *route) func() (used, all int64) {
	for i, h := range r.hops {
		if i == 0 || h.about.Process != "docker-proxy" {
			continue
		}
		to := netip.AddrPortFrom(r.hops[i-1].to.Addr().Unmap(), r.hops[i-1].to.Port())
		return func() (used, all int64) {
			count := map[netip.AddrPort]int{to: 0}
			var low, high int64
			err := w.spaces[h.space].Visit(func() error {
				text, err := sysctl.Get("net.ipv4.ip_local_port_range")
				if err == nil {
					_, err = fmt.Sscan(text, &low, &high)
				}
				if err != nil {
					return err
				}
				return sock.Towards(count)
			})
			if err != nil {
				return 0, 0
			}
			return int64(count[to]), high - low + 1
		}
	}
	return nil
}

// spansOrder asks how busy the GPU of the present visit's server was. Times are by the observer's
// clock.
type spansOrder struct {
	Whole []farSpan `json:"whole"`
	Slow  []farSpan `json:"slow"`
}

type farSpan struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func spansOf(all []farSpan) (out []gpu.Span) {
	for _, s := range all {
		out = append(out, gpu.Span{From: time.Unix(0, s.From), To: time.Unix(0, s.To)})
	}
	return out
}

// Server is what an observer on another machine can read of a route's server.
type Server struct {
	Process bool `json:"process,omitempty"` // what slows it down
	GPU     bool `json:"gpu,omitempty"`
}

// FarServer returns what can be read of a route's server; far is false unless it is on another
// machine.
func (w *Watch) FarServer(route string) (s Server, far bool) {
	if w == nil || w.routes[route] == nil {
		return Server{}, false
	}
	r := w.routes[route]
	return r.server, r.distant()
}

// Counts returns what slowed down a server on another machine during the visit, by the names that
// visits use, after End; nil: it is not known.
func (v *Visit) Counts() map[string]int64 { return v.there.counts }

// GPU returns how busy the GPU of a server on another machine was, after End; nil: it is not known.
// The spans are as in gpu.Meter.End.
func (v *Visit) GPU(ctx context.Context, whole, slow []gpu.Span) *sample.GPU {
	if !v.route.server.GPU || v.broken != nil {
		return nil
	}
	if v.clock == (tokens.Clock{}) { // the readings end nevertheless
		whole, slow = nil, nil
	}
	there := func(all []gpu.Span) (out []farSpan) {
		for _, s := range all {
			out = append(out, farSpan{v.clock.There(s.From.UnixNano()), v.clock.There(s.To.UnixNano())})
		}
		return out
	}
	n, err := v.w.far.do(ctx, order{Spans: &spansOrder{there(whole), there(slow)}})
	if err != nil {
		return nil
	}
	return n.GPU
}

// checkServer returns an error unless what an answer says of a server is possible.
func (n *news) checkServer() error {
	for name, x := range n.Counts {
		if x < 0 || !slices.Contains(counted, name) {
			return fmt.Errorf("%w: a count of a server", errNonsense)
		}
	}
	if n.GPU == nil {
		return nil
	}
	printable.Fields(n.GPU)
	for _, t := range []sample.GPUTime{n.GPU.Slow, n.GPU.Rest} {
		const rounding, most = 1e-6, 1e9 // s
		if t.Gaps < 0 || t.Busy < -rounding || t.Busy > t.Time+rounding || t.Time > most {
			return fmt.Errorf("%w: the time of a GPU", errNonsense)
		}
	}
	return nil
}

// counted are the names of the counts that an observer sends.
var counted = []string{workload.CountStops, workload.CountPeriods, workload.CountMemoryHits,
	workload.CountOverflows, workload.CountListenDrops, workload.CountDelayedACKs,
	workload.CountSynResent, workload.CountResent, workload.CountSegments,
	workload.CountPortsUsed, workload.CountPortRange}
