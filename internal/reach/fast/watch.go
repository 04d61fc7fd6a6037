package fast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/nft"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
	"github.com/bridgetoll/bridgetoll/internal/text/units"
)

// Watcher keeps shortcuts and links up to date and renews their lease.
type Watcher struct {
	Lease time.Duration // renewed after each third of it
	// Say receives one line for each event, one at a time. Nil: nothing is reported.
	Say    func(string)
	saying sync.Mutex

	fast  *Fast
	said  string // the last error, to report it once
	count string
	took  time.Duration // duration of the last read of the machine
	ended time.Time     // of that read
	tries int           // number of reads in a row after which another one may differ
	cut   bool          // the end of the engine's event stream was reported
}

// settle is the time from an event until the machine is read, so that one read covers several
// events. again is the time until a lost engine, or a read without a clear answer, is tried again.
const (
	settle = 100 * time.Millisecond
	again  = time.Second
	// calm is the pause after a read before changes of rules and devices cause another one, as a
	// multiple of its duration, so that they cannot keep a CPU busy. Most of a read with a copy is
	// waiting.
	calm = 4
)

// Run updates f until the context ends, or until somebody turns fast off, when it returns ErrOff.
// It reports all other errors and retries; the lease runs out meanwhile.
func (w *Watcher) Run(ctx context.Context, f *Fast) error {
	w.fast = f
	if err := w.update(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := w.follow(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
	return nil
}

func (w *Watcher) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	host, err := dockerapi.FindHost(os.Getenv)
	if err != nil {
		return w.update(ctx)
	}
	api, err := dockerapi.NewClient(host)
	if err != nil {
		return w.update(ctx)
	}
	defer func() { _ = api.Close() }()
	stream := api.Events(ctx, client.EventsListOptions{})
	changes := w.changes(ctx.Done())
	// This covers what happened before the events began.
	if err := w.update(ctx); err != nil {
		return err
	}
	soon := w.retry()
	renew := time.NewTicker(max(w.Lease/3, settle))
	defer renew.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-stream.Err: // docker-proxies went away with it
			if ctx.Err() == nil && !w.cut {
				w.say(fmt.Sprintf("the engine's event stream ended: %v", err))
			}
			w.cut = true
			return w.update(ctx)
		case m := <-stream.Messages:
			if !w.concerns(m) {
				continue
			}
			w.drop(m)
			w.tries = 0
			if soon == nil {
				soon = time.After(settle)
			}
			continue
		case <-changes:
			if soon == nil {
				soon = time.After(max(settle, calm*w.took-time.Since(w.ended)))
			}
			continue
		case <-soon:
		case <-renew.C:
		}
		if err := w.update(ctx); err != nil {
			return err
		}
		if w.said == "" {
			w.cut = false
		}
		soon = w.retry()
	}
}

// retry returns when to read the machine again although nothing changes; nil: with the next
// renewal.
func (w *Watcher) retry() <-chan time.Time {
	const most = 6 // doublings
	if w.tries == 0 {
		return nil
	}
	return time.After(again << min(w.tries-1, most))
}

// changes signals changes of devices and rules. Changed rules suspend shortcuts until they have
// been read. Without the kernel's notifications, the next renewal finds the changes.
func (w *Watcher) changes(done <-chan struct{}) <-chan struct{} {
	out := make(chan struct{}, 1)
	for _, source := range []struct {
		follow func(<-chan struct{}) (<-chan struct{}, error)
		rules  bool
	}{{link.Follow, false}, {nft.Follow, true}, {link.FollowRules, true}} {
		in, err := source.follow(done)
		if err != nil {
			continue
		}
		go func() {
			for range in {
				if source.rules {
					if err := w.fast.suspend(); err != nil {
						w.say(err.Error())
					}
				}
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}()
	}
	return out
}

// concerns reports whether an event may change what is published. Events that only inspect
// containers do not.
func (w *Watcher) concerns(m events.Message) bool {
	switch m.Type {
	case events.ContainerEventType:
		return slices.Contains([]events.Action{
			events.ActionStart, events.ActionRestart, events.ActionUnPause}, m.Action) || ends(m)
	case events.NetworkEventType, events.DaemonEventType:
		return true
	}
	return false
}

// ends reports whether an event takes a container's address away, which another container may soon
// get.
func ends(m events.Message) bool {
	switch m.Type {
	case events.ContainerEventType:
		return slices.Contains([]events.Action{
			events.ActionDie, events.ActionStop, events.ActionKill, events.ActionDestroy,
			events.ActionPause, events.ActionOOM}, m.Action)
	case events.NetworkEventType:
		return slices.Contains([]events.Action{
			events.ActionDisconnect, events.ActionDestroy, events.ActionRemove}, m.Action)
	}
	return false
}

func (w *Watcher) drop(m events.Message) {
	if !ends(m) {
		return
	}
	id := m.Actor.ID
	if m.Type == events.NetworkEventType {
		id = m.Actor.Attributes["container"] // "": all
	}
	if err := w.fast.drop(id); err != nil {
		w.say(err.Error())
	}
}

// update returns an error only if fast was turned off.
func (w *Watcher) update(ctx context.Context) error {
	began := time.Now()
	err := w.fast.open()
	if errors.Is(err, ErrOff) {
		return err
	}
	if err == nil {
		_, err = w.fast.Update(ctx, w.Lease)
	}
	w.ended = time.Now()
	w.took = w.ended.Sub(began)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil && w.said != "" { // the engine answers again
		w.cut, w.tries = false, 0
	}
	w.tries++
	if err == nil && !w.fast.judged.doubtful && !w.fast.waiting {
		w.tries = 0
	}
	for _, name := range w.fast.kept {
		w.say("another program changed link " + name + ", so it is not restored")
	}
	w.fast.kept = nil
	n := w.fast.count()
	switch {
	case err != nil:
		if text := err.Error(); text != w.said {
			w.said = text
			w.say(text + "; the lease is not renewed")
		}
		return nil
	case w.said != "", n != w.count:
		w.say(n)
	}
	w.said, w.count = "", n
	return nil
}

func (f *Fast) count() string {
	var out []string
	if f.table != nil {
		out = append(out, units.Plural(len(f.put), "shortcut"))
	}
	if f.links > 0 || f.table == nil {
		out = append(out, units.Plural(f.links, "link")+" raised")
	}
	return strings.Join(out, ", ")
}

func (w *Watcher) say(text string) {
	if w.Say != nil {
		w.saying.Lock()
		defer w.saying.Unlock()
		w.Say(text)
	}
}
