package document

// Run is what formats of figures say about the run as a whole.
type Run struct {
	Study                     string // as in Subject
	Tool, Kernel, CPU         string
	CPUs                      int
	Virtualization, Wire      string // "": none
	Baseline, EndedBy         string
	Rounds                    int
	Elapsed                   float64 // seconds
	Measured, Failed, Skipped int     // cells
	// Floors are the noise floors of groups, each of the metric that decides.
	Floors []Figure
}

// Subject identifies what a figure is about. In a mesh that is a link, from its client's node to its
// server's, a node (From), or the whole mesh.
type Subject struct {
	Study                         string // the command's name: compare, ladder, …
	Mode, Label                   string // the label includes the target and the tune, as in tables
	From, To, On, Load, Tune      string
	Point                         string // of a sweep
	Pin                           string // the placement on CPUs; "": the only one
	Servers, Clients, ClientProcs int    // 1 each, except in a crowd
	Baseline                      bool
	LimitedBy                     string
}

// Statistic says how a figure sums up its metric.
type Statistic string

// The statistics.
const (
	Round   Statistic = "round"   // one round; for a sliced load the median of its slices
	Median  Statistic = "median"  // median over rounds, with its interval
	Merged  Statistic = "merged"  // all rounds together
	Ratio   Statistic = "ratio"   // ratio to the baseline
	Added   Statistic = "added"   // difference from the baseline
	Scaling Statistic = "scaling" // ratio to the same mode's smallest crowd
	Part    Statistic = "part"    // cost of a ladder's rung over the rung below

	Typical Statistic = "typical" // of a mesh's links; next are its fastest and slowest one
	Fastest Statistic = "fastest"
	Slowest Statistic = "slowest"
	Effect  Statistic = "effect" // ratio of a node's links to typical links
	Fault   Statistic = "fault"  // ratio or rate of something that is slow or loses packets

	NoFigure Statistic = "failed" // Note has the reason
)

// Figure is one number.
type Figure struct {
	Subject
	Metric, Unit string
	Higher       bool // higher values are better
	Statistic    Statistic
	Round        int // from 0, as in the results file
	Value        float64
	Low, High    *float64 // 95 % interval; nil: none
	N, Epochs    int      // numbers of rounds or slices, and of epochs; 0: not known
	Against      string   // what it is compared with
	Verdict      string
	Note         string // the codes of a cell's warnings, or why it failed
}
