package path

import (
	"errors"
	"fmt"
	"testing"
)

func TestOneLine(t *testing.T) {
	gone := errors.New("Cannot connect to the Docker daemon. Is the docker daemon running?")
	at := func(step string) error { return fmt.Errorf("%s: %w", step, gone) }
	many := make([]error, 30)
	for i := range many {
		many[i] = at(fmt.Sprintf("remove network n%d", i))
	}
	same := make([]error, 5)
	for i := range same {
		same[i] = at("remove containers")
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"one", errors.New("it is late"), "it is late"},
		{"two", errors.Join(errors.New("it is late"), errors.New("it is cold")),
			"it is late; it is cold"},
		{"same", errors.Join(errors.New("it is late"), errors.New("it is late")),
			"it is late (2 times)"},
		{"steps", errors.Join(at("a"), errors.New("it is cold"), at("b")),
			"a, b: " + gone.Error() + "; it is cold"},
		{"same-steps", errors.Join(same...), "remove containers (5 times): " + gone.Error()},
		// A step that failed twice joins its errors itself.
		{"nested", errors.Join(fmt.Errorf("remove containers: %w", errors.Join(gone, gone)),
			at("remove network n")),
			"remove containers, remove network n: " + gone.Error()},
		{"many", errors.Join(many...),
			"remove network n0, remove network n1, remove network n2 and 27 others: " +
				gone.Error()},
		{"chain", at("build bridge: make network"), "build bridge: make network: " + gone.Error()},
		{"other-reasons", errors.Join(at("a"), fmt.Errorf("a: %w", errors.New("it is late"))),
			"a: " + gone.Error() + "; a: it is late"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := OneLine(tt.err); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
