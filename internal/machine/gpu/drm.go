package gpu

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	// interval is the time between readings. Slow gaps shorter than two of them are not judged.
	interval = 5 * time.Millisecond
	// longestFile is the limit of a file in fdinfo, in bytes.
	longestFile = 64 << 10
)

// client is an open file of a DRM device. Several descriptors and processes may share it.
type client struct{ device, id string }

// engine is a part of a device, or a group of equal parts.
type engine struct{ device, name string }

// count is what an engine has done for a client.
type count struct {
	timed         bool
	ns            uint64 // if timed
	cycles, total uint64 // else: the client's of all
	group         uint64 // the number of equal parts; 0: 1
}

// busy returns how long the engine worked since an earlier count of elapsed seconds ago.
func (c count) busy(since count, elapsed float64) (seconds float64) {
	switch {
	case c.timed && c.ns > since.ns:
		seconds = float64(c.ns-since.ns) / 1e9
	case !c.timed && c.cycles > since.cycles && c.total > since.total:
		seconds = float64(c.cycles-since.cycles) / float64(c.total-since.total) * elapsed
	}
	return seconds / float64(max(1, c.group))
}

// later returns the count with the larger values: drivers may report less than before.
func (c count) later(before count) count {
	c.ns = max(c.ns, before.ns)
	c.cycles, c.total = max(c.cycles, before.cycles), max(c.total, before.total)
	return c
}

// parse parses a file in fdinfo. ok is false unless it is of a DRM client whose engines' work is
// counted.
func parse(text string) (c client, counts map[string]count, ok bool) {
	counts = map[string]count{}
	driver := ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		key, is := strings.CutPrefix(key, "drm-")
		if !is {
			continue
		}
		switch value = strings.TrimSpace(value); key {
		case "driver":
			driver = value
		case "pdev":
			c.device = value
		case "client-id":
			c.id = value
		default:
			parseCount(counts, key, value)
		}
	}
	if c.device == "" { // no PCI device: the client's id is unique
		c.device = driver
	}
	maps.DeleteFunc(counts, func(_ string, x count) bool { return !x.timed && x.total == 0 })
	return c, counts, c.id != "" && len(counts) > 0
}

func parseCount(counts map[string]count, key, value string) {
	number, unit, _ := strings.Cut(value, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return
	}
	for _, kind := range []struct {
		prefix, unit string
		set          func(*count)
	}{
		{"engine-capacity-", "", func(x *count) { x.group = n }},
		{"engine-", "ns", func(x *count) { x.timed, x.ns = true, n }},
		{"cycles-", "", func(x *count) { x.cycles = n }},
		{"total-cycles-", "", func(x *count) { x.total = n }},
	} {
		name, is := strings.CutPrefix(key, kind.prefix)
		if !is {
			continue
		}
		if unit == kind.unit {
			x := counts[name]
			kind.set(&x)
			counts[name] = x
		}
		return
	}
}

// drm reads the counters of a process and its descendants.
type drm struct {
	proc string
	pid  int

	files   []string // in fdinfo
	done    chan struct{}
	over    sync.WaitGroup
	last    map[client]map[string]count
	lastAt  time.Time
	engines map[engine]*series
}

// openDRM returns nil if no file of the processes has counters that this process may read.
func openDRM(proc string, pid int) *drm {
	d := &drm{proc: proc, pid: pid}
	if d.find(); len(d.files) == 0 {
		return nil
	}
	return d
}

// find looks for the files with counters, one for each client. It leaves out processes that use
// AMD's compute driver, whose work the counters lack.
func (d *drm) find() {
	d.files = nil
	seen := map[client]bool{}
	for pid := range meter.Family(d.proc, d.pid) {
		dir := filepath.Join(d.proc, strconv.Itoa(pid), "fdinfo")
		entries, _ := os.ReadDir(dir)
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			at, _ := os.Readlink(filepath.Join(filepath.Dir(dir), "fd", e.Name()))
			return at == "/dev/kfd"
		}) {
			continue
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if c, _, ok := readFile(name); ok && !seen[c] {
				seen[c] = true
				d.files = append(d.files, name)
			}
		}
	}
}

func readFile(name string) (c client, counts map[string]count, ok bool) {
	text, err := exchange.ReadFile(name, longestFile)
	if err != nil {
		return c, nil, false
	}
	return parse(string(text))
}

func (d *drm) begin() {
	d.last, d.engines = map[client]map[string]count{}, map[engine]*series{}
	d.lastAt = time.Time{}
	if !d.read(time.Now()) { // the processes have been replaced
		d.find()
		d.read(time.Now())
	}
	done := make(chan struct{})
	d.done = done
	d.over.Go(func() {
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				d.read(time.Now())
			}
		}
	})
}

// read adds a reading. It reports whether there was any counter.
func (d *drm) read(now time.Time) (some bool) {
	elapsed := now.Sub(d.lastAt).Seconds()
	worked := map[engine]float64{}
	for _, name := range d.files {
		c, counts, ok := readFile(name)
		if !ok {
			continue
		}
		some = true
		before := d.last[c]
		for name, x := range counts {
			e := engine{c.device, name}
			worked[e] += 0
			if b, ok := before[name]; ok {
				worked[e] += x.busy(b, elapsed)
				counts[name] = x.later(b)
			}
		}
		d.last[c] = counts
	}
	d.lastAt = now
	for e, seconds := range worked {
		if d.engines[e] == nil {
			d.engines[e] = &series{}
		}
		d.engines[e].add(now, seconds)
	}
	return some
}

func (d *drm) end(whole, slow []Span) *sample.GPU {
	close(d.done)
	d.over.Wait()
	d.read(time.Now())
	return d.use(whole, slow)
}

func (d *drm) use(whole, slow []Span) *sample.GPU {
	var best *sample.GPU
	for e, s := range d.engines {
		g := &sample.GPU{By: sample.GPUByDRM, Device: e.device, Engine: e.name,
			Over: interval.Seconds()}
		all, out := s.within(whole), s.within(slow)
		g.Rest = sample.GPUTime{Time: all.Time - out.Time, Busy: all.Busy - out.Busy}
		g.Slow = s.within(longer(slow, 2*interval))
		if all.Busy > 0 && (best == nil || g.Work() > best.Work()) {
			best = g
		}
	}
	return best
}

func longer(spans []Span, than time.Duration) (out []Span) {
	for _, s := range spans {
		if s.To.Sub(s.From) >= than {
			out = append(out, s)
		}
	}
	return out
}

// series is the sum of an engine's work over time.
type series struct {
	at  []time.Time
	sum []float64 // s
}

// add adds work since the last reading. Readings without work extend the last one.
func (s *series) add(at time.Time, seconds float64) {
	n := len(s.sum)
	if n > 0 {
		seconds += s.sum[n-1]
	}
	if n > 1 && s.sum[n-1] == seconds && s.sum[n-2] == seconds {
		s.at[n-1] = at
		return
	}
	s.at, s.sum = append(s.at, at), append(s.sum, seconds)
}

// until returns the work until a time, or false if there are no readings around it.
func (s *series) until(t time.Time) (seconds float64, ok bool) {
	i := sort.Search(len(s.at), func(i int) bool { return !s.at[i].Before(t) })
	switch {
	case i == len(s.at) || i == 0 && s.at[0].After(t):
		return 0, false
	case i == 0:
		return s.sum[0], true
	}
	part := t.Sub(s.at[i-1]).Seconds() / s.at[i].Sub(s.at[i-1]).Seconds()
	return s.sum[i-1] + part*(s.sum[i]-s.sum[i-1]), true
}

// within returns the work in those of the spans that were read.
func (s *series) within(spans []Span) (out sample.GPUTime) {
	for _, x := range spans {
		from, began := s.until(x.From)
		to, ended := s.until(x.To)
		if began && ended {
			out.Add(sample.GPUTime{Gaps: 1, Time: x.seconds(), Busy: min(to-from, x.seconds())})
		}
	}
	return out
}
