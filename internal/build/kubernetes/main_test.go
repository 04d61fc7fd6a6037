package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/build/agent"
	"github.com/bridgetoll/bridgetoll/internal/build/path/pathtest"
)

const testVersion = "test"

// TestMain is also the program in the pods of the conformance suite: an agent, whose workers are
// the ends of exchanges.
func TestMain(m *testing.M) {
	pathtest.Main()
	if len(os.Args) == 4 && os.Args[1] == agent.Arg && os.Args[2] == "--stdio" {
		if err := asAgent(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// standard is the standard input, some of which was read, and the standard output.
type standard struct{ io.Reader }

func (standard) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (standard) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

func asAgent(id string) error {
	fmt.Printf("\n%s agent\n", id)
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	length, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	size, err := strconv.Atoi(length)
	if err != nil {
		return err
	}
	bundle := make([]byte, size)
	if _, err := io.ReadFull(in, bundle); err != nil {
		return err
	}
	carrier, err := agent.AtAgent(standard{in})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-carrier.CloseChan(); cancel() }()
	return agent.Main(ctx, agent.Config{Bundle: bundle, Open: carrier.Open, ID: id, Name: name, Version: testVersion, Starts: []string{pathtest.Arg}})
}
