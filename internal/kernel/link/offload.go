package link

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

func shown(name string) (map[string]bool, error) {
	all, err := features(name)
	if err != nil {
		return nil, err
	}
	return abbreviated(all, offloads), nil
}

func abbreviated(all map[string]bool, short map[string]string) map[string]bool {
	out := map[string]bool{}
	for name, feature := range short {
		if on, ok := all[feature]; ok {
			out[name] = on
		}
	}
	return out
}

// Offload is a feature that can be switched.
type Offload string

const (
	GRO        Offload = "gro"
	TSO        Offload = "tso"
	TxChecksum Offload = "tx"
)

var switches = map[Offload][]string{
	GRO: {"rx-gro"},
	TSO: {"tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation",
		"tx-tcp6-segmentation"},
	TxChecksum: {"tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6",
		"tx-checksum-fcoe-crc", "tx-checksum-sctp"},
}

// SetOffload works like `ethtool -K NAME OFFLOAD on|off`. It returns an error if on does not switch
// any of the offload's features on, or if off leaves one of them on.
func SetOffload(name string, o Offload, on bool) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("set offload %s of %s: %w", o, name, err)
	}
	defer e.Close()
	known, err := featureNames.get(name)
	if err != nil {
		return fmt.Errorf("set offload %s of %s: %w", o, name, err)
	}
	want := map[string]bool{}
	for _, f := range switches[o] {
		if _, ok := known[f]; ok {
			want[f] = on
		}
	}
	if err := e.Change(name, want); err != nil {
		return fmt.Errorf("set offload %s of %s: %w", o, name, err)
	}
	got, err := features(name)
	if err != nil {
		return fmt.Errorf("set offload %s of %s: %w", o, name, err)
	}
	if any := slices.ContainsFunc(switches[o], func(f string) bool { return got[f] }); any != on {
		return fmt.Errorf("set offload %s of %s: the kernel did not switch it", o, name)
	}
	return nil
}

// Queues holds the numbers of a device's queues in each direction, and their maxima.
type Queues struct{ Send, Receive, MostSend, MostReceive int }

// QueuesOf reads the numbers of a device's queues, as `ethtool -l` does.
func QueuesOf(name string) (q Queues, err error) {
	err = withEthtool(func(e *ethtool.Ethtool) error {
		c, err := e.GetChannels(name)
		q = Queues{int(c.TxCount), int(c.RxCount), int(c.MaxTx), int(c.MaxRx)}
		return err
	})
	if err != nil {
		return q, fmt.Errorf("read queues of %s: %w", name, err)
	}
	return q, nil
}

// SetQueues gives the device n queues in each direction, as `ethtool -L` does, and reads them back.
func SetQueues(name string, n int) error {
	err := withEthtool(func(e *ethtool.Ethtool) error {
		c, err := e.GetChannels(name)
		if err != nil {
			return err
		}
		c.TxCount, c.RxCount = uint32(n), uint32(n)
		if _, err := e.SetChannels(name, c); err != nil {
			return err
		}
		c, err = e.GetChannels(name)
		if err == nil && (c.TxCount != uint32(n) || c.RxCount != uint32(n)) {
			err = errKept
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("set queues of %s to %d: %w", name, n, err)
	}
	return nil
}

func withEthtool(f func(*ethtool.Ethtool) error) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	return f(e)
}

type featureReader struct{ socket int }

func openFeatures() (featureReader, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return featureReader{}, fmt.Errorf("read offloads: %w", err)
	}
	return featureReader{fd}, nil
}

func (r featureReader) close() { _ = unix.Close(r.socket) }

func features(device string) (map[string]bool, error) {
	r, err := openFeatures()
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.of(device)
}

func (r featureReader) of(device string) (map[string]bool, error) {
	names, err := featureNames.get(device)
	if err != nil {
		return nil, fmt.Errorf("read offloads of %s: %w", device, err)
	}
	bits, err := r.active(device, names)
	if err != nil {
		return nil, fmt.Errorf("read offloads of %s: %w", device, err)
	}
	out := make(map[string]bool, len(names))
	for name, bit := range names {
		out[name] = bits.blocks[bit/blockBits].active&(1<<(bit%blockBits)) != 0
	}
	return out, nil
}

// linux/ethtool.h
const (
	getFeatures = 0x3a // ETHTOOL_GFEATURES
	blockBits   = 32
	mostBlocks  = 32 // Linux 6.18 fills two
)

// struct ethtool_gfeatures
type featureBits struct {
	command, size uint32
	blocks        [mostBlocks]struct{ available, requested, active, neverChanged uint32 }
}

type interfaceRequest struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

func (r featureReader) active(device string, names map[string]uint) (*featureBits, error) {
	if len(device) >= unix.IFNAMSIZ {
		return nil, unix.ENODEV
	}
	bits := &featureBits{command: getFeatures}
	for _, bit := range names {
		bits.size = max(bits.size, uint32(bit/blockBits)+1)
	}
	if bits.size > mostBlocks {
		return nil, errors.New("the kernel has more features than toll can read")
	}
	request := interfaceRequest{data: unsafe.Pointer(bits)}
	copy(request.name[:], device)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(r.socket), unix.SIOCETHTOOL,
		uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return nil, errno
	}
	return bits, nil
}

var featureNames namedBits

type namedBits struct {
	mu   sync.Mutex
	bits map[string]uint
}

func (n *namedBits) get(device string) (map[string]uint, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bits == nil {
		err := withEthtool(func(e *ethtool.Ethtool) (err error) {
			n.bits, err = e.FeatureNames(device)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return n.bits, nil
}
