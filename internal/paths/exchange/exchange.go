// Package exchange limits what toll requests from programs and servers: how long an answer may
// take, how long it may be, and how long toll stays silent while it waits.
//
//	defer exchange.Waiting("the Docker daemon")()
//	client := &http.Client{Transport: &exchange.Transport{What: "the Docker daemon"}}
//	out, err := exchange.Output(ctx, cmd, exchange.Limits{Time: 5 * time.Second})
package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// MaxAnswer limits an answer, in bytes, unless its Limits say otherwise. The list of a thousand
// containers takes 4 MB.
const MaxAnswer = 16 << 20

// silence is how long an exchange may take before the user is notified.
const silence = 2 * time.Second

// ErrTooLong is returned for an answer that exceeds its limit.
var ErrTooLong = errors.New("the answer is too long")

// SlowError is returned if an answer does not arrive in time.
type SlowError struct {
	What  string // what was asked
	After time.Duration
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("%s did not answer within %s", e.What, e.After)
}

// Unwrap returns context.DeadlineExceeded.
func (e *SlowError) Unwrap() error { return context.DeadlineExceeded }

// Timeout reports true.
func (e *SlowError) Timeout() bool { return true }

var (
	mu   sync.Mutex // guards tell
	tell = func(string) {}
)

// Tell sets the function that shows the user what toll waits for, and returns a function that
// restores the previous one. f is called with one printable line, by one goroutine at a time. Until
// it is set, nothing is shown.
func Tell(f func(line string)) (restore func()) {
	mu.Lock()
	defer mu.Unlock()
	before := tell
	tell = f
	return func() {
		mu.Lock()
		defer mu.Unlock()
		tell = before
	}
}

// Waiting shows the user that toll waits for what, unless done is called within two seconds. done
// may be called more than once.
func Waiting(what string) (done func()) {
	t := time.AfterFunc(silence, func() {
		mu.Lock()
		defer mu.Unlock()
		tell("waiting for " + printable.Line(what))
	})
	return func() { t.Stop() }
}
