package ports

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/results.md lists each member of a report.
func TestMembersAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "`bridgetoll.ports/1`")
	text, _, _ = strings.Cut(text, "\n}\n")
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(x.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[x] || x.PkgPath() != reflect.TypeFor[Report]().PkgPath() ||
			reflect.PointerTo(x).Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()) {
			return
		}
		seen[x] = true
		for f := range x.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" || x == reflect.TypeFor[Process]() && name == "namespace" {
				continue // a report's processes are in containers, and do not have it
			}
			if !strings.Contains(text, `"`+name+`"`) {
				t.Errorf("docs/results.md has no %q of %s", name, x.Name())
			}
			visit(f.Type)
		}
	}
	visit(reflect.TypeFor[Report]())
	if len(seen) < 10 {
		t.Errorf("only %d types", len(seen))
	}
}
