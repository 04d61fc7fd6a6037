package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
)

// The modules are those of both architectures.
func modulesOf(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, arch := range []string{"amd64", "arm64"} {
		t.Setenv("GOARCH", arch)
		text, err := output("go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}",
			"../../cmd/kubectl-toll") // with more modules than toll
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Fields(string(text))...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestModulesHaveLicences(t *testing.T) {
	names := modulesOf(t)
	modules, err := find(names)
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) != len(names)+1 || len(names) < 50 {
		t.Fatalf("%d modules of %d", len(modules), len(names))
	}
	dir := t.TempDir()
	got := map[string]string{}
	for _, m := range modules {
		if err := m.read(); err != nil {
			t.Error(err)
			continue
		}
		if err := m.write(dir); err != nil {
			t.Fatal(err)
		}
		got[m.Path] = strings.Join(m.ids, " ")
		files, err := filepath.Glob(filepath.Join(dir, m.Path, "*"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no file: %v", m.Path, err)
		}
	}
	for path, want := range map[string]string{
		"std":                          "BSD-3-Clause",
		"github.com/hashicorp/yamux":   "MPL-2.0",
		"github.com/cilium/ebpf":       "MIT",
		"github.com/davecgh/go-spew":   "ISC",
		"go.yaml.in/yaml/v2":           "Apache-2.0 MIT",
		"k8s.io/client-go":             "Apache-2.0",
		"github.com/gorilla/websocket": "BSD-2-Clause",
	} {
		if got[path] != want {
			t.Errorf("%s has %q, not %q", path, got[path], want)
		}
	}
}

func TestAnnotate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sbom")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(
		`{"metadata": {"component": {"name": "own"}}, "components": [{"name": "a", "version": "v1<2"}]}`)
	all := []module{{Path: "a", ids: []string{"ISC", "MIT"}},
		{Path: "own", ids: []string{"Apache-2.0"}}}
	if err := annotate(file, all); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type component struct {
		Name, Version string
		Licenses      []struct{ License struct{ ID string } }
	}
	var bom struct {
		Metadata   struct{ Component component }
		Components []component
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	a, own := bom.Components[0], bom.Metadata.Component
	if len(a.Licenses) != 2 || a.Licenses[1].License.ID != "MIT" || a.Version != "v1<2" ||
		own.Licenses[0].License.ID != "Apache-2.0" {
		t.Errorf("%s", text)
	}
	write(`{"metadata": {"component": {"name": "own"}}, "components": [{"name": "b"}]}`)
	if err := annotate(file, all); err == nil || testgolden.Stable(err.Error()) != "DIR/sbom: component b is no module of the binary" {
		t.Errorf("a component without a licence: %v", err)
	}
}
