package testwait

import (
	"fmt"
	"testing"
	"time"
)

// Unhindered repeats f, a test of what threads do in time on a busy machine. Failures reported by u
// are excused if a later try within the limit reports none; those reported by t never are. Hard
// returns t for a given u.
func Unhindered(t testing.TB, limit time.Duration, f func(u testing.TB)) {
	t.Helper()
	const most = time.Second
	end := time.Now().Add(limit)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, most) {
		u := &try{TB: t}
		u.run(f)
		switch {
		case len(u.said) == 0:
			return
		case t.Failed():
			return
		case time.Now().After(end):
			for _, s := range u.said {
				t.Error(s)
			}
			t.Errorf("so it was in every try for %s", limit)
			return
		}
		time.Sleep(pause)
	}
}

// Hard returns the test that excuses nothing.
func Hard(t testing.TB) testing.TB {
	if u, ok := t.(*try); ok {
		return u.TB
	}
	return t
}

type try struct {
	testing.TB
	said []string
}

// over ends a try.
type over struct{}

func (u *try) run(f func(testing.TB)) {
	defer func() {
		if x := recover(); x != nil && x != (over{}) {
			panic(x)
		}
	}()
	f(u)
}

func (u *try) Failed() bool { return len(u.said) > 0 || u.TB.Failed() }

func (u *try) Error(args ...any) { u.said = append(u.said, fmt.Sprint(args...)) }

func (u *try) Errorf(format string, args ...any) {
	u.said = append(u.said, fmt.Sprintf(format, args...))
}

func (u *try) Fatal(args ...any) {
	u.Error(args...)
	panic(over{})
}

func (u *try) Fatalf(format string, args ...any) {
	u.Errorf(format, args...)
	panic(over{})
}

func (u *try) Fail() { u.Error("it failed") }

func (u *try) FailNow() { u.Fatal("it failed") }
