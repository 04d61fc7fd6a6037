package trace

import (
	kernel "github.com/bridgetoll/bridgetoll/internal/kernel/trace"
)

// The names for how a reader was woken.
const (
	readerAwake   = "awake"
	readerQueued  = "awake, without a CPU"
	readerFalling = "falling asleep"
	readerHere    = "slept, same CPU"
	readerIdle    = "slept, other CPU idle"
	readerBusy    = "slept, other CPU busy"
	readerPolling = "slept, woken without IPI"
)

// read adds the steps from a ready socket to the process that reads from it. It returns the
// position of the write with which a relay continues or, in a kernel that does not trace reads, a
// server. Otherwise it returns -1.
func (f *follower) read() (write int, broken *lost) {
	ready := f.last()
	leg := &f.legs[len(f.legs)-1]
	end, who := f.reader(ready, leg.reply)
	if end < 0 {
		return -1, f.lost(f.reads())
	}
	if leg.to = who; who == server && leg.reply || who == client && !leg.reply {
		return -1, f.lost("another process's " + f.reads())
	}
	f.woken(ready, end)
	switch {
	case end == len(f.events):
		return -1, nil
	case f.events[end].Kind == kernel.Read:
		f.add(end)
		return -1, nil
	}
	return end, nil
}

func (f *follower) reads() string {
	if f.lacks[kernel.Read] {
		return names[kernel.Copy]
	}
	return names[kernel.Read]
}

// reader returns the position of the event that shows that a ready socket was read, and the
// reader's role. Where the kernel does not trace the client's read, the position is the end.
func (f *follower) reader(ready step, reply bool) (end int, who role) {
	for i := ready.at + 1; i < len(f.events); i++ {
		e := f.events[i]
		who, ok := f.roles[e.PID]
		if !ok {
			continue
		}
		switch {
		case who == relay:
			// docker-proxy splices and does not read.
			if f.isWrite(i) && (e.Kind == kernel.Queue || e.Ptr != ready.Ptr) {
				return i, relay
			}
		case !f.lacks[kernel.Read]:
			if e.Kind == kernel.Read && e.Len > 0 && (f.lacks[kernel.Ready] ||
				e.Ptr == ready.Ptr) && (e.Seq == 0 || int32(e.Seq-ready.Seq) >= 0) {
				return i, who
			}
			if f.isWrite(i) && e.Ptr == ready.Ptr {
				return -1, who
			}
		case who == server && f.isWrite(i):
			return i, server
		}
	}
	if reply && f.lacks[kernel.Read] {
		return len(f.events), client
	}
	return -1, client
}

// woken adds the steps that wake the reader, and its copying.
func (f *follower) woken(ready step, end int) {
	leg := &f.legs[len(f.legs)-1]
	waking, ipi := -1, -1
	slept, copied := -1, -1
	reader := uint32(0)
	if end < len(f.events) && leg.to != relay { // a relay's threads share its work
		reader = f.events[end].TID
	}
	relayed := leg.to == relay && !f.relayRuns(ready.at)
	stays := true // the thread that woke the reader
	for i := ready.at + 1; i < end && copied < 0; i++ {
		e := f.events[i]
		here := e.CPU == ready.CPU
		switch {
		case e.Kind == kernel.Waking && waking < 0 && here && stays && e.TID == ready.TID:
			waking = i
		case e.Kind == kernel.IPI && here && waking >= 0 && ipi < 0 && slept < 0:
			ipi = i
		case e.Kind == kernel.Switch && slept < 0 && e.Dev != 0 && (e.Dev == reader ||
			relayed && f.threads[e.Dev] || waking >= 0 && e.Dev == f.events[waking].Dev):
			slept = i
		case e.Kind == kernel.Copy && leg.to != relay && f.is(e, leg.to):
			copied = i
		}
		stays = stays && (e.Kind != kernel.Switch || !here)
	}
	leg.reader = f.kindOfWaking(ready, waking, ipi, slept)
	if waking >= 0 {
		f.minor(waking)
		// In a kernel without Ready, this step shows that the socket is ready.
		f.steps[len(f.steps)-1].minor = !f.lacks[kernel.Ready]
	}
	if ipi >= 0 {
		f.minor(ipi)
	}
	if slept >= 0 {
		f.add(slept)
	}
	if copied >= 0 {
		f.add(copied)
	}
}

// relayRuns reports whether the trip shows that a relay's thread has a CPU at an event.
func (f *follower) relayRuns(at int) bool {
	seen := map[uint16]bool{}
	for i := at; i >= 0; i-- {
		e := f.events[i]
		if seen[e.CPU] {
			continue
		}
		seen[e.CPU] = true
		thread := e.TID
		if e.Kind == kernel.Switch {
			thread = e.Dev
		}
		if f.threads[thread] {
			return true
		}
	}
	return false
}

func (f *follower) kindOfWaking(ready step, waking, ipi, slept int) string {
	switch {
	case waking < 0 && slept < 0:
		return readerAwake
	case waking < 0:
		return readerQueued
	case slept < 0:
		return readerFalling
	case f.events[slept].CPU == ready.CPU:
		return readerHere
	case f.events[slept].TID != 0:
		return readerBusy
	case ipi < 0 && !f.lacks[kernel.IPI]:
		return readerPolling
	}
	return readerIdle
}
