// Package relay is a user-space TCP proxy with docker-proxy's algorithm, for
// machines that have no docker-proxy: accept, dial the container, copy both
// ways with half-closes passed on. Like docker-proxy it is a process of its
// own, takes the same flags, and says on descriptor 3 whether it listens. The
// copies are io.Copy between TCP connections, which is splice(2) on Linux, as
// in docker-proxy 28.5.2 (cmd/docker-proxy/tcp_proxy_linux.go).
package relay

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// Run runs the proxy with docker-proxy's arguments until ctx ends. It writes
// "0\n" to ready once it listens, or "1\n" and the reason.
func Run(ctx context.Context, args []string, ready io.WriteCloser) error {
	ln, target, err := listen(args)
	word := "0\n"
	if err != nil {
		word = "1\n" + err.Error()
	}
	_, werr := io.WriteString(ready, word)
	if err := errors.Join(err, werr, ready.Close()); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	for {
		client, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		go relay(client.(*net.TCPConn), target)
	}
}

func listen(args []string) (net.Listener, *net.TCPAddr, error) {
	var (
		f         = flag.NewFlagSet("proxy", flag.ContinueOnError)
		proto     = f.String("proto", "tcp", "protocol; only tcp")
		hostIP    = f.String("host-ip", "0.0.0.0", "address to listen on")
		hostPort  = f.Int("host-port", -1, "port to listen on")
		container = f.String("container-ip", "", "container's address")
		port      = f.Int("container-port", -1, "container's port")
	)
	f.SetOutput(io.Discard)
	if err := f.Parse(args); err != nil {
		return nil, nil, err
	}
	if *proto != "tcp" {
		return nil, nil, fmt.Errorf("unsupported protocol %q", *proto)
	}
	network := "tcp4"
	if ip := net.ParseIP(*hostIP); ip != nil && ip.To4() == nil {
		network = "tcp6" // and IPv4 not mapped into it, as docker-proxy does
	}
	target, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(*container, strconv.Itoa(*port)))
	if err != nil {
		return nil, nil, err
	}
	ln, err := net.Listen(network, net.JoinHostPort(*hostIP, strconv.Itoa(*hostPort)))
	return ln, target, err
}

// relay copies both ways until both are done.
func relay(client *net.TCPConn, target *net.TCPAddr) {
	defer client.Close()
	server, err := net.DialTCP("tcp", nil, target)
	if err != nil {
		return // the client sees its connection closed, as with docker-proxy
	}
	defer server.Close()
	var wg sync.WaitGroup
	oneWay := func(to, from *net.TCPConn) {
		defer wg.Done()
		_, _ = io.Copy(to, from) // an end that breaks off ends this direction
		_ = from.CloseRead()
		_ = to.CloseWrite()
	}
	wg.Add(2)
	go oneWay(server, client)
	go oneWay(client, server)
	wg.Wait()
}
