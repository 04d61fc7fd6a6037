package analysis

import (
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Finding is a statement about a run as values. show/sentence puts it into words.
type Finding struct {
	Code string `json:"code"`
	// From, On, Load and Pin are what its cells have in common, if the code is about that.
	From mode.Placement `json:"from,omitempty"`
	On   string         `json:"on,omitempty"`
	Load string         `json:"load,omitempty"`
	Pin  string         `json:"pin,omitempty"`
	// Cells are indexes of the report's cells.
	Cells []int `json:"cells,omitempty"`
	// Rows are indexes of a list that only the study's report has, as the code says.
	Rows []int `json:"rows,omitempty"`
	// Ratios and Prices are of Cells, in their order, if they are not against the baseline.
	Ratios []Ratio `json:"ratios,omitempty"`
	Prices []Price `json:"prices,omitempty"`
	// What names a lever, a mode, a process or a remedy, as the code says.
	What   string             `json:"what,omitempty"`
	Why    string             `json:"why,omitempty"` // that What follows from
	N      int                `json:"n,omitempty"`
	Of     int                `json:"of,omitempty"`
	Values map[string]float64 `json:"values,omitempty"` // by metric

	// Some warnings' findings have these.
	Names      []string           `json:"names,omitempty"`
	Limit      *Capacity          `json:"limit,omitempty"`
	Contention *sample.Contention `json:"contention,omitempty"`
}

// The codes of findings that several studies have.
const (
	NothingMeasured = "nothing-measured"
	AllWitnessed    = "witnessed"      // or the rows that were not are named
	Unclear         = "unclear"        // N of Of verdicts
	TooFewRounds    = "too-few-rounds" // N of Of verdicts are unclear for that reason

	// Busy is also the code of a warning, which has the Contention at What. It explains the
	// verdicts: no advice is firm.
	Busy = "busy"
)

// The codes of warnings. Values has, by the code, what one number says.
const (
	Steal       = "steal"        // a share of CPU time
	OtherLoad   = "other-load"   // CPUs
	Throttled   = "throttled"    // times
	CgroupLimit = "cgroup-limit" // CPUs
	Paced       = "paced"        // by What, which is set by Why
	SlotBias    = "slot-bias"    // of What
	NoBaseline  = "no-baseline"  // What, because of Why
	SameCore    = "same-core"    // What
	HalfDuplex  = "half-duplex"  // of card What at Why
	SlowLink    = "slow-link"    // so; Values has CardMost and, if known, CardPartner

	Truncated = "truncated"
	Aborted   = "failure" // because of What

	// MixedPlacement is about From and Load: cell What was on one CPU, Why on CPUs of its own.
	MixedPlacement = "mixed-placement"

	// of cells
	FewRounds    = "few-rounds" // N; Why: the budget ended the run
	OverWire     = "over-wire"
	ThinTail     = "thin-tail"     // What
	LostSlices   = "lost-slices"   // Values also has the share that was sent again
	FailedVisits = "failed-visits" // N of Of, the last one because of Why in the round of Values
	// PathMTU is of the end What, whose device is On. Why is the other end's, which has the
	// OtherMTU; "": neither has.
	PathMTU     = "path-mtu"
	BrokenRoute = "broken-route" // in round N, at the second of Values, because of Why
	Bimodal     = "bimodal"      // Prices are the clusters of N rounds
	Late        = "late"         // What: SizedTransfer or ""
	// BurstDiffers has the Ratios to a cell by slices and by windows, whose lengths are Values.
	BurstDiffers = "burst-differs"
	// InStates says that N of Of epochs had another ratio. Ratios and Prices have theirs and those
	// of the others; Prices are the baseline's and may be empty. What: LeftOut or "".
	InStates = "states"
	// Full says that a cell and What fill the Limit, Capped that only What does.
	Full   = "full"
	Capped = "capped"
)

// DoubtfulRoutes is the code of the warnings about routes, whose findings have these.
const (
	DoubtfulRoutes   = "ways"
	SameAddress      = "same-address"      // of the routes Names: What
	RefusedRequest   = "refused-request"   // over the routes Names: asked What
	CompressedStream = "compressed-stream" // so; What is the encoding
	OtherServers     = "other-servers"     // by What: Names
)

// FailedRounds is the finding of a FailedVisits about whole rounds, N of Of. Why is "" if the
// machine was busy.
const FailedRounds = "failed-rounds"

// What warnings' findings have in What, Why and Values.
const (
	SegmentPayload = "payload" // bytes
	SegmentPacket  = "packet"
	OtherMTU       = "other"

	Unreachable = "unreachable"
	NoResult    = "no-result"

	ByFlag    = "flag"
	ByMachine = "machine"
	ByNodes   = "nodes"

	SharedCore = "shared"
	OnlyCPU    = "only-cpu"

	CardMost    = "most" // bit/s
	CardPartner = "partner"

	BeforeRequests = "before-requests"
	DuringRun      = "during-run"
	AtStart        = "at-start"

	SizedTransfer = "sized-transfer"
	LeftOut       = "left-out"

	SliceLength  = "slice" // s
	WindowLength = "window"
	RTO          = "rto" // s
)

// TooBusy reports whether a warning says that the machine was too busy to measure.
func (s Said) TooBusy() bool {
	return slices.ContainsFunc(s.Warnings, func(w Warning) bool { return w.Code == Busy })
}

// At returns the index of the report's cell that has the results of c, or -1.
func (r *Report) At(c sample.Cell) int {
	plain := func(c sample.Cell) sample.Cell {
		c.Control, c.Placebo = false, false
		return c.Named()
	}
	return slices.IndexFunc(r.Cells, func(o Cell) bool { return plain(o.Cell) == plain(c) })
}
