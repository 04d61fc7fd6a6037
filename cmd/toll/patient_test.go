package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patientEnv makes the toll of this binary patient.
const patientEnv = "TOLL_TEST_PATIENT"

// patient runs toll, and again with more rounds if the machine was too busy.
func patient(args []string) int {
	os.Unsetenv(patientEnv)
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	for i := 1; ; i++ {
		var out, errOut bytes.Buffer
		cmd := exec.Command(self, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &out, &errOut
		if err := cmd.Run(); cmd.ProcessState == nil {
			fmt.Fprintln(os.Stderr, err)
			return exitFailed
		}
		code := cmd.ProcessState.ExitCode()
		if code == exitOK || i == tries || !tooBusy(out.String()+outputOf(args)) || !moreRounds(args) {
			os.Stdout.Write(out.Bytes())
			os.Stderr.Write(errOut.Bytes())
			return code
		}
	}
}

// runPatiently runs a binary to its end, and again so.
func runPatiently(t *testing.T, bin string, user *syscall.Credential, args ...string) (r *tollRun, code int) {
	t.Helper()
	const limit = 3 * time.Minute
	for i := 1; ; i++ {
		r = startToll(t, bin, user, args...)
		code, _ = r.wait(t, limit)
		if code == exitOK || i == tries || !tooBusy(r.out.String()) || !moreRounds(args) {
			return r, code
		}
	}
}

// tooBusy reports whether visits failed because a machine that others use kept
// their loads off its CPUs: such a visit is no result, and the report says so. What
// failed otherwise is not excused.
func tooBusy(report string) bool {
	said := strings.Join(strings.Fields(report), " ")
	busy := strings.Contains(said, "the machine was too busy") || strings.Contains(said, "the load ended before the window did")
	return busy && !strings.Contains(said, "was not witnessed")
}

// outputOf is what is in the file that --output names, if there is one.
func outputOf(args []string) string {
	at := slices.Index(args, "--output") + 1
	if at == 0 || at == len(args) {
		return ""
	}
	b, _ := os.ReadFile(args[at])
	return string(b)
}

// moreRounds trebles the rounds that args ask for, so that each cell has more
// chances; false if they ask for none.
func moreRounds(args []string) bool {
	at := slices.Index(args, "--rounds") + 1
	if at == 0 || at == len(args) {
		return false
	}
	n, err := strconv.Atoi(args[at])
	args[at] = strconv.Itoa(3 * n)
	return err == nil
}
