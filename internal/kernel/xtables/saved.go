package xtables

// Saved is a table of iptables-legacy or ip6tables-legacy.
type Saved struct {
	Name    string `json:"name"`
	Six     bool   `json:"ipv6,omitempty"`
	Info    []byte `json:"info"`    // struct ipt_getinfo
	Entries []byte `json:"entries"` // as IPT_SO_GET_ENTRIES returns them
}
