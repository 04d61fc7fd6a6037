package link

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/kernel/bpf"
)

// enum bpf_attach_type: Linux 6.6 and 6.7
const (
	tcxIngress    = 46
	tcxEgress     = 47
	netkitPrimary = 54
	netkitPeer    = 55
)

// attached describes a device's BPF programs. It returns nil unless the caller is the machine's
// root.
func attached(index int, netkit bool) ([]string, error) {
	places := []struct {
		name string
		at   uint32
	}{{"tcx ingress", tcxIngress}, {"tcx egress", tcxEgress}, {"netkit primary", netkitPrimary},
		{"netkit peer", netkitPeer}}
	const ofAll = 2
	if !netkit {
		places = places[:ofAll]
	}
	var out []string
	for _, p := range places {
		ids, err := bpf.Attached(index, p.at)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			out = append(out, fmt.Sprintf("%s program %d", p.name, id))
		}
	}
	return out, nil
}
