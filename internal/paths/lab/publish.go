package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/paths/recipe"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

func (s *site) publishNAT() error { return s.translated(daemon{noProxy: true}) }

// publishProxy measures docker-proxy. Connections reach it if clients dial a loopback address or
// are on the same bridge; for remote clients over IPv4, Docker must write no rules.
func (s *site) publishProxy() error {
	return s.relayed(daemon{noIPTables: s.path.Spec.From == mode.FromRemote &&
		s.path.Spec.To.Four()})
}

func (s *site) publish() error {
	d := daemon{noProxy: s.lab.ProxyPath == noProxy}
	if recipe.Proxied(s.path.Spec) && !d.noProxy {
		return s.relayed(d)
	}
	return s.translated(d)
}

func (s *site) publishDefault() error {
	s.home = docker0
	return s.publish()
}

func (s *site) translated(d daemon) error {
	if err := s.dockerServers(d, true); err != nil {
		return err
	}
	s.dialPublished()
	p := s.path
	p.Guards = []path.Hop{local.Unused(s.loHop(s.a.ns, s.a.name))}
	if !d.noProxy {
		if err := s.quietProxies(); err != nil {
			return err
		}
	}
	if p.Spec.From == mode.FromHost && !d.noProxy {
		p.Guards = append(p.Guards, s.noNAT())
	}
	return s.placeClients(func() error {
		if p.Spec.From == mode.FromContainer {
			return s.dockerClients(d)
		}
		return s.remoteClients(dockerNet{network: remoteNet})
	})
}

func (s *site) relayed(d daemon) error {
	p := s.path
	if err := s.dockerServers(d, true); err != nil {
		return err
	}
	s.dialPublished()
	listen := s.path.Spec.Anywhere()
	if d.rootless.IsValid() {
		listen = s.path.Spec.Loopback()
	}
	var proxies []path.Hop
	for i := range s.Servers {
		for n, port := range s.Ports(i) {
			proxy, err := s.startProxy(listen, port)
			if err != nil {
				return err
			}
			if n == 0 { // the second port's proxy counts with it
				proxy.Clients = p.Spec.TalkTo(i)
				proxies = append(proxies, proxy)
			}
		}
		if !d.noIPTables {
			p.Guards = append(p.Guards, s.portRule(
				mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Untouched))
		}
	}
	if !d.noIPTables {
		p.Guards = append(p.Guards, s.noNAT())
	}
	s.Give(mode.HopProxy, proxies...)
	if p.Spec.From == mode.FromRemote {
		p.Guards = append(p.Guards, local.Unused(s.loHop(s.a.ns, s.a.name)))
	}
	return s.placeClients(func() error { return s.dockerClients(d) })
}

func (s *site) quietProxies() error {
	for i := range s.Servers {
		for _, port := range s.Ports(i) {
			proxy, err := s.startProxy(s.path.Spec.Anywhere(), port)
			if err != nil {
				return err
			}
			local.Quiet(s.path, s.a.ns, proxy)
		}
	}
	return nil
}

// fast builds a path on which toll fast bypasses docker-proxy. The proxy becomes a guard.
func (s *site) fast() error {
	if err := s.dockerServers(daemon{}, true); err != nil {
		return err
	}
	s.dialPublished()
	f, err := local.NewFast(s.path, s.a.ns)
	if err != nil {
		return err
	}
	for i := range s.Servers {
		for _, port := range s.Ports(i) {
			proxy, err := s.startProxy(s.path.Spec.Anywhere(), port)
			if err == nil {
				err = f.Lead(proxy, port.Dial, port.Target)
			}
			if err != nil {
				return err
			}
		}
		s.path.Guards = append(s.path.Guards,
			s.portRule(mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Untouched))
	}
	s.path.Guards = append(s.path.Guards, s.noNAT(), local.Unused(s.loHop(s.a.ns, s.a.name)))
	s.PlaceClients(on(s.a))
	return nil
}

func (s *site) fastLinks() error {
	if err := s.fast(); err != nil {
		return err
	}
	return local.LargerPackets(s.a.ns, append(ports(s.Servers), s.home.bridge)...)
}

func (s *site) publishedRules() []path.Hop {
	return s.EachServer(func(i int) path.Hop {
		return s.portRule(mode.HopDNAT, "nat", "DOCKER", tagPublish, i, path.Matches)
	})
}

// dialled returns the address of the server's machine that the path's clients dial.
func (s *site) dialled() netip.Addr {
	if s.path.Spec.To.Over4() == mode.ToLoopback {
		return s.path.Spec.Loopback()
	}
	return s.a.Addr()
}

func (s *site) dialPublished() {
	for i := range s.Dial {
		s.Dial[i] = netip.AddrPortFrom(s.dialled(), s.published(i))
	}
}

const ownProxy = "own"

const noProxy = "off"

const proxyReadyTimeout = 5 * time.Second

// tryProxy returns an error if the proxy that the user named cannot be run. toll does not fall back
// to another proxy.
func (l *Lab) tryProxy() error {
	switch l.ProxyPath {
	case "", ownProxy:
		return nil
	case noProxy:
		return &machine.UnsupportedError{Missing: "with --proxy off the lab's Docker starts no docker-proxy",
			Remedy: "without --proxy off"}
	}
	if _, err := exec.LookPath(l.ProxyPath); err != nil {
		return &machine.UnsupportedError{Missing: "the proxy " + l.ProxyPath + " cannot be run",
			Remedy: "--proxy with the file of docker-proxy, or --proxy own", Err: err}
	}
	return nil
}

// findProxy returns the proxy's file and its name. The file is "" for toll's own proxy.
func (l *Lab) findProxy() (file, name string) {
	const own = "toll's own proxy with docker-proxy's algorithm"
	if l.ProxyPath == ownProxy {
		return "", own
	}
	candidates := []string{l.ProxyPath}
	if l.ProxyPath == "" {
		candidates = []string{"docker-proxy", "/usr/libexec/docker/docker-proxy",
			"/usr/bin/docker-proxy", "/usr/sbin/docker-proxy"}
	}
	for _, c := range candidates {
		if f, err := exec.LookPath(c); err == nil {
			return f, "docker-proxy" + proxyVersion(f)
		}
	}
	return "", own
}

var proxyVersions sync.Map

func proxyVersion(file string) string {
	if v, ok := proxyVersions.Load(file); ok {
		return v.(string)
	}
	v := local.ProxyVersion(file)
	proxyVersions.Store(file, v)
	return v
}

// startProxy starts docker-proxy and waits until it listens. Like dockerd, it passes the pipe for
// the proxy's report as descriptor 3.
func (s *site) startProxy(at netip.Addr, p recipe.Port) (path.Hop, error) {
	listen, target := p.Dial.Port(), p.Target
	file, name := s.lab.findProxy()
	proto := "tcp"
	if s.path.Spec.UDP {
		proto = "udp"
	}
	args := []string{"-proto", proto,
		"-host-ip", at.String(), "-host-port", strconv.Itoa(int(listen)),
		"-container-ip", target.Addr().String(), "-container-port",
		strconv.Itoa(int(target.Port()))}
	if file == "" {
		file, args = self, append([]string{proxyArg}, args...)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return path.Hop{}, fmt.Errorf("start proxy: %w", err)
	}
	defer r.Close()
	cmd, stderr := marked(file, args...)
	// toll's own proxy exits when this pipe is closed.
	if _, err := cmd.StdinPipe(); err != nil {
		return path.Hop{}, errors.Join(fmt.Errorf("start proxy: %w", err), w.Close())
	}
	// dockerd passes a socket of TCP. A docker-proxy that opens its own has MPTCP from Engine 29
	// on.
	cmd.Env = append(cmd.Env, "GODEBUG=multipathtcp=0")
	cmd.ExtraFiles = []*os.File{w}
	err = s.run(s.engine.ns, cmd)
	w.Close()
	if err != nil {
		return path.Hop{}, fmt.Errorf("start proxy %s: %w", file, err)
	}
	if err := awaitProxy(r); err != nil {
		return path.Hop{}, fmt.Errorf("start proxy %s: %w", file, errors.Join(err, stderr.Err()))
	}
	// The server is in a container, so every connection that the machine accepted is the proxy's.
	return local.ProxyHop(s.path, local.Proxy{Space: s.engine.ns, PID: cmd.Process.Pid,
		Listens: listen, Target: target, Beside: s.engine != s.a}, name,
		s.engine.name), nil
}

// awaitProxy reads docker-proxy's report, which is "0\n" if the proxy listens, or "1\n" and the
// reason.
func awaitProxy(r *os.File) error {
	if err := r.SetReadDeadline(time.Now().Add(proxyReadyTimeout)); err != nil {
		return err
	}
	br := bufio.NewReader(r)
	word, err := br.ReadString('\n')
	switch {
	case err != nil:
		return fmt.Errorf("wait for it to listen: %w", err)
	case word == "0\n":
		return nil
	}
	why, _ := io.ReadAll(io.LimitReader(br, local.TailBytes))
	return errors.New(printable.Words(string(why)))
}
