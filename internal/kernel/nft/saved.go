package nft

import "github.com/bridgetoll/bridgetoll/internal/kernel/raw"

// Saved has all nf_tables rules of a namespace, those of iptables-nft included, in the order in
// which they can be made: tables, chains, objects, sets, elements, rules.
type Saved struct {
	Messages []raw.Message `json:"messages,omitempty"`
}
