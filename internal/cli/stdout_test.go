package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// testdata/fake/lost.txtar has what commands print besides their help.
func TestHelpThatCannotBeWritten(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	const want = "toll: error: write output: write /dev/full: no space left on device\n" +
		"toll: hint: free some space\n"
	n := 0
	var try func(c *cobra.Command)
	try = func(c *cobra.Command) {
		n++
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		var said bytes.Buffer
		code := run(context.Background(), env{stdout: full, stderr: &said}, args)
		if code != exitFailed || said.String() != want {
			t.Errorf("toll %q: exit code %d, %s", args, code, said.String())
		}
		for _, sub := range c.Commands() {
			if !sub.IsAdditionalHelpTopicCommand() {
				try(sub)
			}
		}
	}
	try(newRoot(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}))
	if n < 30 {
		t.Errorf("only %d commands", n)
	}
}
