package sample

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
