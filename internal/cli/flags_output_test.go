package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

func TestFormatsAreTheRegistered(t *testing.T) {
	all := make([]string, len(format.All()))
	for i, f := range format.All() {
		all[i] = f.Name
	}
	with := 0
	for _, c := range newRoot(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}).Commands() {
		fl := c.Flags().Lookup(formatName)
		if fl == nil {
			continue
		}
		with++
		words := strings.Split(strings.ReplaceAll(fl.Usage, " or ", ", "), ", ")
		var out bytes.Buffer
		run(context.Background(), env{stdout: &out, stderr: &bytes.Buffer{}},
			[]string{"__complete", c.Name(), "--format", ""})
		for _, name := range words {
			if !slices.Contains(all, name) || !testgolden.HasLine(out.String(), name) {
				t.Errorf("%s: help has the format %q, registered are %v, the shell offers:\n%s",
					c.Name(), name, all, out.String())
			}
		}
		if !slices.Contains(words, fl.DefValue) {
			t.Errorf("%s: the default %q is none of %v", c.Name(), fl.DefValue, words)
		}
		f := formatFlag{"xml", fl.Value.(*formatFlag).kind}
		if err := f.check(f.kind); err == nil ||
			!strings.Contains((&failure{err: err}).Hint(), strings.Join(words, ", ")) {
			t.Errorf("%s: %v does not name %v", c.Name(), err, words)
		}
	}
	if with < 10 {
		t.Errorf("only %d commands have --format", with)
	}
}
