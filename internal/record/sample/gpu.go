package sample

// GPU is how busy the server's GPU was while the tokens of a visit came. Of several GPUs or engines
// it is the one that worked most.
type GPU struct {
	By     string `json:"by"` // GPUByDRM or GPUByNvidiaSMI
	Device string `json:"device"`
	Engine string `json:"engine,omitempty"`
	// Over is the longest time over which a reading averages.
	Over float64 `json:"over_s"`
	Slow GPUTime `json:"slow"` // in slow gaps that are longer than that
	Rest GPUTime `json:"rest"` // between the first and last tokens, without slow gaps
}

// What tells how busy a GPU is.
const (
	GPUByDRM       = "drm"
	GPUByNvidiaSMI = "nvidia-smi"
)

// GPUTime is a sum of times and for how long the GPU worked in them.
type GPUTime struct {
	Gaps int     `json:"gaps,omitempty"`
	Time float64 `json:"time_s"`
	Busy float64 `json:"busy_s"`
}

// Add adds other times.
func (t *GPUTime) Add(o GPUTime) {
	t.Gaps, t.Time, t.Busy = t.Gaps+o.Gaps, t.Time+o.Time, t.Busy+o.Busy
}

// Share returns the share of the time in which the GPU worked. The time must not be 0.
func (t GPUTime) Share() float64 { return t.Busy / t.Time }

// Work returns for how long the GPU worked in all.
func (g *GPU) Work() float64 { return g.Slow.Busy + g.Rest.Busy }
