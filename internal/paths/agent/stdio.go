package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// MaxBundle is the most bytes of a Swarm secret.
const MaxBundle = 500 << 10

// Stdio runs an agent on standard input and output, and closes its engine, if any. After announcing
// itself, it reads a line with the bundle's length and the agent's name, then the bundle. It
// returns nil if the other end has gone, because no one reads an error then.
func Stdio(ctx context.Context, c Config) error {
	if _, err := fmt.Printf("\n%s agent\n", c.ID); err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	length, name, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	size, err := strconv.Atoi(length)
	if err != nil || size < 0 || size > MaxBundle {
		return fmt.Errorf("read the bundle: invalid length %q", length)
	}
	c.Name, c.Bundle = name, make([]byte, size)
	if _, err := io.ReadFull(in, c.Bundle); err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	carrier, err := AtAgent(standard{in})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // also ends pending calls
		<-carrier.CloseChan()
		cancel()
	}()
	c.Open = carrier.Open
	err = Main(ctx, c)
	if c.Engine != nil {
		err = errors.Join(err, c.Engine.Close())
	}
	if carrier.IsClosed() {
		return nil
	}
	return err
}

// standard joins the rest of standard input and standard output to one connection.
type standard struct{ io.Reader }

func (standard) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (standard) Close() error {
	return errors.Join(os.Stdin.Close(), os.Stdout.Close())
}
