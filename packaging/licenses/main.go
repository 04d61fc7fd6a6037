// Command licenses collects the licences of the modules that a Go binary contains.
//
//	licenses [-sbom FILE] BINARY DIR
//
// It writes each module's licence files to DIR/MODULE and a list of all modules to DIR/README.md.
// It adds the licences' SPDX identifiers to the components of the CycloneDX file FILE. It fails if
// a module has no licence, or one that identify does not recognize.
package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	sbom := flag.String(
		"sbom", "", "CycloneDX `file` in JSON whose components get the licences' identifiers")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: licenses [-sbom FILE] BINARY DIR")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *sbom); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(binary, dir, sbom string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	var in []string // MODULE@VERSION
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		in = append(in, m.Path+"@"+m.Version)
	}
	modules, err := find(in)
	if err != nil {
		return err
	}
	for i := range modules {
		if err := modules[i].read(); err != nil {
			return err
		}
		if err := modules[i].write(dir); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), index(modules), 0o644); err != nil {
		return err
	}
	if sbom == "" {
		return nil
	}
	own := module{Path: info.Main.Path, Dir: "."}
	if err := own.read(); err != nil {
		return err
	}
	return annotate(sbom, append(modules, own))
}

type module struct {
	Path, Version, Dir string

	files map[string][]byte // by path in the module
	ids   []string          // SPDX identifiers of the files in the module's root
}

// Go's standard library is one of the modules.
func find(names []string) ([]module, error) {
	text, err := output(goCommand(), "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	env := strings.Fields(string(text))
	if len(env) != 2 {
		return nil, fmt.Errorf("go env said %q", text)
	}
	out := []module{{Path: "std", Version: env[1], Dir: env[0]}}
	if text, err = output(goCommand(), append([]string{"mod", "download", "-json"}, names...)...); err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var m module
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// goCommand returns the go command that packaging/build uses.
func goCommand() string { return cmp.Or(os.Getenv("GO"), "go") }

func output(name string, args ...string) ([]byte, error) {
	out, err := exec.Command(name, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w: %s", name, args[0], err, exit.Stderr)
	}
	return out, err
}

var (
	licenceFile = regexp.MustCompile(
		`(?i)(^|[-_.])(licen[cs]e|copying|copyright|notice|patents)([-_.]|$)`)
	code = regexp.MustCompile(`\.(go|json|py|sh|ya?ml)$`)
)

// read takes only files in the root for the standard library and this module; for other modules
// also those of parts copied from elsewhere.
func (m *module) read() error {
	m.files = map[string][]byte{}
	err := filepath.WalkDir(m.Dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name != m.Dir && (m.Version == "" || m.Path == "std" || e.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !licenceFile.MatchString(e.Name()) || code.MatchString(name) || !e.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(m.Dir, name)
		if err != nil {
			return err
		}
		m.files[rel], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the licences of %s: %w", m.Path, err)
	}
	for name, text := range m.files {
		if !strings.ContainsRune(name, filepath.Separator) {
			m.ids = append(m.ids, identify(text)...)
		}
	}
	slices.Sort(m.ids)
	if m.ids = slices.Compact(m.ids); len(m.ids) == 0 {
		return fmt.Errorf("%s@%s in %s has no licence that is known here", m.Path, m.Version, m.Dir)
	}
	return nil
}

// identify returns SPDX identifiers.
func identify(text []byte) (ids []string) {
	words := strings.ToLower(strings.Join(strings.Fields(string(text)), " "))
	has := func(s string) bool { return strings.Contains(words, s) }
	if has("apache license") && has("version 2.0") {
		ids = append(ids, "Apache-2.0")
	}
	if has("mozilla public license") && has("2.0") {
		ids = append(ids, "MPL-2.0")
	}
	if has("permission is hereby granted, free of charge") {
		ids = append(ids, "MIT")
	}
	if has("permission to use, copy, modify, and/or distribute this software") ||
		has("permission to use, copy, modify, and distribute this software") {
		ids = append(ids, "ISC")
	}
	if has("redistribution and use in source and binary forms") {
		if has("neither the name") || has("names of its contributors may") {
			return append(ids, "BSD-3-Clause")
		}
		return append(ids, "BSD-2-Clause")
	}
	return ids
}

func (m *module) write(dir string) error {
	for name, text := range m.files {
		to := filepath.Join(dir, filepath.FromSlash(m.Path), name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func index(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString("# Licences of what toll contains\n\n" +
		"The folders here have the licences and notices of these Go modules, and of the standard library (`std`).\n" +
		"`go mod download MODULE@VERSION` fetches a module's source code, and so does\n" +
		"`https://proxy.golang.org/MODULE/@v/VERSION.zip`. The pages of `--format html` carry the licences of their charts.\n\n" +
		"| module | version | licence |\n|---|---|---|\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, strings.Join(m.ids, ", "))
	}
	return b.Bytes()
}

func annotate(file string, modules []module) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var bom map[string]any
	if err := json.Unmarshal(text, &bom); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	metadata, _ := bom["metadata"].(map[string]any)
	components, _ := bom["components"].([]any)
	for _, c := range append(components, metadata["component"]) {
		c, _ := c.(map[string]any)
		i := slices.IndexFunc(modules, func(m module) bool { return m.Path == c["name"] })
		if i < 0 {
			return fmt.Errorf("%s: component %v is no module of the binary", file, c["name"])
		}
		var licences []any
		for _, id := range modules[i].ids {
			licences = append(licences, map[string]any{"license": map[string]any{"id": id}})
		}
		c["licenses"] = licences
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}
