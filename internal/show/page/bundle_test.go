package page

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build.mjs writes the checksum of its sources into the bundle.
func TestBundleIsOfTheseSources(t *testing.T) {
	files, err := filepath.Glob("web/src/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	sum := sha256.New()
	for _, f := range append([]string{"web/build.mjs", "web/package-lock.json"}, files...) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(sum, "%s\n%s", strings.TrimPrefix(f, "web/"), b)
	}
	if first, _, _ := strings.Cut(asset("page.js"), "\n"); first != fmt.Sprintf(
		"/*! Made by build.mjs of sources %x", sum.Sum(nil)) {
		t.Error("assets/page.js was made of other sources: make page")
	}
}

// The packages of npm must be installed.
func TestBundleIsReproducible(t *testing.T) {
	node, err := exec.LookPath("node")
	if _, missing := os.Stat("web/node_modules/esbuild"); err != nil || missing != nil {
		t.Skip("node or web/node_modules is missing; make page-check installs and compares")
	}
	out := filepath.Join(t.TempDir(), "page.js")
	if text, err := exec.Command(node, "web/build.mjs", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, []byte(asset("page.js"))) {
		t.Error("assets/page.js is not what web/build.mjs makes: make page")
	}
}

// Texts that do not fit get shorter, and stay as they are if they cannot. The packages of npm must
// be installed.
func TestFit(t *testing.T) {
	node, err := exec.LookPath("node")
	if _, missing := os.Stat("web/node_modules/@observablehq/plot"); err != nil || missing != nil {
		t.Skip("node or web/node_modules is missing")
	}
	const script = `const pen = {measureText: (s) => ({width: 10 * s.length})};
		globalThis.document = {createElement: () => ({getContext: () => pen})};
		const {fit} = await import("./src/common.js");
		for (const [text, space] of [["abc", 10], ["abcde", 10], ["abcdefg", 10], ["abcdefg", 60],
			["abcdefg", 70]]) console.log(fit(text, space));`
	run := exec.Command(node, "--input-type=module", "--eval", script)
	run.Dir = "web"
	got, err := run.CombinedOutput()
	if want := "abc\nabcde\nabc…g\nabcd…g\nabcdefg\n"; err != nil || string(got) != want {
		t.Errorf("%v: %s, want %s", err, got, want)
	}
}

// The looks of 64 lines differ, and no list of values is too long. The packages of npm must be
// installed.
func TestSeriesAndEnds(t *testing.T) {
	node, err := exec.LookPath("node")
	if _, missing := os.Stat("web/node_modules/@observablehq/plot"); err != nil || missing != nil {
		t.Skip("node or web/node_modules is missing")
	}
	const script = `globalThis.document = {createElement: () => ({getContext: () => ({})})};
		const {maxOf, minOf, series} = await import("./src/common.js");
		const looks = new Set([...Array(64).keys()].map((i) => JSON.stringify(series(i))));
		const many = [...Array(300000).keys()];
		console.log(looks.size, minOf(many), maxOf(many), maxOf([-1], 0), minOf([1], 0));`
	run := exec.Command(node, "--input-type=module", "--eval", script)
	run.Dir = "web"
	if got, err := run.CombinedOutput(); err != nil || string(got) != "64 0 299999 0 0\n" {
		t.Errorf("%v: %s", err, got)
	}
}

// The bundle keeps its packages' licences and cannot end its script element.
func TestBundle(t *testing.T) {
	b := asset("page.js")
	for _, s := range []string{"@observablehq/plot 0.", "Copyright 2020-2025 Observable",
		"d3-scale 4.", "Copyright 2010-"} {
		if !strings.Contains(b, s) {
			t.Errorf("the bundle lacks %q", s)
		}
	}
	if s := strings.ToLower(b); strings.Contains(s, "</script") || strings.Contains(s, "<!--") {
		t.Error("the bundle would end its script element")
	}
}
