// Package browsertest runs a page in a headless Chromium, for tests.
package browsertest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Run opens a page without a window and returns its document as drawn, in HTML, and the browser's
// log. Without a Chromium the test is skipped, or fails where one is required.
func Run(t *testing.T, page string, flags ...string) (drawn, log []byte) {
	t.Helper()
	const patience = 5 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, find(t), append([]string{"--headless", "--no-sandbox",
		"--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir(),
		"--disable-background-networking", "--disable-component-update", "--disable-default-apps",
		"--disable-sync", "--disable-extensions", "--disable-domain-reliability", "--no-first-run",
		"--no-pings", "--enable-logging=stderr", "--log-level=0",
		"--virtual-time-budget=2000", "--dump-dom"}, append(flags, page)...)...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	return out.Bytes(), said.Bytes()
}

func find(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "google-chrome", "google-chrome-stable",
		"chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("no Chromium is installed")
	}
	t.Skip("no Chromium is installed")
	return ""
}
