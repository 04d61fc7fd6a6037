// Package relay is a user-space proxy with docker-proxy's algorithm, for machines without
// docker-proxy. It takes docker-proxy's flags and reports on descriptor 3 whether it listens. TCP
// is copied by io.Copy, which is splice(2) on Linux, as in docker-proxy 28.5.2
// (cmd/docker-proxy/tcp_proxy_linux.go), and half-closes are passed on.
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

// Run runs the proxy with docker-proxy's arguments until ctx ends. It writes "0\n" to ready once it
// listens, or "1\n" and the reason.
func Run(ctx context.Context, args []string, ready io.WriteCloser) error {
	return Serve(ctx, args, ready, relay)
}

// Serve does the same as Run, but relays each client's TCP connection by the given function, which
// closes it.
func Serve(ctx context.Context, args []string, ready io.WriteCloser,
	relay func(client *net.TCPConn, target *net.TCPAddr)) error {
	f, err := parse(args)
	if err == nil && f.proto == "udp" {
		return runUDP(ctx, f, ready)
	}
	var (
		ln     net.Listener
		target *net.TCPAddr
	)
	if err == nil {
		ln, target, err = listen(f)
	}
	if err := say(ready, err); err != nil {
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

type flags struct {
	proto              string
	hostIP, container  string
	hostPort, destPort int
}

func parse(args []string) (f flags, err error) {
	fs := flag.NewFlagSet("proxy", flag.ContinueOnError)
	fs.StringVar(&f.proto, "proto", "tcp", "protocol: tcp, udp")
	fs.StringVar(&f.hostIP, "host-ip", "0.0.0.0", "address to listen on")
	fs.IntVar(&f.hostPort, "host-port", -1, "port to listen on")
	fs.StringVar(&f.container, "container-ip", "", "container's address")
	fs.IntVar(&f.destPort, "container-port", -1, "container's port")
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		return f, err
	}
	if f.proto != "tcp" && f.proto != "udp" {
		return f, fmt.Errorf("unsupported protocol %q", f.proto)
	}
	return f, nil
}

// network does not map IPv4 into IPv6, like docker-proxy.
func (f flags) network() string {
	if ip := net.ParseIP(f.hostIP); ip != nil && ip.To4() == nil {
		return f.proto + "6"
	}
	return f.proto + "4"
}

func (f flags) host() string   { return net.JoinHostPort(f.hostIP, strconv.Itoa(f.hostPort)) }
func (f flags) target() string { return net.JoinHostPort(f.container, strconv.Itoa(f.destPort)) }

func say(ready io.WriteCloser, err error) error {
	word := "0\n"
	if err != nil {
		word = "1\n" + err.Error()
	}
	_, werr := io.WriteString(ready, word)
	return errors.Join(err, werr, ready.Close())
}

func listen(f flags) (net.Listener, *net.TCPAddr, error) {
	target, err := net.ResolveTCPAddr("tcp", f.target())
	if err != nil {
		return nil, nil, err
	}
	var plain net.ListenConfig // as in docker-proxy: Go's default is Multipath TCP
	plain.SetMultipathTCP(false)
	ln, err := plain.Listen(context.Background(), f.network(), f.host())
	return ln, target, err
}

func relay(client *net.TCPConn, target *net.TCPAddr) {
	defer client.Close()
	server, err := net.DialTCP("tcp", nil, target)
	if err != nil {
		return // closes the client's connection, as docker-proxy does
	}
	defer server.Close()
	var wg sync.WaitGroup
	oneWay := func(to, from *net.TCPConn) {
		defer wg.Done()
		_, _ = io.Copy(to, from) // a broken end ends this direction
		_ = from.CloseRead()
		_ = to.CloseWrite()
	}
	wg.Add(2)
	go oneWay(server, client)
	go oneWay(client, server)
	wg.Wait()
}
