package link

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

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
