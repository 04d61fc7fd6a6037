package tokens

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// Leg is what lies between two points on the way of packets: a kind of device or of work, and the
// device's name; "": it has none.
type Leg struct{ Kind, Device string }

// Between returns the leg between two points that follow each other. routed means that a router
// passed the packets on in between. ok is false if it is not known what lies there.
type Between func(from, to Point, routed bool) (l Leg, ok bool)

// crossing returns where an exchange passed within a time on its n-th stretch on the network.
type crossing func(n int, from, to int64) []pass

// cross returns where an exchange with instants passed on each stretch on the network. It has nil
// for one on which that is not known from its beginning to its end, or no longer kept.
func (f *followed) cross(at []int64, of crossing) (out [][]pass) {
	kept := at[len(at)-1] < f.kept
	if !kept {
		f.unkept++
	}
	for i, x := range f.stretches {
		if x.Part != sample.PartNetwork {
			continue
		}
		if !kept {
			out = append(out, nil)
			continue
		}
		all := of(len(out), at[i], at[i+1])
		f.captured[i] = append(f.captured[i], len(all)-1)
		way, stamped := distinct(all)
		if last := len(way) - 1; last < 1 || way[0].at != at[i] || !way[0].Out ||
			way[last].at != at[i+1] || way[last].Out {
			way = nil
		}
		if stamped {
			f.stamped++
		}
		out = append(out, way)
	}
	return out
}

// distinct leaves out points at which packets had the time of the device before, and reports
// whether the last one is: another program has the kernel note when a packet comes, which it does
// once.
func distinct(way []pass) (out []pass, stamped bool) {
	for i, p := range way {
		if stamped = i > 0 && p.at == way[i-1].at && !p.Out && !way[i-1].Out; !stamped {
			out = append(out, p)
		}
	}
	return out, stamped
}

// nearly is the share of exchanges that must have passed a point.
const nearly = 0.95

// course is the usual way of a stretch.
type course struct {
	points []Point
	legs   []Leg // all that differ, in their order
	of     []int // the leg behind each point
}

// courseOf returns the usual way of the n-th stretch on the network, or nil if it is not known what
// lies between all of its points.
func (f *followed) courseOf(n int) *course {
	type kind struct {
		way   []pass
		times int
	}
	var usual *kind
	kinds, times := map[string]*kind{}, map[Point]int{}
	for _, ways := range f.ways {
		way := ways[n]
		if way == nil {
			continue
		}
		var name strings.Builder
		for _, p := range way {
			fmt.Fprint(&name, p.Point)
			times[p.Point]++
		}
		k := kinds[name.String()]
		if k == nil {
			k = &kind{way: way}
			kinds[name.String()] = k
		}
		if k.times++; usual == nil || k.times > usual.times {
			usual = k
		}
	}
	if usual == nil {
		return nil
	}
	least := nearly * float64(len(f.ways)-f.unkept)
	kept := slices.DeleteFunc(slices.Clone(usual.way), func(p pass) bool {
		return float64(times[p.Point]) < least
	})
	last := len(kept) - 1
	if last < 1 || kept[0].Point != usual.way[0].Point ||
		kept[last].Point != usual.way[len(usual.way)-1].Point {
		return nil
	}
	return f.name(kept)
}

// name returns the course over some points, or nil if it is not known what lies between them.
func (f *followed) name(way []pass) *course {
	c := &course{}
	for i, p := range way {
		if slices.Contains(c.points, p.Point) {
			return nil
		}
		c.points = append(c.points, p.Point)
		if i == 0 {
			continue
		}
		leg, ok := f.between(way[i-1].Point, p.Point, way[i-1].ttl != p.ttl)
		if !ok {
			return nil
		}
		k := slices.Index(c.legs, leg)
		if k < 0 {
			k = len(c.legs)
			c.legs = append(c.legs, leg)
		}
		c.of = append(c.of, k)
	}
	return c
}

// took returns how long an exchange was on each leg, in ns. ok is false if it went another way.
func (c *course) took(way []pass) (out []int64, ok bool) {
	out = make([]int64, len(c.legs))
	end := len(way) - 1
	if end < 1 || way[0].Point != c.points[0] || way[end].Point != c.points[len(c.points)-1] {
		return nil, false
	}
	next, last := 0, int64(0)
	for _, p := range way {
		if next == len(c.points) || p.Point != c.points[next] {
			continue
		}
		if next > 0 {
			out[c.of[next-1]] += p.at - last
		}
		next, last = next+1, p.at
	}
	return out, next == len(c.points)
}

// countRecords sets the records of the stretches on the network: that of a device at which an exchange
// ends one, and those of all devices before it.
func (f *followed) countRecords() {
	for i, all := range f.captured {
		slices.Sort(all)
		f.stretches[i].records = max(1, all[len(all)/2])
	}
}

// divideNetwork divides the stretches on the network by the devices that exchanges passed there, if
// those of nearly all exchanges are known. The others are divided as those on average.
func (f *followed) divideNetwork() {
	f.countRecords()
	var courses []*course
	for i, n := 0, 0; i < len(f.stretches); i++ {
		if f.stretches[i].Part != sample.PartNetwork {
			continue
		}
		c := f.courseOf(n)
		if c == nil {
			return
		}
		courses, n = append(courses, c), n+1
	}
	var out []instant
	rows := make([]Row, len(f.rows))
	n := 0
	for i, x := range f.stretches {
		if x.Part != sample.PartNetwork {
			out = append(out, x)
			for k, row := range f.rows {
				rows[k] = append(rows[k], row[i])
			}
			continue
		}
		out = append(out, courses[n].stretches(x)...)
		for k, took := range f.legs(courses[n], n, i) {
			rows[k] = append(rows[k], took...)
		}
		n++
	}
	f.stretches, f.rows = out, rows
}

// stretches returns the stretches into which the course divides one.
func (c *course) stretches(x instant) (out []instant) {
	for k, leg := range c.legs {
		y := x
		y.Part, y.Device, y.records = x.Part+sample.InPart+sample.Part(leg.Kind), leg.Device, 0
		for _, of := range c.of {
			if of == k {
				y.records++
			}
		}
		if k < len(c.legs)-1 {
			what, _, _ := strings.Cut(x.name, " ")
			y.name = what + " past " + leg.Kind
		}
		out = append(out, y)
	}
	return out
}

// legs returns how long each exchange was on each leg of the n-th stretch on the network, which is
// the i-th of all.
func (f *followed) legs(c *course, n, i int) [][]int64 {
	out := make([][]int64, len(f.rows))
	sums := make([]float64, len(c.legs))
	whole := 0.0
	for k, ways := range f.ways {
		took, ok := c.took(ways[n])
		if !ok {
			continue
		}
		out[k] = took
		for j, x := range took {
			sums[j], whole = sums[j]+float64(x), whole+float64(x)
		}
	}
	for k, row := range f.rows {
		if out[k] != nil {
			continue
		}
		out[k] = make([]int64, len(c.legs))
		rest := row[i]
		for j := 1; j < len(c.legs); j++ {
			out[k][j] = int64(float64(row[i]) * sums[j] / max(1, whole))
			rest -= out[k][j]
		}
		out[k][0] = rest
	}
	return out
}
