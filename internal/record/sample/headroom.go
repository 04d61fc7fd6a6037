package sample

// Headroom is a path's capacity for connections that are opened and closed by the thousand, read
// before a visit, after the remains of earlier ones were swept.
type Headroom struct {
	Ports    int `json:"ports"`    // ephemeral ports of the end with the fewest free, client or proxy
	TimeWait int `json:"timewait"` // remaining sockets of ended connections, of the end with the most
	Tracked  int `json:"tracked"`  // entries of the fullest connection table
	// Tracking is the number of connections that this table can still take; 0: unknown, or no
	// table.
	Tracking int `json:"tracking,omitempty"`
	// Budget is the number of connections that a visit may open, and Limit what runs out first.
	Budget int    `json:"budget"`
	Limit  string `json:"limit"`
	// Window is the visit's window in seconds if it was cut so that Budget lasts; 0: the plan's.
	Window float64 `json:"window_s,omitempty"`
	Left   int     `json:"left,omitempty"`  // TimeWait after the visit, when it was swept too
	Took   float64 `json:"drain_s"`         // duration of the sweep
	Error  string  `json:"error,omitempty"` // why something could not be swept
}

// Values of Headroom.Limit.
const (
	LimitPorts    = "ports"
	LimitTracking = "conntrack"
)

// NewHeadroom computes the headroom from the number of free ports and, if known, of table entries.
// Each connection takes the given number of entries.
func NewHeadroom(ports, timeWait, tracked, most, entries int) Headroom {
	r := Headroom{Ports: max(0, ports), TimeWait: timeWait, Tracked: tracked, Budget: max(0, ports), Limit: LimitPorts}
	if most > 0 {
		r.Tracking = max(0, most-tracked) / max(1, entries)
		if r.Tracking < r.Budget {
			r.Budget, r.Limit = r.Tracking, LimitTracking
		}
	}
	return r
}
