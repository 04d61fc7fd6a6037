package recipe

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/build/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

// RefuseTunes refuses what is set on devices, for a backend whose devices are not
// toll's: those of other machines.
func RefuseTunes(s path.Spec) error {
	for _, t := range s.Tune.List() {
		if t.Key != mode.Nodelay { // the load's own
			return &path.UnsupportedError{Missing: fmt.Sprintf("%s is set on devices of this machine only", t.Key), Remedy: "--on lab or docker"}
		}
	}
	return nil
}

// Names are those of a backend's recipes, in the catalogue's order.
func Names[R any](recipes map[mode.Name]R) []string {
	var out []string
	for _, m := range mode.All() {
		if _, ok := recipes[m.Name]; ok {
			out = append(out, string(m.Name))
		}
	}
	return out
}
