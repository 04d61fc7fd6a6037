package lab

import (
	"io"
	"os"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/paths/rootless"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func (s *site) slirp4netns() error {
	return s.behindTap(tapHolder{
		program: rootless.Slirp4netns,
		kind:    mode.HopSlirp,
		device:  rootless.SlirpTap,
		start:   (*site).startSlirp,
	})
}

const slirpSocket = runDir + "/api"

func (s *site) startSlirp(file string, c *container, ports []rootless.Port) (pid int, err error) {
	ns, err := s.private("mounts of slirp4netns")
	if err != nil {
		return 0, err
	}
	if err := ns.Do(func() error { return c.share(containerFile) }); err != nil {
		return 0, err
	}
	c.addr = rootless.SlirpAddr
	cmd, stderr := marked(file, rootless.SlirpArgs(containerFile, slirpSocket)...)
	if _, err := cmd.StdinPipe(); err != nil { // closed by Wait
		return 0, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	err = s.run(ns, cmd)
	w.Close()
	if err != nil {
		return 0, err
	}
	if err := r.SetReadDeadline(time.Now().Add(relayReadyTimeout)); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		return 0, stderr.Explain(err)
	}
	for _, p := range ports {
		err := ns.Do(func() error { return rootless.SlirpPublish(slirpSocket, p) })
		if err != nil {
			return 0, stderr.Explain(err)
		}
	}
	return cmd.Process.Pid, nil
}
