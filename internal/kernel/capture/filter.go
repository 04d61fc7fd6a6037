package capture

import (
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// mostPorts keeps the filter's jumps short enough for a byte.
const mostPorts = 100

// filter returns a program that passes the first bytes of packets, and of first fragments, with one
// of the ports, or with any port if there is none.
func filter(size Size, ports []uint16) ([]unix.SockFilter, error) {
	bytes, protocol := size.packet, uint32(unix.IPPROTO_TCP)
	if size.udp {
		protocol = unix.IPPROTO_UDP
	}
	if len(ports) > mostPorts {
		return nil, fmt.Errorf("%d ports, at most %d can be captured", len(ports), mostPorts)
	}
	const (
		protocol4, fragment4, protocol6 = 9, 6, 6 // offsets in the headers
		header6, flags                  = 40, 13
		offset                          = 0x1fff // bits of fragment4
	)
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x60, SkipTrue: 8},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x40, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.LoadAbsolute{Off: fragment4, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: offset, SkipTrue: 2},
		bpf.LoadAbsolute{Off: protocol4, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocol, SkipTrue: 6},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 0},
		// IPv6
		bpf.LoadAbsolute{Off: protocol6, Size: 1},
		bpf.LoadConstant{Dst: bpf.RegX, Val: header6},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocol, SkipTrue: 2},
		bpf.RetConstant{Val: 0},
		bpf.LoadMemShift{Off: 0},
	}
	if size.opens {
		code = append(code, bpf.LoadIndirect{Off: flags, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: SYN, SkipTrue: 1}, bpf.RetConstant{Val: 0})
	}
	if len(ports) > 0 {
		code = append(code, bpf.LoadIndirect{Off: 0, Size: 2})
		code = append(code, oneOf(uint32(bytes), ports)...)
		code = append(code, bpf.LoadIndirect{Off: 2, Size: 2})
		code = append(code, oneOf(uint32(bytes), ports)...)
		code = append(code, bpf.RetConstant{Val: 0})
	}
	code = append(code, bpf.RetConstant{Val: uint32(bytes)})
	raw, err := bpf.Assemble(code)
	if err != nil {
		return nil, err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, x := range raw {
		program[i] = unix.SockFilter{Code: x.Op, Jt: x.Jt, Jf: x.Jf, K: x.K}
	}
	return program, nil
}

// oneOf returns instructions that pass the packet's first bytes if the loaded value is one of the
// ports, and else go on behind them.
func oneOf(bytes uint32, ports []uint16) (code []bpf.Instruction) {
	for i, p := range ports {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(p),
			SkipTrue: uint8(len(ports) - i)})
	}
	return append(code, bpf.Jump{Skip: 1}, bpf.RetConstant{Val: bytes})
}
