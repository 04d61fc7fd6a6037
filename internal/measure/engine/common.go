package engine

import (
	"errors"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// witness reads the counters after an epoch and records each member's proof.
func (r *run) witness(all []*member) {
	r.readPaths(all, func(g *member, c []sample.Counters) {
		g.after, g.readAgain = c, r.Clock.Now()
	})
	for _, g := range all {
		if g.err == nil {
			g.judgeHops(all)
		}
	}
}

// judgeHops compares what g's hops counted with what all members that share them moved.
func (g *member) judgeHops(all []*member) {
	moved := make([]path.Moved, len(all))
	for i, o := range all {
		if o.progress == reported {
			seconds := time.Duration(g.readAgain - o.read).Seconds()
			moved[i] = o.ends.moved(o.load, o.servers, o.clients, seconds)[0]
		}
	}
	paths := make([]*path.Path, len(all))
	for i, o := range all {
		if paths[i] = o.path; o.progress == reported && o.path != g.path {
			moved[i].Resent += path.ResentByRelays(o.hops(), o.before, o.after)
		}
	}
	hops := path.Among(g.path, paths)
	for _, h := range hops {
		for _, c := range h.Clients {
			if all[c].progress == begun {
				g.err = errors.Join(errPartner, all[c].err)
				return
			}
		}
	}
	g.visit.Proof = proof(hops, g.before, g.after, path.Witness(hops, g.before, g.after, moved...))
}

var errPartner = errors.New(
	"its traffic cannot be verified, because another row on the same path failed")
