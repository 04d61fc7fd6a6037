package peer

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// A killed copy leaves nothing. Copies that ended hours ago are removed, those in progress stay.
func TestCopy(t *testing.T) {
	program := "#!/bin/sh\necho MARK agent\nrm \"$0\"\n"
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed-%t", killed), func(t *testing.T) {
			dir := t.TempDir()
			hours := time.Now().Add(-2 * time.Hour)
			for name, at := range map[string]time.Time{"old": hours, "others": time.Now()} {
				old := dir + "/.bridgetoll-copy-" + name
				if err := errors.Join(os.Mkdir(old, 0o700), os.WriteFile(old+"/toll", nil, 0o700),
					os.Chtimes(old+"/toll", at, at), os.Chtimes(old, hours, hours)); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sh")
			cmd.Env = append(os.Environ(), "TMPDIR="+dir)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			hear := func(word string) {
				t.Helper()
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), "MARK "+word) {
						return
					}
				}
				t.Fatalf("the shell never said %s: %v", word, lines.Err())
			}
			say := func(text string) {
				t.Helper()
				if _, err := in.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			left := func() int {
				found, err := filepath.Glob(dir + "/.bridgetoll-copy-*")
				if err != nil {
					t.Fatal(err)
				}
				return len(found) - 1 // others'
			}
			say(strings.NewReplacer("SUDO", "''").Replace(boot))
			hear("have")
			say(fmt.Sprintf("copy %d\n", len(program)))
			hear("send")
			if killed {
				say(program[:10])
				if left() != 1 {
					t.Error("there is no copy to remove")
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			} else {
				say(program)
				hear("agent")
			}
			_ = in.Close()
			_ = cmd.Wait()
			testwait.Until(t, time.Minute, "the copy is removed", func() bool {
				return left() == 0
			})
		})
	}
}
