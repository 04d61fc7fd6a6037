package agent

import (
	"context"
	"sync"
	"time"
)

// Hush stops the pings of all agents until resume is called, at most for about d. Agents that would
// time out meanwhile are pinged beforehand.
func (h *Hub) Hush(ctx context.Context, d time.Duration) (resume func(), err error) {
	word, limit := request{Ping: true}, settle
	if d > h.silence/bearable {
		// While the hub waits for agents that do not answer, the others must not time out.
		word, limit = request{Hush: d + h.silence}, h.silence
	}
	h.mu.Lock()
	h.hushes++
	for _, a := range h.agents {
		if a.ready && time.Duration(now()-a.spoken.Load())+d > h.silence/bearable {
			h.pinging++
			go a.ping(word)
		}
	}
	under := h.pinging > 0
	if under && h.settled == nil {
		h.settled = make(chan struct{})
	}
	settled := h.settled
	h.mu.Unlock()
	over := sync.OnceFunc(func() {
		h.mu.Lock()
		h.hushes--
		h.mu.Unlock()
	})
	if under {
		t := time.NewTimer(limit)
		defer t.Stop()
		select {
		case <-settled:
		case <-ctx.Done():
			over()
			return nil, context.Cause(ctx)
		case <-t.C: // the agent does not answer; its ping may fall into the window
		}
	}
	// Even if the caller does not resume, pings start again before agents time out.
	late := time.AfterFunc(d+settle, over)
	return func() { late.Stop(); over() }, nil
}

// ping reports whether a ping may be sent now. After true, the caller calls pinged when the ping is
// answered.
func (h *Hub) ping() (may bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hushes > 0 {
		return false
	}
	h.pinging++
	return true
}

func (h *Hub) pinged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pinging--; h.pinging == 0 && h.settled != nil {
		close(h.settled)
		h.settled = nil
	}
}
