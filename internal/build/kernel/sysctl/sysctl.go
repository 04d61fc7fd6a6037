// Package sysctl reads and writes kernel parameters of the calling thread's
// network namespace. Call it inside netns.NS.Do.
package sysctl

import (
	"fmt"
	"os"
	"strings"
)

// file is a key's place. /proc/thread-self would not do: /proc/sys/net shows
// the namespace of the thread that opens it.
func file(key string) string { return "/proc/sys/" + strings.ReplaceAll(key, ".", "/") }

// Get returns the value of key, "net.ipv4.ip_forward" say, with runs of
// white space folded.
func Get(key string) (string, error) {
	b, err := os.ReadFile(file(key))
	if err != nil {
		return "", fmt.Errorf("read sysctl %s: %w", key, err)
	}
	return strings.Join(strings.Fields(string(b)), " "), nil
}

// Set writes value and reads it back: some keys accept a write and ignore it
// outside the first namespace.
func Set(key, value string) error {
	if err := os.WriteFile(file(key), []byte(value), 0); err != nil {
		return fmt.Errorf("set sysctl %s=%s: %w", key, value, err)
	}
	got, err := Get(key)
	if err != nil {
		return err
	}
	if got != value {
		return fmt.Errorf("set sysctl %s=%s: the kernel kept %s", key, value, got)
	}
	return nil
}
