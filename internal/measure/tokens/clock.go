package tokens

import (
	"math"
	"time"
)

// Crossing is a packet between this machine and another one, whose clocks differ. Times are ns.
type Crossing struct {
	Here, There int64 // by this machine's clock, and by the other one's
	Back        bool  // it came from there
}

// Clock relates another machine's clock to this one's.
type Clock struct {
	at    int64   // of the other clock
	ahead int64   // at that time, ns
	drift float64 // what the other clock gains on this one, as a share
	// Unsure is the most by which the offset may be wrong: half the shortest time that packets took
	// there and back. It makes one way seem longer and the other one shorter; their sum is exact.
	Unsure time.Duration
}

// mostDrift is more than clocks differ in pace: 500 ppm, by which the kernel slews them, and their
// own error. What is taken for drift by mistake is at most that share of a time.
const mostDrift = 600e-6

// Compare compares the clocks by packets that crossed. No packet arrives before it was sent, so each
// bounds the offset. ok is false if none went either way.
func Compare(all []Crossing) (c Clock, ok bool) {
	back := 0
	for _, x := range all {
		if x.Back {
			back++
		}
	}
	if back == 0 || back == len(all) {
		return c, false
	}
	c.at, c.drift = all[0].There, drift(all)
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	for _, x := range all {
		ahead := x.There - x.Here - int64(c.drift*float64(x.There-c.at))
		if x.Back {
			least = max(least, ahead)
		} else {
			most = min(most, ahead)
		}
	}
	c.ahead = least + (most-least)/2
	c.Unsure = time.Duration(most-least).Abs() / 2
	return c, true
}

// drift returns what the other clock gains, by the packets that came from there with the least delay
// in the first and in the last third of the time; 0: it cannot be told from changing delays.
func drift(all []Crossing) float64 {
	const thirds = 3
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, x := range all {
		if x.Back {
			first, last = min(first, x.There), max(last, x.There)
		}
	}
	early, late := Crossing{}, Crossing{}
	for _, x := range all {
		switch lead := x.There - x.Here; {
		case !x.Back:
		case x.There <= first+(last-first)/thirds:
			if early == (Crossing{}) || lead > early.There-early.Here {
				early = x
			}
		case x.There >= last-(last-first)/thirds:
			if late == (Crossing{}) || lead > late.There-late.Here {
				late = x
			}
		}
	}
	if late.There <= early.There || !late.Back {
		return 0
	}
	gained := (late.There - late.Here) - (early.There - early.Here)
	share := float64(gained) / float64(late.There-early.There)
	if math.Abs(share) > mostDrift {
		return 0
	}
	return share
}

// Ahead returns by how much the other clock is ahead of this one at the first crossing.
func (c Clock) Ahead() time.Duration { return time.Duration(c.ahead) }

// Here returns the time by this machine's clock at a time of the other one's.
func (c Clock) Here(there int64) int64 {
	return there - c.ahead - int64(c.drift*float64(there-c.at))
}

// There returns the time by the other machine's clock at a time of this one's.
func (c Clock) There(here int64) int64 {
	return c.at + int64(float64(here-c.at+c.ahead)/(1-c.drift))
}

// Cross returns what was seen on the other machine, with times by this machine's clock.
func (c Clock) Cross(s Seen) Seen {
	s.Came = c.Here(s.Came)
	if s.Replied != 0 {
		s.Replied = c.Here(s.Replied)
	}
	for _, times := range []*[]int64{&s.Departed, &s.Left, &s.Wrote, &s.Sent} {
		if *times == nil {
			continue
		}
		here := make([]int64, len(*times))
		for i, ns := range *times {
			here[i] = c.Here(ns)
		}
		*times = here
	}
	return s
}

// Crossings returns the packets of a request and its response that crossed between the hop that the
// client dials, on another machine, and the client.
func Crossings(s *Seen, a *Asked) []Crossing {
	out := []Crossing{{Here: a.Sent, There: s.Came}}
	for i, e := range s.Events {
		j := reached(len(a.Texts), e.Len, func(j int) int { return a.Texts[j].Len })
		if j == len(a.Texts) {
			break
		}
		if here, ok := a.arrived(e.Offset, j); ok {
			out = append(out, Crossing{here, s.Departed[i], true})
		}
	}
	return out
}

// BothWays moves the time until the request came into the time on the wire. Only their sum is known
// of a server on another machine.
func BothWays(rows []Row) {
	for _, r := range rows {
		r[len(r)-2] += r[Request]
		r[Request] = 0
	}
}
