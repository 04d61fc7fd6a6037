// Package exchange limits exchanges with programs and servers: how long an answer may take, how
// large it may be, and how long toll waits before it tells the user what it waits for.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// maxAnswer is the default limit of an answer, in bytes. The list of a thousand containers takes 4
// MB.
const maxAnswer = 16 << 20

const silence = 2 * time.Second

// ErrTooLong means that an answer exceeds its limit.
var ErrTooLong = errors.New("the answer is too long")

// SlowError means that an answer did not arrive in time.
type SlowError struct {
	What  string // the program or server
	After time.Duration
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("%s did not answer within %s", e.What, e.After)
}

func (e *SlowError) Unwrap() error { return context.DeadlineExceeded }

func (e *SlowError) Timeout() bool { return true }

var (
	mu   sync.Mutex
	tell = func(string) {}
)

// Tell sets the function that shows the user what toll waits for, and returns one that restores the
// previous function. f is called with one printable line, by one goroutine at a time.
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
