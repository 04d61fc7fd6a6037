package document

// Run describes a run as a whole, for formats of figures.
type Run struct {
	Study                     string // as in Subject
	Tool, Kernel, CPU         string
	CPUs                      int
	Virtualization, Wire      string // "": none
	Baseline, EndedBy         string
	Rounds                    int
	Elapsed                   float64 // seconds
	Measured, Failed, Skipped int     // cells
	// Floors are the groups' noise floors, of the metric that decides.
	Floors []Figure
}

// Subject identifies what a figure is about. In a mesh that is a link from its client's node to its
// server's, a node (From), or the whole mesh.
type Subject struct {
	// the study, or what tells runs of one study apart: compare, run, ladder, stream, sql, routes,
	// …
	Study                         string
	Mode, Label                   string // with target and tune, as in tables
	From, To, On, Load, Tune      string
	Point                         string // of a sweep
	Pin                           string // CPU placement; "": the only one
	Servers, Clients, ClientProcs int    // 1 each, except in a crowd
	Baseline                      bool
	LimitedBy                     string
}

type Statistic string

const (
	Round   Statistic = "round"  // one round; for a sliced load the median of its slices
	Median  Statistic = "median" // over rounds, with its interval
	Merged  Statistic = "merged"
	Ratio   Statistic = "ratio"   // ratio to the baseline
	Added   Statistic = "added"   // difference from the baseline
	Scaling Statistic = "scaling" // ratio to the same mode's smallest crowd
	// Part is the cost of a ladder's rung over the rung below, or of a part of a trip.
	Part    Statistic = "part"
	MidMean Statistic = "mid_mean" // of a part of a trip
	Segment Statistic = "segment"  // mid-mean of one; Note says where it is

	Typical Statistic = "typical" // of a mesh's links; its fastest and slowest follow
	Fastest Statistic = "fastest"
	Slowest Statistic = "slowest"
	Effect  Statistic = "effect"
	Fault   Statistic = "fault" // ratio or rate of a slow or lossy part

	NoFigure Statistic = "failed" // Note has the reason
)

type Figure struct {
	Subject
	Metric, Unit string
	Higher       bool // higher is better
	Statistic    Statistic
	Round        int // from 0, as in the results file
	Value        float64
	Low, High    *float64 // 95 % interval; nil: none
	N, Epochs    int      // rounds or slices, and epochs; 0: not known
	Against      string   // what it is compared with
	Verdict      string
	Note         string // codes of warnings, or why it failed
}
