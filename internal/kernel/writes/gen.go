package writes

// The objects are committed, so the build needs no clang. make bpf builds them, make bpf-check
// compares them.
//go:generate go run github.com/cilium/ebpf/cmd/bpf2go -go-package writes -target bpfel -cc clang -cflags "-O2 -Wall -Werror -mcpu=v3 -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" object writes.bpf.c
