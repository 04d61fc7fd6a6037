package internal

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// target is a target of the Makefile with help.
var target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*## .*\n((?:\t.*\n)*)`)

// Each target that tests runs in the workflow: by itself, or as a part of make test.
func TestTargetsAreInTheWorkflow(t *testing.T) {
	elsewhere := map[string]string{
		"test":          "sudo … make test",
		"test-vm":       "a part of make test",
		"test-docker":   "a part of make test",
		"test-rootless": "a part of make versions",
		"test-traffic":  "a part of make versions",
		"test-llm":      "fetches a language model of 127 MB",
	}
	workflow := read(t, "../.github/workflows/test.yml")
	tests := regexp.MustCompile(`^test|-check$`)
	n := 0
	for _, m := range target.FindAllStringSubmatch(read(t, "../Makefile"), -1) {
		name := m[1]
		if !tests.MatchString(name) {
			continue
		}
		n++
		if elsewhere[name] == "" && !regexp.MustCompile(`make `+name+`\b`).MatchString(workflow) {
			t.Errorf("make %s runs in no workflow", name)
		}
	}
	if n < 8 {
		t.Fatalf("the Makefile has %d targets that test", n)
	}
}

// With a comment behind it, a value ends with a blank, and few programs understand GOGC="400 ".
func TestExportedValuesEndWithoutBlank(t *testing.T) {
	exports := regexp.MustCompile(`(?m)^export .*$`).FindAllString(read(t, "../Makefile"), -1)
	for _, line := range exports {
		if strings.Contains(line, "#") || strings.HasSuffix(line, " ") {
			t.Errorf("a blank ends the value of %s", line)
		}
	}
	if len(exports) < 4 {
		t.Fatalf("the Makefile exports %d variables", len(exports))
	}
}

// What a job needs for what it runs. A job that lacks it fails there only.
func TestJobsHaveWhatTheyNeed(t *testing.T) {
	bounds := map[string]time.Duration{}
	for _, m := range target.FindAllStringSubmatch(read(t, "../Makefile"), -1) {
		for _, limit := range regexp.MustCompile(`-timeout (\d+[mh])\b`).FindAllStringSubmatch(m[2],
			-1) {
			d, err := time.ParseDuration(limit[1])
			if err != nil {
				t.Fatal(err)
			}
			bounds[m[1]] = max(bounds[m[1]], d)
		}
	}
	_, text, _ := strings.Cut(read(t, "../.github/workflows/test.yml"), "\njobs:\n")
	heads := regexp.MustCompile(`(?m)^  ([a-z-]+):\n`).FindAllStringSubmatchIndex(text, -1)
	for i, at := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		name, job := text[at[2]:at[3]], text[at[1]:end]
		has := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(job) }
		for _, need := range []struct{ where, then, why string }{
			{``, `(?m)^    timeout-minutes: \d+$`, "GitHub's own limit is six hours"},
			{`make test(-rootless)?\b[^-]`, `apparmor_restrict_unprivileged_userns`,
				"Ubuntu lets no ordinary user make a namespace"},
			{`(?m)^    container:`, `ca-certificates.* git .*make`, "Debian's image has none of them"},
			{`(?m)^    container:`, `safe\.directory`, "the files belong to another user"},
			{`(?s)\n    container:.*make test\b[^-]`, ` gcc .*libc6-dev`,
				"the race detector needs a C compiler"},
		} {
			if has(need.where) && !has(need.then) {
				t.Errorf("job %s lacks %s: %s", name, need.then, need.why)
			}
		}
		limit := regexp.MustCompile(`timeout-minutes: (\d+)`).FindStringSubmatch(job)
		if limit == nil {
			continue
		}
		minutes, err := strconv.Atoi(limit[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`make ([a-z-]+)`).FindAllStringSubmatch(job, -1) {
			if d := bounds[m[1]]; d > 0 && time.Duration(minutes)*time.Minute <= d {
				t.Errorf("job %s ends after %d minutes, make %s after %s, when it would say where it hangs",
					name, minutes, m[1], d)
			}
		}
	}
	if len(heads) < 10 {
		t.Errorf("the workflow has %d jobs", len(heads))
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
