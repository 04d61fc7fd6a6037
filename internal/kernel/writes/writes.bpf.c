//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Programs that write down when bytes are written to TCP sockets at some ports, when TCP sends them,
// when the threads that wrote run, and when clients read; or when datagrams leave UDP sockets, and
// when clients read the replies. None of them changes anything but the maps below.
// (GPL beside MIT because the kernel gives its own structures to no other program.)

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define MSG_PEEK 2
#define MSG_MORE 0x8000
#define MSG_SENDPAGE_NOTLAST 0x20000
#define TCP_NAGLE_CORK 2
#define MSG_ERRQUEUE 0x2000

enum kind { WRITE = 1, SEND, RAN, DATAGRAM, READ, ASKED };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	unsigned int inum;
};
struct net {
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct in6_addr {
	__u8 bytes[16];
};
struct sock_common {
	unsigned short skc_family;
	__be32 skc_daddr, skc_rcv_saddr;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	possible_net_t skc_net;
};
struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
};
struct tcp_sock {
	__u32 copied_seq, write_seq, snd_nxt, snd_una, snd_wnd;
	__u8 nonagle : 4;
};
struct iov_iter {
	unsigned long count;
};
struct msghdr {
	struct iov_iter msg_iter;
	unsigned int msg_flags;
};
struct sched_info {
	unsigned long long run_delay;
};
struct task_struct {
	int pid;
	struct sched_info sched_info;
};
struct sk_buff {
	struct sock *sk;
	unsigned int len;
	__u16 network_header;
	unsigned char *head, *data;
};
#pragma clang attribute pop

// The ends of a connection, or of a datagram. Addresses of IPv4 are mapped.
struct ends {
	__be32 local_addr[4], remote_addr[4];
	__u16 local, remote; // ports
};

// The layout is record's in writes.go.
struct record {
	__s64 ts;
	__u32 netns, seq, len, unacked, window;
	struct ends ends;
	__u8 kind, nonagle;
	__u16 socket; // its port
	__u32 thread; // that writes, ran, or sends a datagram
	__u64 waited; // for a CPU so far
	__s64 since;  // it has run
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); // the loader knows better
} records SEC(".maps");

// When the threads that wrote began to run.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u32);
	__type(value, __s64);
} threads SEC(".maps");

// Sockets that sent datagrams to the dialled ports.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, __u64);
	__type(value, __u8);
} askers SEC(".maps");

volatile const __u64 ports[(1 << 16) / 64]; // bits
__u64 dialled[(1 << 16) / 64]; // the loader may add some
volatile const bool runs; // sched_switch is attached
volatile const bool udp; // sockets, instead of TCP's
volatile const bool reads; // of sockets that dialled a port, whose threads' runs do not count
__u64 lost;

static __always_inline bool is_ours(const struct sock *sk)
{
	__u16 port = sk->__sk_common.skc_num;

	return ports[port >> 6] >> (port & 63) & 1;
}

static __always_inline bool is_dialled_port(__u16 port)
{
	return dialled[port >> 6] >> (port & 63) & 1;
}

static __always_inline bool is_dialled(const struct sock *sk)
{
	return is_dialled_port(bpf_ntohs(sk->__sk_common.skc_dport));
}

// running returns since when a thread has run. It is 0 if that is not known, but then its later runs
// are.
static __always_inline __s64 running(__u32 thread)
{
	__s64 *since = bpf_map_lookup_elem(&threads, &thread), unknown = 0;

	if (since)
		return *since;
	bpf_map_update_elem(&threads, &thread, &unknown, BPF_ANY);
	return 0;
}

static __always_inline void mapped(__be32 addr[4], __be32 of)
{
	addr[0] = addr[1] = 0;
	addr[2] = bpf_htonl(0xffff);
	addr[3] = of;
}

static __always_inline void ends_of(struct sock *sk, struct ends *ends)
{
	ends->local = BPF_CORE_READ(sk, __sk_common.skc_num);
	ends->remote = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr) &&
	    BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6) {
		BPF_CORE_READ_INTO(&ends->local_addr, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&ends->remote_addr, sk, __sk_common.skc_v6_daddr);
		return;
	}
	mapped(ends->local_addr, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
	mapped(ends->remote_addr, BPF_CORE_READ(sk, __sk_common.skc_daddr));
}

// polls reports whether the present thread is the kernel's that looks for what to do for an io_uring
// (SQPOLL): it waits for a CPU also when there is nothing to do.
static __always_inline bool polls(void)
{
	static const char name[] = "iou-sqp-";
	char comm[16] __attribute__((aligned(8))) = {};

	bpf_get_current_comm(comm, sizeof(comm));
	return !__builtin_memcmp(comm, name, sizeof(name) - 1);
}

static __always_inline int put(__u8 kind, struct sock *sk, __u32 seq, __u32 len, bool more,
			       const struct ends *ends, bool ran)
{
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	struct tcp_sock *tp = (void *)sk;

	if (!r) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	*r = (struct record){ .ts = bpf_ktime_get_ns(), .kind = kind, .seq = seq, .len = len };
	r->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	r->socket = BPF_CORE_READ(sk, __sk_common.skc_num);
	if (ends) {
		r->ends = *ends;
	} else {
		ends_of(sk, &r->ends);
	}
	if (!udp) {
		r->unacked = BPF_CORE_READ(tp, snd_nxt) - BPF_CORE_READ(tp, snd_una);
		r->window = BPF_CORE_READ(tp, snd_wnd);
		r->nonagle = BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle) |
			     (more ? TCP_NAGLE_CORK : 0);
	}
	if (kind != SEND && bpf_core_field_exists(struct task_struct, sched_info) && !polls()) {
		struct task_struct *t = (void *)bpf_get_current_task();

		r->thread = BPF_CORE_READ(t, pid);
		r->waited = BPF_CORE_READ(t, sched_info.run_delay);
		if (runs && ran)
			r->since = running(r->thread);
	}
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int write(struct sock *sk, __u32 len, int flags)
{
	bool ours = is_ours(sk);

	if (!ours && !is_dialled(sk))
		return 0;
	return put(WRITE, sk, BPF_CORE_READ((struct tcp_sock *)sk, write_seq), len,
		   flags & (MSG_MORE | MSG_SENDPAGE_NOTLAST), 0, ours || !reads);
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(toll_write, struct sock *sk, struct msghdr *msg, struct sk_buff *skb, int goal)
{
	return write(sk, msg->msg_iter.count, msg->msg_flags);
}

SEC("fentry/tcp_sendmsg_locked")
int BPF_PROG(toll_sendmsg, struct sock *sk, struct msghdr *msg, unsigned long size)
{
	return write(sk, size, msg->msg_flags);
}

// Until Linux 6.4, sendfile, splice and TLS in the kernel write one page after another.
SEC("fentry/do_tcp_sendpages")
int BPF_PROG(toll_sendpage, struct sock *sk, void *page, int offset, unsigned long size, int flags)
{
	return write(sk, size, flags);
}

static __always_inline int read(struct sock *sk, int ret, int flags)
{
	__u64 at = (__u64)sk;

	if (ret <= 0 || flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	if (udp)
		return bpf_map_lookup_elem(&askers, &at) ? put(READ, sk, 0, ret, false, 0, false) : 0;
	if (!is_dialled(sk) || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	return put(READ, sk, BPF_CORE_READ((struct tcp_sock *)sk, copied_seq) - ret, ret, false,
		   0, false);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(toll_read, struct sock *sk, int ret, int flags)
{
	return read(sk, ret, flags);
}

static __always_inline int received(void *ctx, struct sock *sk, int flags)
{
	__u64 ret = 0;

	bpf_get_func_ret(ctx, &ret);
	return read(sk, ret, flags);
}

SEC("fexit/tcp_recvmsg")
int BPF_PROG(toll_recvmsg, struct sock *sk, void *msg, unsigned long len, int flags)
{
	return received(ctx, sk, flags);
}

SEC("fexit/udp_recvmsg")
int BPF_PROG(toll_recv4, struct sock *sk, void *msg, unsigned long len, int flags)
{
	return received(ctx, sk, flags);
}

SEC("fexit/udpv6_recvmsg")
int BPF_PROG(toll_recv6, struct sock *sk, void *msg, unsigned long len, int flags)
{
	return received(ctx, sk, flags);
}

// header reads a TCP packet's sequence number, or a datagram's first bytes and ends, and the payload's
// length. It reports whether it is such a packet, of TCP with payload.
static __always_inline bool header(const struct sk_buff *skb, __u32 *seq, __s32 *len,
				   struct ends *ends)
{
	unsigned char *ip = skb->head + skb->network_header;
	const __u8 want = udp ? IPPROTO_UDP : IPPROTO_TCP;
	__u8 b[60] __attribute__((aligned(8)));
	__s32 size, at;

	if (bpf_probe_read_kernel(b, sizeof(b), ip))
		return false;
	size = skb->len - (ip - skb->data);
	if (b[0] >> 4 == 4 && b[9] == want) {
		at = (b[0] & 0xf) * 4;
		if (udp && (bpf_ntohs(*(__be16 *)(b + 6)) & 0x1fff)) // a later fragment
			return false;
		if (at != 20 && bpf_probe_read_kernel(b + 20, 20, ip + at))
			return false;
		if (udp) {
			mapped(ends->local_addr, *(__be32 *)(b + 12));
			mapped(ends->remote_addr, *(__be32 *)(b + 16));
			ends->local = bpf_ntohs(*(__be16 *)(b + 20));
			ends->remote = bpf_ntohs(*(__be16 *)(b + 22));
			*seq = bpf_ntohl(*(__be32 *)(b + 28));
			*len = bpf_ntohs(*(__be16 *)(b + 24)) - 8;
			return true;
		}
		*seq = bpf_ntohl(*(__be32 *)(b + 24));
		*len = size - at - (b[32] >> 4) * 4;
		return *len > 0;
	}
	if (b[0] >> 4 == 6 && b[6] == want) {
		if (udp) {
			__builtin_memcpy(ends->local_addr, b + 8, 16);
			__builtin_memcpy(ends->remote_addr, b + 24, 16);
			ends->local = bpf_ntohs(*(__be16 *)(b + 40));
			ends->remote = bpf_ntohs(*(__be16 *)(b + 42));
			*seq = bpf_ntohl(*(__be32 *)(b + 48));
			*len = bpf_ntohs(*(__be16 *)(b + 44)) - 8;
			return true;
		}
		*seq = bpf_ntohl(*(__be32 *)(b + 44));
		*len = size - 40 - (b[52] >> 4) * 4;
		return *len > 0;
	}
	return false;
}

// may_ask reports whether a socket may send datagrams to a dialled port, perhaps without a peer.
static __always_inline bool may_ask(const struct sock *sk)
{
	return udp && reads && sk->sk_protocol == IPPROTO_UDP &&
	       (!sk->__sk_common.skc_dport || is_dialled(sk));
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(toll_sent, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	__u64 at = (__u64)sk;
	struct ends ends;
	__u8 yes = 1;
	__u32 seq;
	__s32 len;

	if (!sk || (!is_ours(sk) && !may_ask(sk)) || !header(skb, &seq, &len, &ends))
		return 0;
	if (!udp)
		return put(SEND, sk, seq, len, false, 0, false);
	if (is_ours(sk))
		return put(DATAGRAM, sk, seq, len, false, &ends, true);
	if (!is_dialled_port(ends.remote))
		return 0;
	bpf_map_update_elem(&askers, &at, &yes, BPF_ANY);
	return put(ASKED, sk, seq, len, false, &ends, false);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(toll_ran, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 out = prev->pid, in = next->pid;
	__s64 *since = bpf_map_lookup_elem(&threads, &out), now;
	struct record *r;

	if (since && *since && (r = bpf_ringbuf_reserve(&records, sizeof(*r), 0))) {
		*r = (struct record){ .ts = bpf_ktime_get_ns(), .kind = RAN, .thread = out };
		r->since = *since;
		if (bpf_core_field_exists(struct task_struct, sched_info))
			r->waited = prev->sched_info.run_delay;
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	} else if (since && *since) {
		__sync_fetch_and_add(&lost, 1);
	}
	if (since)
		*since = 0; // nobody may see when it goes on
	since = bpf_map_lookup_elem(&threads, &in);
	if (since) {
		now = bpf_ktime_get_ns();
		*since = now;
	}
	return 0;
}
