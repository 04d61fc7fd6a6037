package hint

import (
	"errors"
	"fmt"
	"testing"
)

type hinting struct{}

func (hinting) Error() string { return "no" }
func (hinting) Hint() string  { return "do this" }

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {errors.New("no"), ""}, {hinting{}, "do this"},
		{fmt.Errorf("begin: %w", errors.Join(errors.New("no"), hinting{})), "do this"},
	} {
		if got := Of(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
