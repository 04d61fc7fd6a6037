package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// spaces returns the inode of the network namespace of each netfilter link, by the link's ID. The
// kernel tells it to nobody but BPF programs. It needs BTF.
func spaces() (out map[uint32]uint32, err error) {
	at, err := offsets()
	if err != nil {
		return nil, fmt.Errorf("read the kernel's types: %w", err)
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "toll_spaces", Type: ebpf.Tracing,
		AttachType: ebpf.AttachTraceIter, AttachTo: "bpf_link", License: "GPL",
		Instructions: at.program()})
	if err != nil {
		return nil, fmt.Errorf("load BPF program: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	each, err := link.AttachIter(link.IterOptions{Program: p})
	if err != nil {
		return nil, fmt.Errorf("attach BPF program: %w", err)
	}
	defer func() { err = errors.Join(err, each.Close()) }()
	list, err := each.Open()
	if err != nil {
		return nil, fmt.Errorf("list BPF links: %w", err)
	}
	defer func() { err = errors.Join(err, list.Close()) }()
	text, err := io.ReadAll(list)
	if err != nil {
		return nil, fmt.Errorf("list BPF links: %w", err)
	}
	out = map[uint32]uint32{}
	for ; len(text) >= pairSize; text = text[pairSize:] {
		out[binary.NativeEndian.Uint32(text)] = binary.NativeEndian.Uint32(text[pairSize/2:])
	}
	return out, nil
}

const pairSize = 8 // a link's ID and an inode

// own returns the inode of the calling thread's network namespace.
func own() (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: "/proc/thread-self/ns/net", Err: err}
	}
	return uint32(st.Ino), nil
}

// fields has the places of fields: of a bpf_link in a bpf_nf_link, and of an inode in a net.
type fields struct{ kind, id, net, inode int32 }

// program writes, for each netfilter link, its ID and the inode of its namespace.
func (at fields) program() asm.Instructions {
	const pair, pointer = -pairSize, -2 * pairSize // on the stack
	read := func(to, size int32) asm.Instructions {
		return asm.Instructions{
			asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, to), asm.Mov.Imm(asm.R2, size),
			asm.FnProbeReadKernel.Call()}
	}
	out := asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 0, asm.DWord), // struct bpf_iter_meta
		asm.LoadMem(asm.R7, asm.R1, 8, asm.DWord), // struct bpf_link; null: the list has ended
		asm.JEq.Imm(asm.R7, 0, "end"),
		asm.LoadMem(asm.R1, asm.R7, int16(at.kind), asm.Word),
		asm.JNE.Imm(asm.R1, netfilter, "end"),
		asm.LoadMem(asm.R1, asm.R7, int16(at.id), asm.Word),
		asm.StoreMem(asm.RFP, pair, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R7), asm.Add.Imm(asm.R3, at.net),
	}
	out = append(out, read(pointer, 8)...)
	out = append(out, asm.LoadMem(asm.R3, asm.RFP, pointer, asm.DWord),
		asm.Add.Imm(asm.R3, at.inode))
	out = append(out, read(pair+pairSize/2, pairSize/2)...)
	return append(out,
		asm.LoadMem(asm.R1, asm.R6, 0, asm.DWord), // struct seq_file
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, pair), asm.Mov.Imm(asm.R3, pairSize),
		asm.FnSeqWrite.Call(),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("end"), asm.Return())
}

var offsets = sync.OnceValues(func() (at fields, err error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return at, err
	}
	field := func(of, name string) (offset int32) {
		var s *btf.Struct
		if err2 := kernel.TypeByName(of, &s); err2 != nil {
			err = errors.Join(err, err2)
			return 0
		}
		for _, m := range s.Members {
			if m.Name == name {
				return int32(m.Offset.Bytes())
			}
		}
		err = errors.Join(err, fmt.Errorf("struct %s has no field %s", of, name))
		return 0
	}
	link := field("bpf_nf_link", "link")
	at = fields{kind: field("bpf_link", "type"), id: field("bpf_link", "id"),
		net:   field("bpf_nf_link", "net") - link,
		inode: field("net", "ns") + field("ns_common", "inum")}
	return at, err
})
