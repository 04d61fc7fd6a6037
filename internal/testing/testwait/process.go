package testwait

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// InCall waits until a thread of a process stays in one of these system calls.
func InCall(t testing.TB, limit time.Duration, pid int, calls ...int) {
	t.Helper()
	const stays = 5 // times in a row
	seen := map[string]int{}
	Until(t, limit, "process "+strconv.Itoa(pid)+" waits in a system call", func() bool {
		now := map[string]int{}
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/[0-9]*/syscall")
		for _, f := range files {
			b, err := os.ReadFile(f) // number, arguments and position of the call; or "running"
			if err != nil {
				continue
			}
			number, _, _ := strings.Cut(string(b), " ")
			if n, err := strconv.Atoi(number); err == nil && slices.Contains(calls, n) {
				now[f+string(b)] = seen[f+string(b)] + 1
			}
		}
		seen = now
		for _, times := range seen {
			if times == stays {
				return true
			}
		}
		return false
	})
}
