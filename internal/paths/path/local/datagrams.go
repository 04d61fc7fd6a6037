package local

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/sock"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const readAndWritten = "read and written"

// OfProcess reports whether the hop counts all that a process read and wrote, for any path.
func OfProcess(h path.Hop) bool { return h.Counts[0].Device == readAndWritten }

// datagrams completes the hop of a process that relays UDP. UDP sockets do not count bytes.
//
// /proc/PID/io counts the bytes of read(2) and write(2), which programs use on one side only.
// docker-proxy (udp_proxy_linux.go, 20.10 to 29.8), RootlessKit's builtin port driver (1.1 to 3.3)
// and rootlessport use them for the sockets to the server, so bytes to the server are counted once,
// even if they are lost later. slirp4netns 1.2 and pasta (2023_03 to 2025_05) use them for the tap
// device. gvisor-tap-vsock 0.8 uses them towards the tap device and, for outward connections, also
// for its sockets. pasta uses neither for spliced sockets.
func (p Proxy) datagrams(h path.Hop) path.Hop {
	if p.Dials != nil && h.Kind == mode.HopPasta {
		h.Expect, h.Read = path.Delivers, p.delivered()
		return h
	}
	wrote, read := path.Counter{Device: readAndWritten, Sent: true},
		path.Counter{Device: readAndWritten}
	h.Counts = [2]path.Counter{wrote, read}
	switch {
	case p.Frames == nil:
		h.Read = func() (sample.Counters, error) { return processIO(p.PID) }
	case p.Outward && h.Kind == mode.HopGvisor:
		h.Expect, h.Counts = path.CarriesBoth, [2]path.Counter{wrote}
		h.Read = p.framed(func(io, frames sample.Counters) sample.Counters {
			return sample.Counters{ForwardBytes: io.ForwardBytes,
				ForwardPackets: frames.ForwardPackets + frames.BackwardPackets}
		})
	case p.Outward:
		h.Counts = [2]path.Counter{read, wrote}
		h.Read = p.framed(func(io, frames sample.Counters) sample.Counters {
			frames.ForwardBytes, frames.BackwardBytes = io.BackwardBytes, io.ForwardBytes
			return frames
		})
	default:
		h.Read = p.framed(func(io, frames sample.Counters) sample.Counters {
			frames.ForwardBytes, frames.BackwardBytes = io.ForwardBytes, io.BackwardBytes
			return frames
		})
	}
	return h
}

// framed returns a reader that combines what the process wrote and read with the number of frames
// on the tap device, because the process also wrote and read the frames' headers.
func (p Proxy) framed(as func(io, frames sample.Counters) sample.Counters) Reader {
	return func() (c sample.Counters, err error) {
		io, err := processIO(p.PID)
		if err != nil {
			return c, err
		}
		frames, err := p.Frames()
		return as(io, frames), err
	}
}

// delivered returns a reader of the number of datagrams that sockets received in the namespace
// where the process dials: the server's and the process's own. Datagrams count only while the
// process has a socket there. The reader returns an error if a socket of another process has the
// published port, or is connected to the server's port.
func (p Proxy) delivered() Reader {
	var total, last uint64
	return func() (c sample.Counters, err error) {
		own, err := sock.Inodes(p.PID)
		if err != nil {
			return c, err
		}
		listens, err := p.sockets(p.Space, own, func(s sock.Socket) bool {
			return s.Local.Port() == p.Listens
		})
		if err == nil && listens == 0 {
			err = fmt.Errorf("process %d does not have UDP port %d", p.PID, p.Listens)
		}
		if err != nil {
			return c, err
		}
		dials, err := p.sockets(p.Dials, own, func(s sock.Socket) bool {
			return s.Remote.Port() == p.Target.Port()
		})
		if err != nil {
			return c, err
		}
		var now uint64
		err = p.Dials.Do(func() (err error) { now, err = sock.Received(); return err })
		if dials > 0 {
			total += now - last
		}
		last = now
		return sample.Counters{ForwardPackets: total}, err
	}
}

// sockets returns the number of the process's UDP sockets in a namespace. It returns an error if
// relays returns true for a socket of another process.
func (p Proxy) sockets(in Space, own map[uint32]bool, relays func(sock.Socket) bool) (n int,
	err error) {
	err = in.Do(func() error {
		all, err := sock.Datagram()
		for _, s := range all {
			switch {
			case own[s.Inode]:
				n++
			case relays(s):
				return fmt.Errorf("another process than %d relays: it has the UDP socket %s to %s", p.PID,
					s.Local, s.Remote)
			}
		}
		return err
	})
	return n, err
}
