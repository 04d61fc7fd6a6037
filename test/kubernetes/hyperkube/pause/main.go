// Pause is the first process of the test cluster's pods, and runs in the user pods of its tests. It
// waits for a signal to end, and reaps orphaned processes.
//
//	pause                 waits
//	pause serve PORT      answers each line that comes over TCP with itself
//	pause send ADDR N     sends a line of N bytes and waits for the answer
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "serve":
		go wait()
		err = serve(args[1])
	case len(args) == 3 && args[0] == "send":
		err = send(args[1], args[2])
	default:
		wait()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func wait() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			os.Exit(0)
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

func serve(port string) error {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			line, _ := bufio.NewReader(c).ReadString('\n')
			fmt.Fprint(c, line)
		}()
	}
}

func send(addr, bytes string) error {
	n, err := strconv.Atoi(bytes)
	if err != nil {
		return err
	}
	const limit = 10 * time.Second
	c, err := net.DialTimeout("tcp", addr, limit)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(limit))
	line := strings.Repeat("x", n) + "\n"
	if _, err := c.Write([]byte(line)); err != nil {
		return err
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); got != line {
		return fmt.Errorf("%d of %d bytes came back: %v", len(got), len(line), err)
	}
	return nil
}
