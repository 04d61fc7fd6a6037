package testwait

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type told struct {
	testing.TB
	said []string
}

func (o *told) Error(args ...any)                 { o.said = append(o.said, args[0].(string)) }
func (o *told) Errorf(format string, args ...any) { o.said = append(o.said, format) }
func (o *told) Failed() bool                      { return len(o.said) > 0 }

func TestUnhindered(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     func(u testing.TB, n int)
		tries int // 0: until the limit
		want  []string
	}{
		{"well", func(testing.TB, int) {}, 1, nil},
		{"well-later", func(u testing.TB, n int) {
			if n < 3 {
				u.Errorf("not yet")
				u.Fatal("not at all")
			}
		}, 3, nil},
		{"never", func(u testing.TB, _ int) {
			u.Fatalf("%s", "too late")
			u.Error("not reached")
		}, 0, []string{"too late", "so it was"}},
		{"inexcusable", func(u testing.TB, _ int) {
			Hard(u).Error("lost")
			u.Fatal("too late")
		}, 1, []string{"lost"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, n, began := &told{TB: t}, 0, time.Now()
				Unhindered(o, time.Minute, func(u testing.TB) { n++; c.f(u, n) })
				if c.tries > 0 && n != c.tries || c.tries == 0 &&
					(n < 10 || time.Since(began) < time.Minute) {
					t.Errorf("%d tries in %s", n, time.Since(began))
				}
				if len(o.said) != len(c.want) {
					t.Fatalf("it said %q", o.said)
				}
				for i, w := range c.want {
					if !strings.HasPrefix(o.said[i], w) {
						t.Errorf("it said %q, want %q", o.said[i], w)
					}
				}
			})
		})
	}
	if Hard(t) != testing.TB(t) {
		t.Error("a test is not its own")
	}
}
