package tokens

import (
	"sort"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/kernel/writes"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// writings are the writes to a connection, and its segments, in ascending order of their ends.
type writings struct {
	writes, sends []writing
}

// writing has the offsets of its bytes.
type writing struct {
	start, end int64
	writes.Event
}

// mostAhead is how many bytes a write may be ahead of what was sent. Events beyond it are of
// another connection with the same port.
const mostAhead = 64 << 20

// add adds events of the connection whose stream is out.
func (w *writings) add(out *stream, all ...writes.Event) {
	for _, e := range all {
		if !out.known {
			return
		}
		list := &w.writes
		if e.Kind == writes.Send {
			list = &w.sends
		}
		*list = appendWriting(*list, out, e)
	}
}

// appendWriting appends an event of a stream, if it is not another one's.
func appendWriting(list []writing, of *stream, e writes.Event) []writing {
	start := of.offset(e.Seq)
	x := writing{start, start + int64(e.Len), e}
	if start < 0 || start > of.end+mostAhead || e.Len == 0 {
		return list
	}
	if n := len(list); n == 0 || x.end > list[n-1].end { // else it was sent again
		list = append(list, x)
	}
	return list
}

// covering returns the first of a list that has the byte before an offset.
func covering(list []writing, offset int64) (w writing, ok bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].end >= offset })
	if i == len(list) || list[i].start >= offset {
		return w, false
	}
	return list[i], true
}

// noteWrites sets when the events of s were written and sent, if that is known of all.
func (c *connection) noteWrites(s *Seen) {
	var wrote, sent []int64
	var waits []string
	for i, e := range s.Events {
		w, ok := covering(c.written.writes, e.Offset)
		t, ok2 := covering(c.written.sends, e.Offset)
		if !ok || !ok2 {
			return
		}
		left := min(t.At, s.Departed[i])
		at := min(w.At, left)
		wrote, sent = append(wrote, at), append(sent, left)
		waits = append(waits, c.why(w, at, left))
	}
	s.Wrote, s.Sent, s.Waits = wrote, sent, waits
}

const (
	// leastWait is the time from which on bytes wait in TCP.
	leastWait = int64(time.Millisecond)
	// release is the longest time from what lets TCP send until it sends.
	release = int64(300 * time.Microsecond)
	// leastQueued is the time in a device from which on its queue holds a packet up.
	leastQueued = int64(100 * time.Microsecond)
)

// why returns the cause for which bytes that were written at a time left TCP later, or "" if they
// did not wait.
func (c *connection) why(w writing, wrote, sent int64) string {
	if sent-wrote <= leastWait {
		return ""
	}
	marks := c.out.marks
	departed := sort.Search(len(marks), func(i int) bool { return marks[i].at >= sent })
	acked := sort.Search(len(c.acked), func(i int) bool { return c.acked[i] > sent })
	switch {
	case int64(w.Unacked)+int64(w.Len) > int64(w.Window):
		return sample.WaitWindow
	case departed > 0 && sent-marks[departed-1].at <= release && c.queued(marks[departed-1]):
		return sample.WaitQueue
	case w.Unacked == 0, acked == 0, acked > 0 && sent-c.acked[acked-1] > release:
		if w.More {
			return sample.WaitMore
		}
		return sample.WaitOther
	case w.Nagle:
		return sample.WaitNagle
	}
	return sample.WaitCongestion
}

// queued reports whether a packet waited in its device, or that is unknown. The packets that one
// acknowledgement lets TCP send follow each other without.
func (c *connection) queued(m mark) bool {
	t, ok := covering(c.written.sends, m.end)
	return !ok || m.at-t.At > leastQueued
}
