// Package gpu reads how busy the GPU of a server's processes was at given times.
//
// DRM's drivers count the time of each client's work per engine in /proc/PID/fdinfo
// (Documentation/gpu/drm-usage-stats.rst of Linux). NVIDIA's driver does not; nvidia-smi tells the
// share of time in which its GPUs worked, over up to a second.
package gpu

import (
	"context"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Span is the time from one token to a later one of the same response.
type Span struct{ From, To time.Time }

func (s Span) seconds() float64 { return s.To.Sub(s.From).Seconds() }

func (s Span) overlaps(o Span) bool { return s.From.Before(o.To) && o.From.Before(s.To) }

func (s Span) holds(o Span) bool { return !o.From.Before(s.From) && !o.To.After(s.To) }

// Meter reads the GPUs of a server. A nil Meter reads nothing. Not for concurrent use.
type Meter struct {
	drm    *drm    // nil: no file of its processes has DRM's counters
	nvidia *nvidia // nil: nvidia-smi does not know its processes
}

// Open returns a Meter of the GPUs that a process and its descendants use, or nil if none can be
// read. The caller closes it.
func Open(ctx context.Context, pid int) *Meter {
	if pid == 0 {
		return nil
	}
	m := &Meter{drm: openDRM("/proc", pid)}
	if m.drm == nil {
		m.nvidia = openNVIDIA(ctx, pid, smiPatience)
	}
	if m.drm == nil && m.nvidia == nil {
		return nil
	}
	return m
}

// Begin starts a visit's readings, until End.
func (m *Meter) Begin() {
	switch {
	case m == nil:
	case m.drm != nil:
		m.drm.begin()
	default:
		m.nvidia.begin()
	}
}

// End ends the readings and returns how busy the GPU was. whole are the responses from the first
// token to the last, slow their slow gaps. Of several GPUs or engines the one that worked most
// counts. It returns nil if none did, because not all work is counted everywhere.
func (m *Meter) End(whole, slow []Span) *sample.GPU {
	switch {
	case m == nil:
		return nil
	case m.drm != nil:
		return m.drm.end(whole, slow)
	}
	return m.nvidia.end(whole, slow)
}

// Close ends the program that reads.
func (m *Meter) Close() {
	if m != nil && m.nvidia != nil {
		m.nvidia.close()
	}
}
