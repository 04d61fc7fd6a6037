package pathtest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

const tiedEnv = "PATHTEST_TIED"

// What a killed test has started ends.
func TestStartTied(t *testing.T) {
	if os.Getenv(tiedEnv) != "" {
		c := exec.Command("sleep", "1000")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
		defer pathtest.StartTied(t, c)()
		fmt.Println("started", c.Process.Pid)
		_ = c.Wait()
		return
	}
	self := exec.Command("/proc/self/exe", "-test.run=^TestStartTied$")
	self.Env = append(os.Environ(), tiedEnv+"=yes")
	out, err := self.StdoutPipe()
	if err != nil || self.Start() != nil {
		t.Fatal(err)
	}
	pid := ""
	for lines := bufio.NewScanner(out); pid == "" && lines.Scan(); {
		_, pid, _ = strings.Cut(lines.Text(), "started ")
	}
	_ = self.Process.Kill()
	_ = self.Wait()
	if pid == "" {
		t.Fatal("it starts nothing")
	}
	testwait.Until(t, time.Minute, "sleep "+pid+" ends", func() bool {
		line, err := os.ReadFile("/proc/" + pid + "/cmdline")
		return err != nil || !strings.HasPrefix(string(line), "sleep")
	})
}
