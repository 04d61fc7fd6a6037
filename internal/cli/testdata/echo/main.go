// Echo runs in the containers of the tests of `toll ports`. It answers connections, or checks
// whether another echo answers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const patience = 700 * time.Millisecond

func main() {
	switch os.Args[1] {
	case "listen": // addresses
		for _, addr := range os.Args[2:] {
			if err := listen(addr); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		fmt.Println("ready")
		select {}
	case "dial": // addresses
		var all sync.WaitGroup
		for _, addr := range os.Args[2:] {
			all.Go(func() { fmt.Printf("%s %s\n", addr, dial(addr, 1, 0)) })
		}
		all.Wait()
	case "flood": // an address, until it is killed
		conn, err := net.Dial("tcp", os.Args[2])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("flooding", os.Getpid())
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		for b := make([]byte, 4<<10); err == nil; _, err = conn.Write(b) {
		}
	case "hold": // an address, MiB
		mib, _ := strconv.Atoi(os.Args[3])
		fmt.Println(dial(os.Args[2], mib<<20, time.Hour))
	}
}

// listen answers at addr in the background. With REUSEPORT in the environment, several programs may
// share addr.
func listen(addr string) error {
	c := net.ListenConfig{}
	if os.Getenv("REUSEPORT") != "" {
		c.Control = func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		}
	}
	ln, err := c.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}()
		}
	}()
	return nil
}

func dial(addr string, bytes int, hold time.Duration) string {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			return "refused"
		}
		return "silent"
	}
	defer conn.Close()
	go func() { _, _ = conn.Write(make([]byte, bytes)) }()
	if hold == 0 {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
	}
	if _, err := io.CopyN(io.Discard, conn, int64(bytes)); err != nil {
		return "silent"
	}
	if hold > 0 {
		fmt.Println("held")
	}
	time.Sleep(hold)
	return "answered"
}
