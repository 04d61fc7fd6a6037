package sample

// Room is what a path has for connections that are opened and closed by the
// thousand, before a visit and after what the last ones left was swept away.
type Room struct {
	Ports    int `json:"ports"`    // ephemeral ports of whoever has the fewest free, client or proxy
	TimeWait int `json:"timewait"` // sockets of ended connections that are left, of whoever has the most
	Tracked  int `json:"tracked"`  // entries of the fullest connection table
	// Tracking is how many connections that table still takes; 0: not known, or
	// there is no table.
	Tracking int `json:"tracking,omitempty"`
	// Budget is how many connections a visit may open, and Limit what there is no
	// more of then: one of the Limit constants.
	Budget int    `json:"budget"`
	Limit  string `json:"limit"`
	// Window is the visit's window in seconds where it was cut so that Budget
	// lasts; 0: the plan's.
	Window float64 `json:"window_s,omitempty"`
	Left   int     `json:"left,omitempty"`  // TimeWait after the visit, when that was swept away too
	Took   float64 `json:"drain_s"`         // to sweep
	Error  string  `json:"error,omitempty"` // why something could not be swept
}

// What connections run out of.
const (
	LimitPorts    = "ports"
	LimitTracking = "conntrack"
)

// NewRoom is the room of so many free ports and, if known, table entries, of
// which each connection takes entries.
func NewRoom(ports, timeWait, tracked, most, entries int) Room {
	r := Room{Ports: max(0, ports), TimeWait: timeWait, Tracked: tracked, Budget: max(0, ports), Limit: LimitPorts}
	if most > 0 {
		r.Tracking = max(0, most-tracked) / max(1, entries)
		if r.Tracking < r.Budget {
			r.Budget, r.Limit = r.Tracking, LimitTracking
		}
	}
	return r
}
