package sample

import (
	"fmt"
	"math"
)

// Contention describes how much of this process's CPUs other programs and the hypervisor used.
type Contention struct {
	Elapsed float64  `json:"elapsed_s"`
	CPUs    int      `json:"cpus"`             // usable by this process
	Others  *float64 `json:"others,omitempty"` // busy CPUs; nil: unknown
	Stolen  float64  `json:"stolen"`           // CPUs taken by the hypervisor
	// Pressure is the share of time in which any task, toll's included, waited for a CPU. nil:
	// unknown.
	Pressure    *float64 `json:"pressure,omitempty"`
	LoadAverage float64  `json:"load_average_1m"`
}

// ends is the number of CPUs for client and server.
const ends = 2

// Needed returns the least number of free CPUs for measuring: half of what the ends use.
func (c Contention) Needed() float64 { return float64(min(ends, c.CPUs)) / 2 }

// TooBusy reports whether too few CPUs were free. If that is unknown, it returns false.
func (c *Contention) TooBusy() bool {
	if c == nil || c.Others == nil {
		return false
	}
	return float64(c.CPUs)-*c.Others-c.Stolen < c.Needed()
}

// Join returns the mean of two spans, weighted by their lengths. If Others is known for only one of
// them, Join returns that one.
func (c Contention) Join(o Contention) Contention {
	all := c.Elapsed + o.Elapsed
	switch {
	case c.Others == nil && o.Others != nil || !(c.Elapsed > 0):
		return o
	case c.Others != nil && o.Others == nil || !(o.Elapsed > 0):
		return c
	}
	mean := func(x, y float64) float64 { return (c.Elapsed*x + o.Elapsed*y) / all }
	known := func(x, y *float64) *float64 {
		if x == nil || y == nil {
			return nil
		}
		m := mean(*x, *y)
		return &m
	}
	return Contention{Elapsed: all, CPUs: o.CPUs, Others: known(c.Others, o.Others),
		Stolen: mean(c.Stolen, o.Stolen), Pressure: known(c.Pressure, o.Pressure),
		LoadAverage: o.LoadAverage}
}

func (c *Contention) check() error {
	if c == nil {
		return nil
	}
	all := []float64{c.Elapsed, math.Abs(c.Stolen), c.LoadAverage}
	for _, x := range []*float64{c.Others, c.Pressure} {
		if x != nil {
			all = append(all, *x)
		}
	}
	return times(all...)
}

// Busy returns "1.9 of 2 CPUs busy", or "the CPUs busy" if it is not known how many.
func (c Contention) Busy() string {
	if c.Others == nil {
		return "the CPUs busy"
	}
	return fmt.Sprintf("%.1f of %d CPUs busy", min(*c.Others, float64(c.CPUs)), c.CPUs)
}

// Words returns "other programs keep 1.9 of 2 CPUs busy (load average 35.0, …)". keep is the verb,
// in the tense to use.
func (c Contention) Words(keep string) string {
	const stolen, shown, percent = 0.02, 0.05, 100 // CPUs: less is noise, or printed as 0.0
	text := fmt.Sprintf("other programs %s %s (load average %.1f", keep, c.Busy(), c.LoadAverage)
	if c.Pressure != nil {
		text += fmt.Sprintf(", CPU pressure %.0f %%", percent**c.Pressure)
	}
	if c.Stolen > max(shown, stolen*float64(c.CPUs)) {
		text += fmt.Sprintf(", %.1f CPUs taken by the hypervisor", c.Stolen)
	}
	return text + ")"
}

// Headroom is a path's capacity for short connections, read before a visit and after the cleanup of
// earlier ones.
type Headroom struct {
	// free ephemeral ports of the end, client or proxy, with the fewest
	Ports    int `json:"ports"`
	TimeWait int `json:"timewait"` // sockets of the end with the most
	Tracked  int `json:"tracked"`  // entries of the fullest connection table
	// Tracking is the number of further connections for which this table has room; 0: unknown or no
	// table.
	Tracking int `json:"tracking,omitempty"`
	// Budget is the number of connections that a visit may open. Limit is the Limit constant that
	// names its bound.
	Budget int    `json:"budget"`
	Limit  string `json:"limit"`
	// Window is the visit's window if Budget shortened it; 0: the plan's.
	Window float64 `json:"window_s,omitempty"`
	Left   int     `json:"left,omitempty"`  // TimeWait after the visit, if cleaned up too
	Took   float64 `json:"drain_s"`         // for the cleanup
	Error  string  `json:"error,omitempty"` // of the cleanup
}

const (
	LimitPorts    = "ports"
	LimitTracking = "conntrack"
)

// NewHeadroom computes the headroom from the number of free ports and from a connection table whose
// limit is most and which has tracked entries. Each connection takes the given number of entries.
// If most is 0, there is no table.
func NewHeadroom(ports, timeWait, tracked, most, entries int) Headroom {
	r := Headroom{Ports: max(0, ports), TimeWait: timeWait, Tracked: tracked, Budget: max(0, ports),
		Limit: LimitPorts}
	if most > 0 {
		r.Tracking = max(0, most-tracked) / max(1, entries)
		if r.Tracking < r.Budget {
			r.Budget, r.Limit = r.Tracking, LimitTracking
		}
	}
	return r
}
