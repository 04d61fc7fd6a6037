package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMerge(t *testing.T) {
	dir := t.TempDir()
	notes, page := filepath.Join(dir, "notes"), filepath.Join(dir, "page.md")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(page, "# Versions\n\n"+head+
		"| iperf3 | 3.9 (2026-01-01) | 3.12 (2026-01-01) | toll run | --bidir has keys of its "+
		"own |\n\nEnd.\n")
	write(notes, "2026-11-28\tiperf3\t3.22\ttoll run\n2026-11-28\tiperf3\t3.12\tmake "+
		"bench\n2026-11-27\tiperf3\t3.9\tmake bench\n2026-11-28\tDocker Engine\t20.10.24\ttoll "+
		"ports\n2026-11-28\tDocker Engine\t29.0.0\ttoll ports\n")
	for range 2 { // the second time changes nothing
		if err := merge(notes, page); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(page)
		const want = "# Versions\n\n" + head +
			"| Docker Engine | 20.10.24 (2026-11-28) | 29.0.0 (2026-11-28) | toll ports |  |\n" +
			"| iperf3 | 3.9 (2026-11-27) | 3.22 (2026-11-28) | make bench, toll run | --bidir " +
			"has keys of its own |\n\nEnd.\n"
		if err != nil || string(got) != want {
			t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
		}
	}
	write(notes, "x\n")
	if err := merge(notes, page); err == nil {
		t.Error("a line that is no note was merged")
	}
}
