package jail

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// deniedHere lists the calls that only this architecture has.
var deniedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}
